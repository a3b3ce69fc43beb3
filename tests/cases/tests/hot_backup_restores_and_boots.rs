//! Does every snapshot provider give, on XFS and btrfs and with every server, a backup of a busy
//! server that restores to exactly what was committed?

use evenkeel_backup::backup::{Done, SnapshotChoice, Source};
use evenkeel_cases::{Site, back_up};
use evenkeel_testkit::effort::{Part, draw, share};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{BankTraffic, LoopFs, Marks, TestServer};
use std::collections::BTreeMap;
use std::time::Duration;

const GIB: u64 = 1 << 30;

/// How a case freezes the files.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Reflink,
    ReflinkStop,
    Btrfs,
    Hook,
    Copy,
}

fn snapshot(way: Way, site: &Site) -> SnapshotChoice {
    match way {
        Way::Reflink | Way::ReflinkStop => SnapshotChoice::Reflink,
        Way::Btrfs => SnapshotChoice::Btrfs,
        Way::Copy => SnapshotChoice::Copy,
        Way::Hook => {
            let top = site.fs.path().display();
            SnapshotChoice::Hook {
                command: format!(
                    "btrfs -q subvolume snapshot -r {top} {top}/taken && echo {top}/taken/data"
                ),
                release: Some(format!("btrfs -q subvolume delete {top}/taken")),
            }
        }
    }
}

/// Starts a server with 8 MiB that do not change and do not pack: what an increment is small against,
/// however much the traffic writes meanwhile.
fn start(server: TestServer, fs: LoopFs) -> Site {
    let site = Site::start(server, fs, 2_000, &[]);
    let mut session = site.running().session().expect("a session");
    let row = ["RANDOM_BYTES(1024)"; 4].join(",");
    for sql in [
        "CREATE TABLE bank.ballast (bytes BLOB) ENGINE=InnoDB",
        &format!(
            "INSERT INTO bank.ballast SELECT CONCAT({row}) FROM bank.accounts_0, \
             (SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4) AS fourfold"
        ),
    ] {
        session.run(sql).expect("ballast");
    }
    site
}

/// A full and two incremental generations under traffic, then kill -9, restore and boot.
fn case(server: TestServer, fs: LoopFs, way: Way) {
    let mut site = start(server, fs);
    let traffic = site.traffic(4);
    let mut taken: Vec<(Done, Marks, Marks)> = Vec::new();
    for _ in 0..3 {
        traffic.wait_for(50);
        let before = traffic.marks();
        let mut request = site.request(snapshot(way, &site));
        request.stop_server = way == Way::ReflinkStop;
        request.audit = true;
        let done = back_up(&request).expect("a backup");
        taken.push((done, before, traffic.marks()));
    }
    traffic.assert_undisturbed();
    site.kill();
    drop(traffic.stop());
    check_restores(&site, &taken);
}

/// The same for a server that is stopped for each backup.
fn stopped_case(server: TestServer, fs: LoopFs) {
    let mut site = start(server, fs);
    let mut taken = Vec::new();
    for _ in 0..3 {
        let traffic: BankTraffic = site.traffic(4);
        traffic.wait_for(50);
        let marks = traffic.stop();
        let running = site.running.take().expect("it runs");
        running.stop(Duration::from_secs(60)).expect("it stops");
        let settings: BTreeMap<String, String> = [
            ("log_bin", "ON"),
            ("log_bin_basename", "binlog"),
            ("log_bin_index", "binlog.index"),
        ]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
        let source = Source::Stopped {
            datadir: site.fs.join("data"),
            settings,
        };
        let mut request = evenkeel_backup::backup::BackupRequest::new(
            site.repository(),
            source,
            snapshot(Way::Copy, &site),
        );
        request.audit = true;
        let done = back_up(&request).expect("a backup");
        taken.push((done, marks.clone(), marks));
        site.running = Some(site.server.run(&site.launch));
    }
    site.kill();
    check_restores(&site, &taken);
}

fn check_restores(site: &Site, taken: &[(Done, Marks, Marks)]) {
    let numbers = [1, 2, 3];
    let booted = share("generations that boot", &numbers, Part::new(0, 2));
    for (done, before, after) in taken {
        let report = &done.report;
        assert_eq!(report.pages_corrupt, 0);
        assert!(report.pages_checked > 0);
        assert_eq!(
            report.kind,
            if report.generation == 1 {
                "full"
            } else {
                "incremental"
            }
        );
        if !booted.contains(&report.generation) {
            continue;
        }
        let name = format!("restored-{}", report.generation);
        let restored = site
            .restore(Some(report.generation), &name)
            .expect("a restore");
        let gtid = site.check_bank_at(&restored.target, before, after);
        if report.coordinates.gtid.is_some() {
            assert_eq!(
                gtid, report.coordinates.gtid,
                "the image is at its coordinates"
            );
        }
    }
    let [full, .., last] = taken else {
        panic!("several generations");
    };
    let (full, last) = (full.0.report.bytes_stored, last.0.report.bytes_stored);
    assert!(full > 8 << 20, "{full} bytes were stored first");
    assert!(
        last < full / 2,
        "{last} bytes were stored at the end of {full}"
    );
}

/// Makes a filesystem of so many bytes.
type MakeFs = fn(u64) -> LoopFs;

/// The filesystems and the ways that the servers share: each way is gone on one server, which in a sample is the
/// fastest one for most of them.
const GROUNDS: [(MakeFs, Way); 7] = [
    (LoopFs::xfs, Way::Reflink),
    (LoopFs::btrfs, Way::Hook),
    (LoopFs::xfs, Way::ReflinkStop),
    (LoopFs::btrfs, Way::Btrfs),
    (LoopFs::xfs, Way::Copy),
    (LoopFs::btrfs, Way::Reflink),
    (LoopFs::btrfs, Way::Copy),
];

/// Puts a server through so many of them in a sample: those that follow the first ones.
fn on(server: fn() -> TestServer, behind: usize, some: usize) {
    let mut grounds = GROUNDS;
    grounds.rotate_left(behind);
    for (fs, way) in draw("filesystems and ways", &grounds, some) {
        let fs = fs(4 * GIB);
        println!("{way:?} on {}", fs.kind());
        match way {
            Way::Copy => stopped_case(server(), fs),
            _ => case(server(), fs, way),
        }
    }
}

#[test]
fn of_mariadb() {
    on(mariadb_10_11, 0, 5);
}

#[test]
fn of_mysql8() {
    on(mysql_8_0_15, 5, 1);
}

#[test]
fn of_mysql57() {
    on(mysql_5_7_22, 6, 1);
}
