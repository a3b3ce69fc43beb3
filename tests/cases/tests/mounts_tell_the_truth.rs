//! Does a mount of an encrypted repository in an object store open, and does one of a damaged
//! repository never show other bytes than were backed up?

use evenkeel_cases::Site;
use evenkeel_cases::bucket::Bucket;
use evenkeel_cases::mounting::Mounting;
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_op::Cancel;
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::servers::{SERVER_DEADLINE, mariadb_10_11};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const GIB: u64 = 1 << 30;
const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

#[test]
fn encrypted_and_in_s3() {
    let mut site = Site::start(mariadb_10_11(), LoopFs::xfs(3 * GIB), 1_000, &[]);
    let bucket = Bucket::start(PROGRAM);
    let url = bucket.repository();
    let key = site.fs.join("passphrase").display().to_string();
    fs::write(&key, "open sesame\n").expect("a passphrase");
    let traffic = site.traffic(2);
    traffic.wait_for(50);
    let before = traffic.marks();
    let backup = bucket.backup(&site, &["--encrypt-passphrase-file", &key]);
    assert_eq!(run(backup).generation(), 1);
    let after = traffic.marks();
    drop(traffic.stop());
    site.kill();
    let (mountpoint, scratch) = (site.fs.join("mnt"), site.fs.join("scratch"));
    fs::create_dir(&mountpoint).expect("a mount point");
    let mut shut = bucket.command(&["mount", &url]);
    shut.arg(&mountpoint);
    assert_eq!(run(shut).code, Some(12), "without the passphrase");
    let mut mount = bucket.command(&["mount", &url, "--passphrase-file", &key, "--fill"]);
    mount
        .arg(&mountpoint)
        .arg("--writable-scratch")
        .arg(&scratch);
    let mounting = Mounting::run(mount, &mountpoint);
    let mut launch = site.server.plan(&mountpoint.join("data"), &[]);
    launch.extra_args = mounting.start_options();
    let running = launch
        .start(SERVER_DEADLINE, &Cancel::new())
        .expect("it starts");
    let mut session = running.session().expect("a session");
    let state = site.bank.check(&mut session).expect("the bank is in order");
    state
        .check_between(&before, &after)
        .expect("exactly what was committed");
    assert_eq!(mounting.next()["state"], "filled");
    running.stop(SERVER_DEADLINE).expect("it stops");
    let (end, code) = mounting.end();
    assert_eq!((&end["scratch"], code), (&Value::from("restored"), Some(0)));
    site.check_bank_at(&scratch.join("data"), &before, &after);
}

/// Every file below a directory.
fn files(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => waiting.push(path),
                false => found.push(path.strip_prefix(top).expect("below").to_owned()),
            }
        }
    }
    found
}

#[test]
fn damaged() {
    let mut site = Site::start(mariadb_10_11(), LoopFs::xfs(3 * GIB), 1_000, &[]);
    let evenkeel = Evenkeel::new(PROGRAM);
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    site.kill();
    let whole = site.restore(None, "whole").expect("a restore").target;
    let pack = site.repository().join("generations/1/pack-0000");
    let mut bytes = fs::read(&pack).expect("a pack");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&pack, bytes).expect("damage");
    let mountpoint = site.fs.join("mnt");
    let mounting = Mounting::start(
        &evenkeel,
        &site.repository(),
        &mountpoint,
        &["--generation=1"],
    );
    let mut refused = 0;
    for name in files(&whole) {
        match fs::read(mountpoint.join("data").join(&name)) {
            Ok(shown) => assert!(
                shown == fs::read(whole.join(&name)).expect("restored"),
                "{} is shown with other bytes",
                name.display()
            ),
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(5), "{}: {error}", name.display());
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "the damage was met");
    let (end, code) = mounting.end();
    assert_eq!((&end["state"], code), (&Value::from("ended"), Some(0)));
}
