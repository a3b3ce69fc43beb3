//! Does a dump go into an object store and come back from there whole, and not at all when it did not end?

use evenkeel_cases::SMALL;
use evenkeel_cases::bucket::Bucket;
use evenkeel_cases::dumps::{HARD, checksums, done, make_hard};
use evenkeel_cases::program::{Ended, killed_at, run};
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_server::launch::Running;
use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::{HttpFault, Scratch, until};
use std::process::Command;

const URL: &str = "s3://backups/dumps/shop";

fn dump(bucket: &Bucket, running: &Running, flags: &[&str]) -> Command {
    let mut command =
        bucket.command(&["dump", "--no-defaults", "-u", "root", "--output", URL, "-S"]);
    command.arg(running.socket()).args(flags);
    command
}

fn load(bucket: &Bucket, running: &Running) -> Command {
    let mut command = bucket.command(&["load", "--no-defaults", "-u", "root", URL, "-S"]);
    command.arg(running.socket());
    command
}

/// Megabytes that no compression makes small: more than one part.
fn make_noise(session: &mut Session) {
    let noise = format!("{}.noise", quote_name(HARD));
    session
        .run(&format!(
            "CREATE TABLE {noise} (id INT PRIMARY KEY AUTO_INCREMENT, b BLOB)"
        ))
        .unwrap();
    for _ in 0..20 {
        let some = vec!["(RANDOM_BYTES(1024))"; 1024].join(",");
        let sql = format!("INSERT INTO {noise} (b) VALUES {some}");
        session.run(&sql).unwrap();
    }
}

#[track_caller]
fn assert_no_dump(bucket: &Bucket, running: &Running) {
    let ended = run(load(bucket, running));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.message().contains("unfinished"),
        "{}",
        ended.message()
    );
}

#[test]
fn there_and_back() {
    let (server, scratch) = (mariadb_10_11(), Scratch::new());
    let source = server.start(&scratch.join("source"), &SMALL);
    let mut session = source.session().unwrap();
    make_hard(&mut session);
    make_noise(&mut session);
    let target = server.start(&scratch.join("target"), &SMALL);
    let bucket = Bucket::start(env!("CARGO_BIN_EXE_evenkeel-under-test"));

    // Killed, it says so, and is not resumed.
    let ended = run(killed_at(dump(&bucket, &source, &[]), "dump.range-done#4"));
    assert_eq!(ended.signal, Some(9), "{ended:?}");
    assert_no_dump(&bucket, &target);
    for (flag, hint) in [
        ("--threads=2", "unfinished"),
        ("--resume", "works only in a directory"),
    ] {
        let ended = run(dump(&bucket, &source, &[flag]));
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.message().contains(hint), "{}", ended.message());
    }

    // The store takes no more in the middle of an upload in parts. One thread, so that a file is that large.
    bucket.way.always(Some(HttpFault::Slow(20)));
    let command = dump(
        &bucket,
        &source,
        &["--overwrite-unfinished", "--compress=none", "--threads=1"],
    );
    let mut command = bucket.by_the_way(command);
    command.stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    until("an upload in parts", || {
        let heads = bucket.way.heads();
        assert!(child.try_wait().unwrap().is_none(), "it ended: {heads:#?}");
        heads
            .iter()
            .any(|head| head.starts_with("post ") && head.contains("?uploads"))
    });
    bucket.way.forbid(Some("PUT"));
    let ended = Ended::of(&child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(14), "{ended:?}");
    assert!(
        ended.message().contains("failed to write"),
        "{}",
        ended.message()
    );
    assert_eq!(bucket.uploads(), Vec::<String>::new());
    bucket.way.forbid(None);
    assert_no_dump(&bucket, &target);

    let ended = done(run(dump(
        &bucket,
        &source,
        &["--overwrite-unfinished", "--compress=none"],
    )));
    assert_eq!(ended.answer["output"], URL);
    done(run(load(&bucket, &target)));
    let (ours, theirs) = (&mut target.session().unwrap(), &mut session);
    assert_eq!(checksums(ours), checksums(theirs));
    let again = run(dump(&bucket, &source, &["--overwrite-unfinished"]));
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.message().contains("already"), "{}", again.message());
}
