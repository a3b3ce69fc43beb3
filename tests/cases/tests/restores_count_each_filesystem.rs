//! Is the space that a restore needs counted for each filesystem by itself?

use evenkeel_backup::backup::SnapshotChoice;
use evenkeel_backup::restore::{RestoreRequest, restore};
use evenkeel_cases::leftovers::names_in;
use evenkeel_cases::{SMALL, Site, back_up, quiet};
use evenkeel_op::Cancel;
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::servers::make_server_dir;
use evenkeel_testkit::servers::{SERVER_DEADLINE, mysql_5_7_22};
use std::fs;

const MIB: u64 = 1 << 20;

/// A server whose redo log, two files of 32 MiB, lies outside the data directory.
fn start(fs: LoopFs) -> Site {
    let redo = fs.join("redo");
    make_server_dir(&redo);
    let place = format!("--innodb-log-group-home-dir={}", redo.display());
    let mut args = SMALL.to_vec();
    args.push(&place);
    let server = mysql_5_7_22();
    let launch = server.plan(&fs.join("data"), &args);
    launch.initialise(SERVER_DEADLINE, &Cancel::new()).unwrap();
    Site::of(server, fs, launch, 50)
}

#[test]
fn that_of_the_target_and_of_a_root_elsewhere() {
    let site = start(LoopFs::xfs(4 << 30));
    back_up(&site.request(SnapshotChoice::Reflink)).unwrap();

    // The redo log's own filesystem is too small, whatever the target's has.
    let small = LoopFs::ext4(32 * MIB);
    let mut request = RestoreRequest::new(site.repository(), None, &site.fs.join("restored"));
    request
        .map_roots
        .insert("redo".to_owned(), small.join("redo"));
    let error = restore(&request, quiet(&Cancel::new())).unwrap_err();
    assert_eq!(error.kind().exit_code(), 14, "{}", error.chain());
    let reported = error.to_string();
    assert!(
        reported.contains("redo needs") && reported.contains(&*small.path().to_string_lossy()),
        "{reported}"
    );
    assert!(error.hints()[0].contains("--map-root redo="), "{error}");
    assert_eq!(
        names_in(small.path()),
        ["lost+found"],
        "nothing was written"
    );

    // The target's is large enough for the data, though not for the redo log as well.
    let medium = LoopFs::ext4(72 * MIB);
    let mut request = RestoreRequest::new(site.repository(), None, &medium.join("restored"));
    request
        .map_roots
        .insert("redo".to_owned(), site.fs.join("restored-redo"));
    let restored = restore(&request, quiet(&Cancel::new()))
        .unwrap_or_else(|error| panic!("{}", error.chain()));
    assert!(restored.target.join("ibdata1").exists());
    // Together they would not fit.
    request.map_roots.clear();
    request.target = medium.join("again");
    fs::remove_dir_all(restored.target).unwrap();
    let error = restore(&request, quiet(&Cancel::new())).unwrap_err();
    assert!(error.to_string().contains("data and redo needs"), "{error}");
}
