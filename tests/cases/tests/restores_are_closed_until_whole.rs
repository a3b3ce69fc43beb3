//! Can the server's account change what root still works on, while a directory is restored?

use evenkeel_cases::failpoints::RESTORE;
use evenkeel_cases::points::{add, archive, make_table, restore_to_command};
use evenkeel_cases::program::{Evenkeel, killed_at, run};
use evenkeel_cases::{SMALL, Site};
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::servers::{account, give_to_server, make_server_dir, mariadb_10_11};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

const GIB: u64 = 1 << 30;

/// Points at which root has still to write, or to name files, in the directory.
const BEFORE_THE_END: [&str; 4] = [
    "restore::apply::stretch",
    "restore::applied",
    "restore::publish::synced",
    "restore::publish::unheld",
];

fn assert_closed(directory: &Path, point: &str) {
    let found = fs::metadata(directory).unwrap();
    let seen = (found.uid(), found.mode() & 0o077);
    assert_eq!(seen, (0, 0), "{point}: {}", directory.display());
}

fn owner_and_mode(path: &Path) -> ((u32, u32), u32) {
    let found = fs::metadata(path).unwrap();
    ((found.uid(), found.gid()), found.mode() & 0o7777)
}

#[test]
fn nobody_else_enters_before_the_last_file_has_its_name() {
    assert!(BEFORE_THE_END.iter().all(|point| RESTORE.contains(point)));
    let mut site = Site::start(mariadb_10_11(), LoopFs::xfs(3 * GIB), 10, &[]);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    site.kill();
    let expected = owner_and_mode(&site.launch.datadir);
    assert!(expected.0.0 > 0 && expected.0.1 > 0, "{expected:?}");
    let volume = LoopFs::ext4(GIB);
    give_to_server(volume.path());
    // What lies beside a data directory is often the server's account's too.
    let beside = site.fs.join("beside");
    make_server_dir(&beside);
    give_to_server(&beside);
    let plain = beside.join("plain");
    let staging = beside.join("plain.evenkeel-restoring");
    for (target, worked_on) in [
        (plain.as_path(), &staging),
        (volume.path(), &volume.path().to_owned()),
    ] {
        let restore = || evenkeel.restore(&site.repository(), target, &[]);
        for point in BEFORE_THE_END {
            let killed = run(killed_at(restore(), point));
            assert_eq!(killed.signal, Some(9), "{point}: {killed:?}");
            assert_closed(worked_on, point);
        }
        let whole = run(restore());
        assert_eq!(whole.code, Some(0), "{whole:?}");
        assert_eq!(owner_and_mode(target), expected, "{}", target.display());
        assert_eq!(owner_and_mode(&target.join("bank")).0, expected.0);
    }
}

/// A server program that does something as it ends, in its data directory.
fn program_that_ends_with(site: &Site, what: &str) -> PathBuf {
    let program = site.fs.join("mariadbd");
    let script = format!(
        "#!/bin/sh\n\
         for word in \"$@\"; do case \"$word\" in --datadir=*) cd \"${{word#--datadir=}}\";; esac; done\n\
         case \"$*\" in *--datadir*) ;; *) exec /usr/sbin/mariadbd \"$@\";; esac\n\
         trap 'kill $server' TERM\n\
         /usr/sbin/mariadbd \"$@\" &\n\
         server=$!\n\
         wait $server\n\
         wait $server\n\
         {what}\n"
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    program
}

#[test]
fn what_a_replaying_server_leaves_is_not_followed() {
    let mut site = Site::start(mariadb_10_11(), LoopFs::xfs(3 * GIB), 10, &SMALL[..0]);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut session = site.running().session().unwrap();
    make_table(&mut session);
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    let one = add(&mut session, 1);
    assert_eq!(archive(&evenkeel, &site, &[]).code, Some(0));
    site.kill();
    let target = site.fs.join("restored");
    let precious = site.fs.join("precious");
    let text = format!("{}.evenkeel-restoring/x\n", target.display());
    fs::write(&precious, &text).unwrap();
    let plant = format!(
        "rm binlog.index && ln -s {} binlog.index && chmod 777 bank",
        precious.display()
    );
    let program = program_that_ends_with(&site, &plant);
    let restore = || {
        let mut restore = restore_to_command(&evenkeel, &site, &target, &one.moved(0));
        restore.arg("--server-binary").arg(&program);
        restore
    };
    let ended = run(restore());
    assert_eq!(fs::read_to_string(&precious).unwrap(), text, "{ended:?}");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.message().contains("binlog.index"), "{ended:?}");
    assert!(!target.exists());

    // All is root's again before root goes on.
    program_that_ends_with(&site, "chmod 777 bank . && mkdir -m 777 more");
    let killed = run(killed_at(restore(), "point::taken_back"));
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    let staging = site.fs.join("restored.evenkeel-restoring");
    assert_closed(&staging, "point::taken_back");
    for name in ["bank", "more", "points"] {
        let (owner, mode) = owner_and_mode(&staging.join(name));
        assert_eq!((owner.0, mode & 0o022), (0, 0), "{name}");
    }
    let ended = run(restore());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let server = account().unwrap();
    let server = (server.uid, server.gid);
    for name in [
        "",
        "bank",
        "more",
        "points",
        "ibdata1",
        "bank/accounts_0.ibd",
    ] {
        assert_eq!(owner_and_mode(&target.join(name)).0, server, "{name}");
    }
}
