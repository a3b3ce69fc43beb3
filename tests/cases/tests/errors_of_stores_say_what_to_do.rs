//! Does what goes wrong with an object store say what it is and what to do next?

use evenkeel_cases::provoked::{WrittenDown, closed_port};
use evenkeel_testkit::{Scratch, Seaweed};
use std::fs;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

const BACKUP: &str = "backup --no-defaults --snapshot=copy --volume=/srv/vm.img";

const ERRORS: &[(&str, &str, &str)] = &[
    ("missing-bucket", "", "generations s3://nosuchbucket/vm"),
    ("missing-bucket-backup", "", "BACKUP s3://nosuchbucket/vm"),
    (
        "missing-bucket-load",
        "",
        "load --no-defaults s3://nosuchbucket/dump",
    ),
    ("no-repository", "", "generations s3://backups/nothing"),
    (
        "plain-http",
        "AWS_ALLOW_HTTP=",
        "generations s3://backups/vm",
    ),
    (
        "no-credentials",
        "AWS_ACCESS_KEY_ID= AWS_SECRET_ACCESS_KEY= AWS_METADATA_ENDPOINT=http://127.0.0.1:9001",
        "generations s3://backups/vm",
    ),
    (
        "half-of-the-credentials",
        "AWS_SECRET_ACCESS_KEY=",
        "generations s3://backups/vm",
    ),
    (
        "unknown-key",
        "AWS_ACCESS_KEY_ID=nobody",
        "generations s3://backups/vm",
    ),
    (
        "wrong-secret",
        "AWS_SECRET_ACCESS_KEY=wrong",
        "generations s3://backups/vm",
    ),
    (
        "wrong-secret-backup",
        "AWS_SECRET_ACCESS_KEY=wrong",
        "BACKUP s3://backups/vm",
    ),
    (
        "reader-may-not-write",
        "AWS_ACCESS_KEY_ID=evenkeel-reader",
        "BACKUP s3://backups/vm",
    ),
    (
        "unreachable",
        "AWS_ENDPOINT_URL=http://127.0.0.1:9001",
        "generations s3://backups/vm",
    ),
];

#[test]
fn of_object_stores() {
    let mut said = WrittenDown::of("stores", PROGRAM);
    let (store, scratch) = (Seaweed::start(), Scratch::new());
    let image = scratch.join("vm.img");
    fs::write(&image, vec![7; 1 << 20]).unwrap();
    said.call(image.display(), "/srv/vm.img");
    said.call(closed_port(), "9001");
    said.call(store.port(), "9000");
    said.set(Seaweed::environment(store.port()));
    for (name, variables, line) in ERRORS {
        let line = line.replace("BACKUP", BACKUP);
        said.say(name, &format!("{variables} {line}"));
    }
    said.assert_all();
}
