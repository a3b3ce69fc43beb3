//! Is a newer server than those of the matrix backed up hot, and restored to exactly what was
//! committed?

use evenkeel_backup::backup::{Done, SnapshotChoice};
use evenkeel_cases::{Site, back_up};
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::{mariadb_11_4, mariadb_11_8, mysql_9};
use evenkeel_testkit::{LoopFs, Marks, TestServer};

const GIB: u64 = 1 << 30;

/// A full and an incremental generation under traffic, then kill -9, restore and boot of each.
fn case(server: TestServer, fs: LoopFs, snapshot: SnapshotChoice) {
    let mut site = Site::start(server, fs, 2_000, &[]);
    let traffic = site.traffic(4);
    let mut taken: Vec<(Done, Marks, Marks)> = Vec::new();
    for _ in 0..2 {
        traffic.wait_for(50);
        let before = traffic.marks();
        let mut request = site.request(snapshot.clone());
        request.audit = true;
        let done = back_up(&request).unwrap_or_else(|e| panic!("{}", e.chain()));
        taken.push((done, before, traffic.marks()));
    }
    traffic.assert_undisturbed();
    site.kill();
    drop(traffic.stop());
    for (done, before, after) in &taken {
        let report = &done.report;
        assert_eq!(report.pages_corrupt, 0);
        assert!(report.pages_checked > 0);
        let name = format!("restored-{}", report.generation);
        let restored = site
            .restore(Some(report.generation), &name)
            .unwrap_or_else(|e| panic!("{}", e.chain()));
        let gtid = site.check_bank_at(&restored.target, before, after);
        assert!(report.coordinates.gtid.is_some(), "{report:?}");
        assert_eq!(
            gtid, report.coordinates.gtid,
            "the image is at its coordinates"
        );
    }
    // How much was written meanwhile is up to the clients; nobody wrote to the system's tables.
    let second = &taken[1].0.report;
    assert_eq!(second.kind, "incremental");
    assert!(second.bytes_changed < second.bytes_logical, "{second:?}");
}

#[test]
fn by_clones() {
    let newer: [fn() -> TestServer; 3] = [mysql_9, mariadb_11_8, mariadb_11_4];
    for server in draw("newer servers by clones", &newer, 1) {
        case(server(), LoopFs::xfs(4 * GIB), SnapshotChoice::Reflink);
    }
}

#[test]
fn by_snapshots_of_btrfs() {
    let newer: [fn() -> TestServer; 2] = [mariadb_11_8, mysql_9];
    for server in draw("newer servers by snapshots", &newer, 1) {
        case(server(), LoopFs::btrfs(4 * GIB), SnapshotChoice::Btrfs);
    }
}
