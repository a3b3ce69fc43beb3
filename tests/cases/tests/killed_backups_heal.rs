//! Does a backup that is killed at any of its steps leave the server free, the older generations
//! whole, and nothing that the next backup does not clean up by itself?

use evenkeel_backup::restore::{RestoreRequest, restore};
use evenkeel_cases::failpoints::{self, BTRFS, EVERY_BACKUP, FIRST_BACKUP, REFLINK, SPLICE};
use evenkeel_cases::leftovers::{
    assert_no_unfinished, assert_only_the_base, assert_same_tree, assert_unharmed,
    holding_directories,
};
use evenkeel_cases::program::{Evenkeel, killed_at, run};
use evenkeel_cases::{Site, quiet};
use evenkeel_op::Cancel;
use evenkeel_testkit::effort::{Part, share};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{BankTraffic, LoopFs, TestServer};
use std::fs;

const GIB: u64 = 1 << 30;
/// Of the points of every backup, those that MySQL 5.7 comes by, which cannot block DDL.
const WITHOUT_DDL_LOCK: [&str; 3] = [
    "backup::freeze::moment",
    "backup::freeze::taken",
    "backup::stored",
];

/// A site whose first generation is taken, and what it restores to.
struct Case {
    site: Site,
    traffic: BankTraffic,
    evenkeel: Evenkeel,
    flags: &'static [&'static str],
}

impl Case {
    fn start(server: TestServer, fs: LoopFs, flags: &'static [&'static str]) -> Self {
        let site = Site::start(server, fs, 500, &[]);
        let traffic = site.traffic(2);
        let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        let case = Self {
            site,
            traffic,
            evenkeel,
            flags,
        };
        assert_eq!(run(case.evenkeel.backup(&case.site, flags)).generation(), 1);
        case.site.restore(Some(1), "first").unwrap();
        case
    }

    fn kill_at(&self, point: &str) {
        let ended = run(killed_at(
            self.evenkeel.backup(&self.site, self.flags),
            point,
        ));
        assert_eq!(
            ended.signal,
            Some(9),
            "{point} was never reached: {ended:?}"
        );
        assert_unharmed(self.site.running(), point);
        self.traffic.wait_for(5);
    }

    /// Old generations are what they were; the next run needs no help and leaves nothing behind.
    fn check(&self, point: &str) {
        self.site.restore(Some(1), "again").unwrap();
        assert_same_tree(
            &self.site.fs.join("first"),
            &self.site.fs.join("again"),
            point,
        );
        fs::remove_dir_all(self.site.fs.join("again")).unwrap();

        let before = self.traffic.marks();
        let generation = run(self.evenkeel.backup(&self.site, self.flags)).generation();
        let after = self.traffic.marks();
        assert_unharmed(self.site.running(), point);
        assert_only_the_base(self.site.fs.path(), point);
        assert_no_unfinished(&self.site.repository(), point);

        let restored = self.site.restore(Some(generation), "next").unwrap();
        self.site.check_bank_at(&restored.target, &before, &after);
        fs::remove_dir_all(restored.target).unwrap();
    }

    /// The servers share a kind of points: in a sample each is put through some of them.
    fn at_each(&self, points: &[&str], part: Part) {
        for point in share("kill points of a backup", points, part) {
            println!("killed at {point}");
            self.kill_at(point);
            self.check(point);
        }
    }

    /// Without a place for snapshots, as before the very first run.
    fn at_each_of_the_first(&self, part: Part) {
        for point in share("kill points of a first backup", &FIRST_BACKUP, part) {
            println!("killed at {point}");
            for holding in holding_directories(self.site.fs.path()) {
                // A btrfs snapshot cannot be removed as a directory.
                for entry in fs::read_dir(&holding).unwrap() {
                    let _ = std::process::Command::new("btrfs")
                        .args(["-q", "subvolume", "delete"])
                        .arg(entry.unwrap().path().join("snapshot"))
                        .output();
                }
                fs::remove_dir_all(holding).unwrap();
            }
            self.kill_at(point);
            self.check(point);
        }
    }

    fn end(self) {
        self.traffic.assert_undisturbed();
    }
}

#[test]
fn mariadb_splice_on_xfs() {
    let case = Case::start(
        mariadb_10_11(),
        LoopFs::xfs(4 * GIB),
        &["--snapshot=reflink"],
    );
    case.at_each_of_the_first(Part::new(0, 2));
    case.at_each(&EVERY_BACKUP, Part::new(0, 3));
    case.at_each(&REFLINK, Part::new(0, 3));
    case.at_each(&SPLICE, Part::new(0, 2));
    case.end();
}

#[test]
fn mariadb_snapshot_on_btrfs() {
    let case = Case::start(
        mariadb_10_11(),
        LoopFs::btrfs(4 * GIB),
        &["--snapshot=btrfs"],
    );
    case.at_each_of_the_first(Part::new(1, 2));
    case.at_each(&EVERY_BACKUP, Part::new(1, 3));
    case.at_each(&BTRFS, Part::WHOLE);
    case.end();
}

/// The process is paused for the clone of the logs.
#[test]
fn mysql8_splice_on_xfs() {
    let case = Case::start(
        mysql_8_0_15(),
        LoopFs::xfs(4 * GIB),
        &["--snapshot=reflink"],
    );
    case.at_each(&EVERY_BACKUP, Part::new(2, 3));
    case.at_each(&REFLINK, Part::new(1, 3));
    case.at_each(&SPLICE, Part::new(1, 2));
    case.end();
}

/// The process is paused for the whole clone.
#[test]
fn mysql57_pause_on_xfs() {
    let case = Case::start(
        mysql_5_7_22(),
        LoopFs::xfs(4 * GIB),
        &["--snapshot=reflink"],
    );
    case.at_each(&WITHOUT_DDL_LOCK, Part::new(0, 3));
    case.at_each(&REFLINK, Part::new(2, 3));
    case.end();
}

#[test]
fn the_very_first_backup_may_be_killed_too() {
    let site = Site::start(mariadb_10_11(), LoopFs::xfs(4 * GIB), 500, &[]);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    for point in ["backup::begun", "backup::freeze::moment", "backup::stored"] {
        let ended = run(killed_at(evenkeel.backup(&site, &[]), point));
        assert_eq!(
            ended.signal,
            Some(9),
            "{point} was never reached: {ended:?}"
        );
        assert_unharmed(site.running(), point);
        let nothing = RestoreRequest::new(site.repository(), None, &site.fs.join("nothing"));
        assert!(restore(&nothing, quiet(&Cancel::new())).is_err(), "{point}");
        assert!(!site.fs.join("nothing").exists(), "{point}");
    }
    let ended = run(evenkeel.backup(&site, &[]));
    assert_eq!(ended.answer["kind"], "full");
    let generation = ended.generation();
    assert_only_the_base(site.fs.path(), "after the first");
    assert_no_unfinished(&site.repository(), "after the first");
    let restored = site.restore(Some(generation), "restored").unwrap();
    let marks = evenkeel_testkit::Marks::default();
    site.check_bank_at(&restored.target, &marks, &marks);
}

#[test]
fn no_fail_point_is_forgotten() {
    let crates = evenkeel_testkit::checkout().join("crates");
    let mut found = Vec::new();
    for part in [
        "backup",
        "recovery",
        "replica",
        "repository",
        "server",
        "snapshot",
    ] {
        let top = crates.join(part).join("src");
        for path in evenkeel_cases::leftovers::all_files(&top).into_keys() {
            let text = fs::read_to_string(top.join(path)).unwrap();
            for rest in text.split("fail_point!(\"").skip(1) {
                found.push(rest.split('"').next().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found.dedup();
    assert!(found.len() > 20, "the search itself is broken: {found:?}");
    assert_eq!(found, failpoints::all());
}
