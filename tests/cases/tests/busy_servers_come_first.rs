//! Does a backup rest for a busy server, and for no other?

use evenkeel_backup::backup::{RunKind, SnapshotChoice};
use evenkeel_cases::{Site, back_up};
use evenkeel_testkit::effort::{Part, share};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{LoopFs, TestServer};

/// Bytes a second at which a full backup is looked at a few times.
const SLOW: u64 = 64 << 20;
/// At which it takes seconds: who is busy has to have answered some statements meanwhile, however slow
/// the disk.
const SLOWER: u64 = 8 << 20;

/// How long did each backup rest?
fn case(server: TestServer) {
    let site = Site::start(server, LoopFs::xfs(1 << 30), 2_000, &[]);
    let rested = |max_impact_percent: u8, rate_bytes_per_s: u64| {
        let mut request = site.request(SnapshotChoice::Reflink);
        request.kind = RunKind::Full;
        request.rate_bytes_per_s = rate_bytes_per_s;
        request.max_impact_percent = max_impact_percent;
        back_up(&request).expect("a backup").report.rested_s
    };
    assert_eq!(rested(5, SLOW), 0.0, "the server is idle");
    let traffic = site.rush(4);
    traffic.wait_for(50);
    assert!(rested(5, SLOWER) > 0.0, "the server is busy");
    assert_eq!(rested(100, SLOW), 0.0, "nobody asked to rest");
    traffic.assert_undisturbed();
    drop(traffic.stop());
    assert_eq!(rested(5, SLOW), 0.0, "the server is idle again");
}

/// One of the three servers in each run.
fn in_turn(server: TestServer, nth: usize) {
    share("busy servers", &[server], Part::new(nth, 3))
        .into_iter()
        .for_each(case);
}

#[test]
fn mariadb() {
    in_turn(mariadb_10_11(), 0);
}

#[test]
fn mysql_8() {
    in_turn(mysql_8_0_15(), 1);
}

#[test]
fn mysql_5_7() {
    in_turn(mysql_5_7_22(), 2);
}
