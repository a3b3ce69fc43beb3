//! Are tables of engines other than InnoDB, and the server's own, intact and point-in-time consistent in
//! every snapshot of a logical volume that is made under load?

use evenkeel_backup::backup::SnapshotChoice;
use evenkeel_cases::engines::{ALL, RESTLESS, go_round};
use evenkeel_testkit::effort::rounds;
use evenkeel_vm::{Case, MIB, VolumeKind};
use std::path::Path;
use std::process::Command;

/// In memory, and another filesystem than the snapshot's: the images are copied.
const COPY: &str = "/dev/shm/copy";

fn case(kind: VolumeKind, filesystem: &'static str, sample: u32, (part, of): (u32, u32)) {
    let rounds = rounds("other engines", sample, ALL * part / of);
    let case = Case::start_with(kind, filesystem, &RESTLESS);
    give_way(case.site.running().pid());
    let request = case.site.request(SnapshotChoice::Lvm);
    go_round(&case.site, &request, Path::new(COPY), rounds, true);
    let left = case.snapshots();
    let base = usize::from(kind != VolumeKind::Thick);
    assert!(left.len() <= base, "{left:?}");
}

/// Has the server, and so the clients whom it answers, leave the machine's one processor to whoever makes the
/// snapshot: that takes a dozen programs of LVM, and half a minute beside ten clients in a rush.
fn give_way(server: i32) {
    let pid = server.to_string();
    let status = Command::new("renice")
        .args(["-n", "10", "-p", &pid])
        .status();
    assert!(status.expect("renice runs").success());
}

const THIN: VolumeKind = VolumeKind::Thin(1200 * MIB);

#[test]
fn thick_ext4() {
    case(VolumeKind::Thick, "ext4", 1, (1, 4));
}

#[test]
fn thick_xfs() {
    case(VolumeKind::Thick, "xfs", 1, (1, 4));
}

#[test]
fn thin_ext4() {
    case(THIN, "ext4", 1, (1, 4));
}

#[test]
fn thin_xfs() {
    case(THIN, "xfs", 1, (1, 4));
}
