//! Does a backup whose snapshot or pool is too full, or fills up meanwhile, say so, remove its
//! snapshot before the server's own writes fail, and make no generation?

use evenkeel_cases::leftovers::assert_unharmed;
use evenkeel_cases::program::run;
use evenkeel_vm::{Case, MIB, VolumeKind};

/// A thick snapshot with room for 12 MiB.
const SMALL: &str = "--snapshot-size=12M";

#[test]
fn a_group_without_room_is_refused() {
    let case = Case::start(VolumeKind::Thick, "ext4");
    let free = case.lvm.free_bytes();
    let _ = case.lvm.thick("ballast", free - 8 * MIB);
    let ended = run(case.backup(&[]));
    case.assert_failed(&ended, 14, "does not fit", &[]);
    assert_eq!(case.generations(), 0);
    case.lvm.remove("ballast");
    assert_eq!(case.back_up(&[]).generation(), 1);
}

#[test]
fn a_thick_snapshot_that_fills_up_ends_the_run() {
    let case = Case::start(VolumeKind::Thick, "xfs");
    let mut slow = case.begin_slow(&[SMALL]);
    let snapshots = case.snapshots();
    assert_eq!(snapshots.len(), 1, "{snapshots:?}");
    // More than there is room for: whether it is seen to fill up or to be lost, the run ends.
    let mut written = 0;
    case.write_until(64, || {
        written += 1;
        written > 32 || slow.has_ended()
    });
    let ended = slow.end();
    case.assert_failed(&ended, 1, "LVM snapshot", &[]);
    assert_eq!(case.generations(), 0);
    assert_eq!(case.back_up(&[]).generation(), 1);
}

#[test]
fn a_pool_that_is_too_full_is_refused() {
    let case = Case::start(VolumeKind::Thin(240 * MIB), "ext4");
    assert_eq!(case.back_up(&[]).generation(), 1);
    case.write_until(400, || case.percent("pool", "data_percent") > 92.0);
    let ended = run(case.backup(&[]));
    // What the kept snapshot held back is given up first, but is not enough.
    case.assert_failed(&ended, 14, "% full of data", &[]);
    assert_eq!(case.generations(), 1);
}

#[test]
fn a_pool_that_fills_up_ends_the_run() {
    let case = Case::start(VolumeKind::Thin(240 * MIB), "xfs");
    case.write_until(400, || case.percent("pool", "data_percent") > 85.0);
    let mut slow = case.begin_slow(&[]);
    // What is written from here on is on the server's filesystem; it goes on until the run has to give
    // up. The bank's clients come afterwards: how much they write depends on the machine's speed, and
    // would fill the last twelve MiB by themselves.
    case.write_until(400, || {
        slow.has_ended() || case.percent("pool", "data_percent") >= 95.5
    });
    let ended = slow.end();
    case.assert_failed(&ended, 1, "% full of data", &[]);
    assert_eq!(case.generations(), 0);
    let used = case.percent("pool", "data_percent");
    assert!(used < 100.0, "the pool was never full: {used} %");
    let traffic = case.traffic();
    traffic.wait_for(20);
    traffic.assert_undisturbed();
    drop(traffic.stop());
    assert_unharmed(case.site.running(), "afterwards");
}
