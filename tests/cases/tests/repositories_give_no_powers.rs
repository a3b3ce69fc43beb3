//! Can what a repository says, or what lies in it, run or give powers to anybody on the host that restores?

use evenkeel_cases::forged::forge;
use evenkeel_cases::mounting::Mounting;
use evenkeel_cases::points::{add, archive, make_table, mark, restore_to};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_cases::{SMALL, Site};
use evenkeel_server::launch::Binary;
use evenkeel_testkit::servers::{
    account, give_to_server, make_server_dir, mariadb_10_11, mysql_8_0_15,
};
use evenkeel_testkit::{LoopFs, TestServer};
use rustix::fs::XattrFlags;
use serde_json::json;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The server's own user replaces the program that the backup names: root must not run it.
#[test]
fn a_program_that_its_user_can_change_is_not_run() {
    let fs = LoopFs::xfs(3 << 30);
    let mut server = mariadb_10_11();
    let own = fs.join("programs/mariadbd");
    make_server_dir(&fs.join("programs"));
    fs::copy(&server.binary.path, &own).unwrap();
    give_to_server(&fs.join("programs"));
    server.binary = Binary {
        path: own.clone(),
        ..server.binary
    };
    let launch = server.prepare(&fs.join("data"), &SMALL);
    let mut site = Site::of(server, fs, launch, 10);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    site.kill();
    let proof = site.fs.join("ran");
    fs::remove_file(&own).unwrap();
    fs::write(
        &own,
        format!(
            "#!/bin/sh\nid > {}\nexec /usr/sbin/mariadbd \"$@\"\n",
            proof.display()
        ),
    )
    .unwrap();
    fs::set_permissions(&own, Permissions::from_mode(0o755)).unwrap();
    give_to_server(&own);
    let mut verify = evenkeel.command(&["verify", "--boot"]);
    verify.arg(site.repository());
    let ended = run(verify);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!proof.exists(), "it ran: {:?}", fs::read_to_string(&proof));
}

/// A directory that everybody may write into.
fn open_directory(fs: &LoopFs) -> PathBuf {
    let open = fs.join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    open
}

/// What the archived statements write would be root's, wherever they like.
fn statements_write_no_files(server: TestServer, more: &[&str]) {
    let mut site = Site::start(server, LoopFs::xfs(3 << 30), 10, more);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut session = site.running().session().unwrap();
    make_table(&mut session);
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    let before = add(&mut session, 1);
    let written = open_directory(&site.fs).join("written");
    for sql in [
        "SET SESSION binlog_format = STATEMENT",
        &format!(
            "CREATE FUNCTION points.writes() RETURNS INT DETERMINISTIC BEGIN SELECT 'x' INTO OUTFILE '{}'; \
             RETURN 2; END",
            written.display()
        ),
        "INSERT INTO points.n VALUES (points.writes())",
    ] {
        session.run(sql).unwrap();
    }
    fs::remove_file(&written).unwrap();
    let after = mark(&mut session);
    assert_eq!(archive(&evenkeel, &site, &[]).code, Some(0));
    site.kill();
    let target = site.fs.join("restored");
    let ended = restore_to(&evenkeel, &site, &target, &after.moved(0));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.message().contains("secure-file-priv"), "{ended:?}");
    assert!(!written.exists());
    let ended = restore_to(&evenkeel, &site, &target, &before.moved(0));
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn archived_statements_write_no_files() {
    statements_write_no_files(mariadb_10_11(), &[]);
}

#[test]
fn archived_statements_write_no_files_on_mysql_8_0_15() {
    statements_write_no_files(mysql_8_0_15(), &["--secure-file-priv="]);
}

/// A damaged file may make a server do anything: one that is started on a repository's is not root's.
#[test]
fn servers_on_restored_files_are_not_roots() {
    let mut site = Site::start(mariadb_10_11(), LoopFs::xfs(3 << 30), 10, &[]);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut session = site.running().session().unwrap();
    make_table(&mut session);
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    let one = add(&mut session, 1);
    assert_eq!(archive(&evenkeel, &site, &[]).code, Some(0));
    site.kill();
    let whose = open_directory(&site.fs);
    let program = site.fs.join("mariadbd");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *--datadir*) id -u > {}/$$; esac\nexec /usr/sbin/mariadbd \"$@\"\n",
        whose.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    for more in [&[][..], &["--mount"]] {
        let mut verify = evenkeel.command(&["verify", "--boot", "--server-binary", program]);
        verify.args(more).arg(site.repository());
        let ended = run(verify);
        assert_eq!(ended.code, Some(0), "{more:?}: {ended:?}");
    }
    let target = site.fs.join("restored");
    let mut restore = evenkeel.restore(&site.repository(), &target, &["--to", &one.moved(0)]);
    restore.args(["--server-binary", program]);
    let ended = run(restore);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let files = fs::read_dir(&whose)
        .unwrap()
        .map(|file| file.unwrap().path());
    let users: Vec<String> = files
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    assert_eq!(users.len(), 3, "{users:?}");
    assert!(!users.iter().any(|user| user.trim() == "0"), "{users:?}");
    // What it made belongs to the owner of the rest.
    let owner = |path: &Path| fs::metadata(path).unwrap().uid();
    let bank = target.join("bank/accounts_0.ibd");
    assert_eq!(owner(&target), account().unwrap().uid);
    assert_eq!(owner(&bank), account().unwrap().uid);
}

/// What prepares a tool's copy reads logs, pages and options of the repository.
#[test]
fn tools_on_restored_files_are_not_roots() {
    let mut site = Site::start(mariadb_10_11(), LoopFs::ext4(3 << 30), 10, &[]);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let backup = evenkeel.backup(&site, &["--snapshot", "engine"]);
    assert_eq!(run(backup).generation(), 1);
    site.kill();
    let whose = open_directory(&site.fs);
    let tool = site.fs.join("tool");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *--prepare*) id -u > {}/$$;; esac\nexec mariadb-backup \"$@\"\n",
        whose.display()
    );
    fs::write(&tool, script).unwrap();
    fs::set_permissions(&tool, Permissions::from_mode(0o755)).unwrap();
    let flags = ["--engine-tool", tool.to_str().unwrap()];
    let target = site.fs.join("restored");
    let ended = run(evenkeel.restore(&site.repository(), &target, &flags));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut verify = evenkeel.command(&["verify", "--boot", "--mount"]);
    verify.args(flags).arg(site.repository());
    let ended = run(verify);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let files = fs::read_dir(&whose)
        .unwrap()
        .map(|file| file.unwrap().path());
    let users: Vec<String> = files
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    assert_eq!(users.len(), 2, "{users:?}");
    assert!(!users.iter().any(|user| user.trim() == "0"), "{users:?}");
    let owner = |path: &Path| fs::metadata(path).unwrap().uid();
    for made in ["", "ib_logfile0", "bank/accounts_0.ibd"] {
        assert_eq!(owner(&target.join(made)), account().unwrap().uid, "{made}");
    }
    let log = fs::metadata(target.join("ib_logfile0")).unwrap();
    assert_eq!(log.mode() & 0o007, 0, "others read the redo log");
}

/// Files that are not the generation's, which the account of its servers could write to.
fn live_files(fs: &LoopFs) -> PathBuf {
    let live = fs.join("live");
    make_server_dir(&live);
    fs::write(live.join("ibdata1"), "somebody else's").unwrap();
    give_to_server(&live.join("ibdata1"));
    live
}

/// Forged facts name files elsewhere: a server that is started on what comes back would open these.
#[test]
fn a_generation_leads_its_server_nowhere_else() {
    let mut site = Site::start(mariadb_10_11(), LoopFs::xfs(3 << 30), 10, &[]);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut session = site.running().session().unwrap();
    make_table(&mut session);
    let link = site.fs.join("data/bank/away.isl");
    fs::write(
        &link,
        site.fs.join("data/bank/accounts_0.ibd").to_str().unwrap(),
    )
    .unwrap();
    give_to_server(&link);
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    let one = add(&mut session, 1);
    assert_eq!(archive(&evenkeel, &site, &[]).code, Some(0));
    site.kill();
    let live = live_files(&site.fs);
    let (target, repository) = (site.fs.join("restored"), site.repository());
    let mountpoint = site.fs.join("mounted");
    fs::create_dir(&mountpoint).unwrap();
    let verbs = || {
        let mut verify = evenkeel.command(&["verify", "--boot"]);
        verify.arg(&repository);
        let mut mount = evenkeel.command(&["mount", "--writable-scratch"]);
        mount.arg(site.fs.join("scratch"));
        mount.arg(&repository).arg(&mountpoint);
        [
            evenkeel.restore(&repository, &target, &[]),
            evenkeel.restore(&repository, &target, &["--to", &one.moved(0)]),
            verify,
            mount,
        ]
    };
    let refused = |named: &str| {
        for verb in verbs() {
            let ended = run(verb);
            assert_eq!(ended.code, Some(14), "{named}: {ended:?}");
            assert!(ended.message().contains(named), "{named}: {ended:?}");
            assert!(!target.exists(), "{named}");
            let found = fs::read_to_string(live.join("ibdata1")).unwrap();
            assert_eq!(found, "somebody else's", "{named}");
        }
    };
    for named in [
        format!("{}/ibdata1", live.display()),
        "../live/ibdata1".to_owned(),
        "bank/../../live/ibdata1".to_owned(),
    ] {
        forge(&repository, 1, |facts| {
            let spec = format!("{named}:12M:autoextend");
            facts["settings"]["innodb_data_file_path"] = json!(spec);
        });
        refused(&named);
    }
    forge(&repository, 1, |facts| {
        facts["settings"]["innodb_data_file_path"] = json!("ibdata1:12M:autoextend");
        // The table's link leads to the live data directory then.
        facts["roots"]["data"] = json!("/nowhere");
    });
    refused("away.isl");
}

/// A file that runs as its owner would make whoever can write into the repository that owner.
#[test]
fn permissions_to_run_as_somebody_else_do_not_come_back() {
    let fs = LoopFs::xfs(3 << 30);
    let server = mariadb_10_11();
    let launch = server.prepare(&fs.join("data"), &SMALL);
    let mut site = Site::of(server, fs, launch, 10);
    let table = site.fs.join("data/bank/accounts_0.frm");
    fs::set_permissions(&table, Permissions::from_mode(0o6755)).unwrap();
    let set = |name: &str, value: &[u8]| {
        rustix::fs::setxattr(&table, name, value, XattrFlags::empty()).unwrap();
    };
    // CAP_SETUID, as setcap writes it.
    set(
        "security.capability",
        &[
            1, 0, 0, 2, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
    );
    set("user.note", b"kept");
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    site.kill();
    site.restore(None, "restored").unwrap();
    let restored = site.fs.join("restored/bank/accounts_0.frm");
    let mode = fs::metadata(&restored).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
    let mut value = [0; 64];
    let length = rustix::fs::getxattr(&restored, "user.note", &mut value).unwrap();
    assert_eq!(&value[..length], b"kept");
    assert!(rustix::fs::getxattr(&restored, "security.capability", &mut value).is_err());
    // Nor is it there in a mount.
    let mountpoint = site.fs.join("mounted");
    let mounting = Mounting::start(
        &evenkeel,
        &site.repository(),
        &mountpoint,
        &["--generation=latest"],
    );
    let shown = mountpoint.join("data/bank/accounts_0.frm");
    let mode = fs::metadata(&shown).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
    assert!(rustix::fs::getxattr(&shown, "security.capability", &mut value).is_err());
    assert_eq!(mounting.end().1, Some(0));
}
