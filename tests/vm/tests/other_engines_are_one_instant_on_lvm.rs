//! Are tables of engines other than InnoDB, and the server's own, intact and point-in-time consistent in
//! every snapshot of a logical volume that is made under load?

use evenkeel_backup::backup::SnapshotChoice;
use evenkeel_cases::engines::{ALL, RESTLESS, go_round};
use evenkeel_testkit::effort::{draw, rounds};
use evenkeel_vm::{Case, MIB, VolumeKind};
use std::path::Path;
use std::process::Command;

/// In memory, and another filesystem than the snapshot's: the images are copied.
const COPY: &str = "/dev/shm/copy";

fn case(kind: VolumeKind, filesystem: &'static str) {
    let rounds = rounds("other engines", 1, ALL / 4);
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
fn on_each_kind_of_volume() {
    let volumes = [
        (VolumeKind::Thick, "ext4"),
        (THIN, "xfs"),
        (VolumeKind::Thick, "xfs"),
        (THIN, "ext4"),
    ];
    for (kind, filesystem) in draw("volumes", &volumes, 1) {
        case(kind, filesystem);
    }
}
