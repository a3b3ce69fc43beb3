//! Are tables of engines other than InnoDB, and the server's own, intact and point-in-time consistent in
//! every copy that the server's own hot-copy tool makes under load?

use evenkeel_backup::backup::SnapshotChoice;
use evenkeel_cases::Site;
use evenkeel_cases::engines::{ALL, RESTLESS, go_round};
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::effort::rounds;
use evenkeel_testkit::servers::mariadb_10_11;

const GIB: u64 = 1 << 30;

/// So that a new log of Aria's is begun in almost every round, while the tool copies.
const SHORT_LOGS: &str = "--aria-log-file-size=8M";

/// Every round stores a generation, against the one before, and restores it.
fn case(aria: bool) {
    let rounds = rounds("other engines", 1, ALL / 2);
    let options = [&RESTLESS[..], &[SHORT_LOGS]].concat();
    let site = Site::start(mariadb_10_11(), LoopFs::ext4(8 * GIB), 100, &options);
    let request = site.request(SnapshotChoice::Engine);
    go_round(&site, &request, &site.fs.join("copy"), rounds, aria);
}

#[test]
fn mariadb_with_aria() {
    case(true);
}

#[test]
fn mariadb_without_aria() {
    case(false);
}
