//! Does a server run on logical volumes in the machine, and is a volume's snapshot point-in-time consistent?

use evenkeel_cases::Site;
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::{LoopFs, Lvm, Scratch};
use std::path::Path;
use std::process::Command;

const MIB: u64 = 1 << 20;

/// A snapshot under traffic, mounted, copied, booted.
fn case(kind: &'static str, options: &str) {
    let lvm = Lvm::new("evk");
    lvm.pool("pool", 1200 * MIB, &["--chunksize=64k"]);
    let device = lvm.thin("pool", "mysql", 800 * MIB);
    let site = Site::start(mariadb_10_11(), LoopFs::on(&device, kind), 200, &[]);
    let traffic = site.traffic(2);
    traffic.wait_for(20);
    let before = traffic.marks();
    let snapshot = lvm.thin_snapshot("mysql", "kept");
    let after = traffic.marks();
    traffic.wait_for(20);
    traffic.assert_undisturbed();
    drop(traffic.stop());
    let scratch = Scratch::new();
    let view = scratch.join("view");
    std::fs::create_dir(&view).expect("a mount point");
    run("mount", &["-o", options], &[&snapshot, &view]);
    run("cp", &["-a"], &[&view.join("data"), &scratch.join("copy")]);
    run("umount", &[], &[&view]);
    site.check_bank_at(&scratch.join("copy"), &before, &after);
}

fn run(program: &str, args: &[&str], paths: &[&Path]) {
    let status = Command::new(program).args(args).args(paths).status();
    assert!(status.expect(program).success(), "{program} {paths:?}");
}

#[test]
fn mariadb() {
    // The snapshot's log is replayed when it is mounted, so it is mounted writable.
    let mounts = [("ext4", "noatime"), ("xfs", "noatime,nouuid")];
    for (kind, options) in draw("filesystems of servers", &mounts, 1) {
        case(kind, options);
    }
}
