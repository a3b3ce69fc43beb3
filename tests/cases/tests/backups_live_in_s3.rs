//! Does a repository in an object store take hot backups of real servers, give every generation back,
//! prove that it starts, and let go of what is forgotten?

use evenkeel_cases::Site;
use evenkeel_cases::bucket::Bucket;
use evenkeel_cases::far::FarHost;
use evenkeel_cases::program::{Ended, run};
use evenkeel_testkit::effort::{draw, rounds};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{LoopFs, Marks, TestServer};
use std::process::Command;

const GIB: u64 = 1 << 30;
const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

fn done(ended: Ended) -> Ended {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}

fn case(server: TestServer, fs: LoopFs) {
    let mut site = Site::start(server, fs, 2_000, &[]);
    let bucket = Bucket::start(PROGRAM);
    let url = bucket.repository();
    let traffic = site
        .bank
        .start(&site.running().connect_options(), 4)
        .expect("traffic");
    let mut taken = Vec::new();
    let last = rounds("generations in a store", 2, 3);
    for number in 1..=last {
        traffic.wait_for(50);
        let before = traffic.marks();
        let backup = bucket.backup(&site, &["--audit"]);
        assert_eq!(run(backup).generation(), number);
        taken.push((before, traffic.marks()));
    }
    site.kill();
    drop(traffic.stop());
    for (number, (before, after)) in (1..).zip(&taken) {
        let target = site.fs.join(format!("restored-{number}"));
        let generation = format!("--generation={number}");
        let mut restore = bucket.command(&["restore", &url, &generation, "--target"]);
        restore.arg(&target);
        done(run(restore));
        site.check_bank_at(&target, before, after);
    }
    let mut verify = bucket.command(&["verify", "--boot", &url, "--server-binary"]);
    verify.arg(&site.server.binary.path);
    verify.arg("--scratch").arg(site.fs.join("scratch"));
    let ended = done(run(verify));
    assert_eq!(ended.answer["boot"]["proven"], true, "{ended:?}");
    done(run(bucket.command(&[
        "forget",
        &url,
        "--keep-last=1",
        "--execute",
    ])));
    done(run(bucket.command(&["prune", &url, "--execute"])));
    let listed = done(run(bucket.command(&["generations", &url])));
    let left = listed.answer["generations"]
        .as_array()
        .expect("generations");
    assert_eq!(left.len(), 1, "{listed:?}");
    assert_eq!(left[0]["generation"], last, "{listed:?}");
    done(run(bucket.command(&["verify", "--all", &url])));
}

#[test]
fn of_a_server_here() {
    type Case = (fn() -> TestServer, fn(u64) -> LoopFs);
    let cases: [Case; 3] = [
        (mysql_8_0_15, LoopFs::btrfs),
        (mysql_5_7_22, LoopFs::xfs),
        (mariadb_10_11, LoopFs::xfs),
    ];
    for (server, fs) in draw("servers in a store", &cases, 1) {
        case(server(), fs(2 * GIB));
    }
}

/// The other host has neither the credentials nor the way.
#[test]
fn of_a_server_on_another_host() {
    let site = Site::start(mariadb_10_11(), LoopFs::xfs(2 * GIB), 500, &[]);
    let bucket = Bucket::start(PROGRAM);
    let url = bucket.repository();
    let far = FarHost::having(PROGRAM, &[]);
    let over = |command: Command| run(far.over(command, 60));
    let socket = site.running().socket().display().to_string();
    for number in 1..=2 {
        let mut backup = bucket.command(&["backup", "--no-defaults", "-u", "root", "-S"]);
        backup.args([&socket, &url]);
        assert_eq!(over(backup).generation(), number);
        far.assert_clean("after a backup");
    }
    let target = site.fs.join("restored");
    let mut restore = bucket.command(&["restore", &url, "--target"]);
    restore.arg(&target);
    done(over(restore));
    site.check_bank_at(&target, &Marks::default(), &Marks::default());
    done(run(bucket.command(&["verify", "--all", &url])));
}
