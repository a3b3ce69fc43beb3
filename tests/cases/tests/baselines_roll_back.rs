//! Is a server that was saved while it worked rolled back to exactly what was committed then, repeatedly, and
//! does it run afterwards?

use evenkeel_cases::Site;
use evenkeel_cases::baselines::{Rolled, make_subvolume};
use evenkeel_cases::program::run;
use evenkeel_server::launch::Account;
use evenkeel_testkit::effort::{Part, draw, share};
use evenkeel_testkit::servers::{
    account, mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9,
};
use evenkeel_testkit::{LoopFs, TestServer};
use std::fs;

const GIB: u64 = 1 << 30;

fn start(server: TestServer, fs: LoopFs) -> Rolled {
    if fs.kind() == "btrfs" {
        make_subvolume(&fs.join("data"));
    }
    let site = Site::start(server, fs, 1_000, &[]);
    Rolled::new(site, env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

/// Saved under traffic, rolled back twice, and to what the second rollback replaced.
fn while_it_works(server: TestServer, fs: LoopFs) {
    let method = if fs.kind() == "btrfs" {
        "btrfs"
    } else {
        "reflink"
    };
    let rolled = start(server, fs);
    fs::write(rolled.datadir.join("host.err"), "one line\n").unwrap();
    let traffic = rolled.traffic();
    traffic.wait_for(50);
    let before = traffic.marks();
    let saved = rolled.done(&["save", "before-upgrade"]);
    let after = traffic.marks();
    assert_eq!(saved.answer["baseline"]["method"], method, "{saved:?}");
    assert!(saved.answer["pause_ms"].is_u64(), "{saved:?}");
    traffic.wait_for(50);
    traffic.assert_undisturbed();
    let again = run(rolled.command(&["save", "before-upgrade"]));
    assert_eq!(again.code, Some(14), "{again:?}");

    let plan = rolled.done(&["rollback", "before-upgrade"]);
    assert_eq!(plan.answer["executed"], false);
    traffic.wait_for(10);
    fs::write(rolled.datadir.join("host.err"), "one line\nanother\n").unwrap();
    let back = rolled.done(&["rollback", "before-upgrade", "--execute"]);
    assert_eq!(back.answer["executed"], true, "{back:?}");
    drop(traffic.stop());
    let state = rolled.bank();
    state
        .check_between(&before, &after)
        .unwrap_or_else(|e| panic!("{}", e.chain()));
    let log = fs::read_to_string(rolled.datadir.join("host.err")).unwrap();
    assert_eq!(log, "one line\nanother\n", "what is told to people stays");

    let later = rolled.work(30);
    rolled.done(&[
        "rollback",
        "before-upgrade",
        "--keep-replaced=after",
        "--execute",
    ]);
    assert_eq!(rolled.bank(), state, "the baseline stays what it was");
    rolled.done(&["rollback", "after", "--execute"]);
    rolled
        .bank()
        .check_between(&later, &later)
        .unwrap_or_else(|e| panic!("{}", e.chain()));
    rolled.assert_tidy("at the end");
    rolled.done(&["drop", "before-upgrade", "--execute"]);
    rolled.done(&["drop", "after", "--execute"]);
    assert_eq!(rolled.list_stopped()["baselines"], serde_json::json!([]));
}

/// Saved and rolled back where files cannot be cloned: the server is stopped for the save.
fn where_nothing_clones(server: TestServer) {
    let mut rolled = start(server, LoopFs::ext4(GIB));
    rolled.work(30);
    let refused = run(rolled.command(&["save"]));
    assert_eq!(refused.code, Some(14), "{refused:?}");
    rolled.stop();
    let saved = rolled.done_stopped(&["save"]);
    assert_eq!(saved.answer["baseline"]["method"], "copy", "{saved:?}");
    rolled.start();
    let state = rolled.bank();
    for _ in 0..2 {
        rolled.work(30);
        let back = rolled.done(&["rollback", "--execute"]);
        assert_eq!(rolled.bank(), state);
        let (all, written) = (
            back.answer["baseline"]["bytes"].as_u64().unwrap(),
            back.answer["bytes_written"].as_u64().unwrap(),
        );
        assert!(0 < written && written < all / 2, "{back:?}");
    }
    rolled.assert_tidy("at the end");
}

/// What the servers share: each is rolled back somewhere, and somebody is rolled back everywhere.
const GROUNDS: [&str; 3] = ["xfs", "btrfs", "ext4"];

fn on(server: fn() -> TestServer, nth: usize) {
    for ground in share("filesystems", &GROUNDS, Part::new(nth, GROUNDS.len())) {
        println!("on {ground}");
        match ground {
            "xfs" => while_it_works(server(), LoopFs::xfs(4 * GIB)),
            "btrfs" => while_it_works(server(), LoopFs::btrfs(4 * GIB)),
            _ => where_nothing_clones(server()),
        }
    }
}

#[test]
fn of_mariadb() {
    on(mariadb_10_11, 0);
}

#[test]
fn of_mysql8() {
    on(mysql_8_0_15, 1);
}

#[test]
fn of_mysql57() {
    on(mysql_5_7_22, 2);
}

#[test]
fn of_newer_servers() {
    type Case = (fn() -> TestServer, fn(u64) -> LoopFs);
    let newer: [Case; 2] = [(mariadb_11_8, LoopFs::xfs), (mysql_9, LoopFs::btrfs)];
    for (server, fs) in draw("newer servers", &newer, 1) {
        while_it_works(server(), fs(4 * GIB));
    }
}

/// A data directory is often a mount point: it cannot be exchanged, its entries are.
fn in_a_mount_point(server: TestServer) {
    let fs = LoopFs::xfs(4 * GIB);
    let mut args = evenkeel_cases::SMALL.to_vec();
    args.retain(|arg| !arg.starts_with("--log-bin"));
    let launch = server.prepare(fs.path(), &args);
    let site = Site::of(server, fs, launch, 1_000);
    let mut rolled = Rolled::new(site, env!("CARGO_BIN_EXE_evenkeel-under-test"));
    rolled.work(30);
    rolled.done(&["save", "one"]);
    let state = rolled.bank();
    rolled.work(30);
    // A server finds nothing in what is kept there that it takes for its own.
    rolled.start();
    let later = rolled.work(30);
    rolled.done(&["rollback", "one", "--keep-replaced=two", "--execute"]);
    assert_eq!(rolled.bank(), state);
    rolled.done(&["rollback", "two", "--execute"]);
    rolled
        .bank()
        .check_between(&later, &later)
        .unwrap_or_else(|e| panic!("{}", e.chain()));
    rolled.assert_tidy("at the end");
    rolled.start();
}

#[test]
fn where_it_is_mounted() {
    let servers: [fn() -> TestServer; 2] = [mysql_8_0_15, mariadb_10_11];
    for server in draw("servers in a mount point", &servers, 1) {
        in_a_mount_point(server());
    }
}

#[test]
fn a_stopped_server_stays_stopped() {
    let mut rolled = start(mariadb_10_11(), LoopFs::xfs(GIB));
    rolled.work(30);
    let state = rolled.bank();
    rolled.stop();
    let saved = rolled.done_stopped(&["save"]);
    assert!(saved.answer["pause_ms"].is_null(), "{saved:?}");
    rolled.start();
    rolled.work(30);
    let running = run(rolled.command_stopped(&["rollback", "--execute"]));
    assert_eq!(running.code, Some(14), "{running:?}");
    rolled.stop();
    rolled.done_stopped(&["rollback", "--execute"]);
    assert!(rolled.servers().is_empty());
    rolled.start();
    assert_eq!(rolled.bank(), state);
}

/// One under a container or another supervisor: that is asked to stop it, and to start it.
/// What runs a command as the servers' account.
fn as_account() -> String {
    account().map_or_else(String::new, |Account { uid, gid }| {
        format!("setpriv --reuid {uid} --regid {gid} --clear-groups")
    })
}

#[test]
fn others_stop_and_start_it() {
    let rolled = start(mariadb_10_11(), LoopFs::xfs(GIB));
    rolled.work(30);
    let state = rolled.bank();
    rolled.done(&["save"]);
    rolled.work(30);
    let first = rolled.servers();
    let words = fs::read(format!("/proc/{}/cmdline", first[0])).unwrap();
    let words: Vec<_> = words.split(|byte| *byte == 0).collect();
    let words: Vec<_> = words
        .iter()
        .filter(|word| !word.is_empty())
        .map(|word| format!("'{}'", String::from_utf8_lossy(word)))
        .collect();
    let said = rolled.site.fs.join("said");
    let note = |what: &str| format!("echo {what} >> {}", said.display());
    let stop = format!("{}; kill {}", note("stop"), first[0]);
    let start = format!(
        "{}; setsid {} {} > /dev/null 2>&1 < /dev/null &",
        note("start"),
        as_account(),
        words.join(" ")
    );
    let commands = ["--stop-with", &stop, "--start-with", &start];
    let plan = rolled.done(&[&["rollback"][..], &commands].concat());
    assert_eq!(plan.answer["executed"], false, "{plan:?}");
    assert!(!said.exists(), "only a plan");
    let back = rolled.done(&[&["rollback", "--execute"][..], &commands].concat());
    assert_eq!(back.answer["executed"], true, "{back:?}");
    assert_eq!(fs::read_to_string(&said).unwrap(), "stop\nstart\n");
    assert_ne!(rolled.servers(), first);
    assert_eq!(rolled.bank(), state);
    rolled.assert_tidy("at the end");

    // One that does not stop it is no reason to touch its files.
    rolled.work(30);
    let state = rolled.bank();
    let deaf = ["--stop-with", "true", "--start-with", "true"];
    let words = ["rollback", "--execute", "--stop-deadline", "1s"];
    let refused = run(rolled.command(&[&words[..], &deaf].concat()));
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(rolled.bank(), state);
    rolled.assert_tidy("where it was not stopped");
}

#[test]
fn a_server_that_does_not_start_loses_nothing() {
    let mut rolled = start(mariadb_10_11(), LoopFs::xfs(GIB));
    rolled.done(&["save"]);
    let later = rolled.work(30);
    let kept = rolled.list_stopped()["kept_in"]
        .as_str()
        .unwrap()
        .to_owned();
    let page = std::path::Path::new(&kept).join("kept/baseline/files/ibdata1");
    fs::write(page, "nonsense").unwrap();
    let failed = run(rolled.command(&["rollback", "--execute"]));
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(
        failed.answer["hints"]
            .to_string()
            .contains("rollback replaced"),
        "{failed:?}"
    );
    rolled.done_stopped(&["rollback", "replaced", "--execute"]);
    rolled.start();
    rolled
        .bank()
        .check_between(&later, &later)
        .unwrap_or_else(|e| panic!("{}", e.chain()));
}

#[test]
fn a_backup_is_not_rolled_away() {
    let rolled = start(mariadb_10_11(), LoopFs::xfs(GIB));
    let backup = run(rolled
        .evenkeel
        .backup(&rolled.site, &["--snapshot=reflink"]));
    assert_eq!(backup.code, Some(0), "{backup:?}");
    rolled.done(&["save"]);
    let holding = evenkeel_cases::leftovers::holding_directories(rolled.site.fs.path())
        .into_iter()
        .find(|path| path.join("EVENKEEL-HOLDING").exists())
        .unwrap();
    let lock = fs::File::open(holding.join("lock")).unwrap();
    lock.lock().unwrap();
    let busy = run(rolled.command(&["rollback", "--execute"]));
    assert_eq!(busy.code, Some(11), "{busy:?}");
    lock.unlock().unwrap();
    rolled.done(&["rollback", "--execute"]);
    let backup = run(rolled
        .evenkeel
        .backup(&rolled.site, &["--snapshot=reflink", "--audit"]));
    assert_eq!(backup.code, Some(0), "what changed is found: {backup:?}");
}

/// Tablespaces may be called like what is left out.
#[test]
fn tablespaces_of_any_name_on_xfs() {
    let rolled = start(mysql_8_0_15(), LoopFs::xfs(4 * GIB));
    let mut session = rolled.session();
    let named = [".evenkeel-ts1.ibd", ".nfs2.ibd"];
    session.run("CREATE DATABASE odd").unwrap();
    for (at, file) in named.iter().enumerate() {
        for sql in [
            format!("CREATE TABLESPACE ts{at} ADD DATAFILE '{file}'"),
            format!("CREATE TABLE odd.t{at} (id INT PRIMARY KEY) TABLESPACE ts{at}"),
            format!("INSERT INTO odd.t{at} VALUES (7)"),
        ] {
            session.run(&sql).unwrap();
        }
    }
    drop(session);
    rolled.done(&["save", "odd"]);
    rolled.session().run("DELETE FROM odd.t0").unwrap();
    rolled.done(&["rollback", "odd", "--execute"]);
    for (at, file) in named.iter().enumerate() {
        let found = rolled.session().value(&format!("SELECT id FROM odd.t{at}"));
        assert_eq!(found.unwrap().as_deref(), Some("7"), "{file}");
    }
}

/// Schemas may be called like files that are left out: what leaves and what comes back is told by kind, not by name.
#[test]
fn named_core_on_xfs() {
    // Else the server has a file where the second schema would be.
    let elsewhere = ["--innodb-temp-data-file-path=temporary:12M:autoextend"];
    let site = Site::start(mariadb_10_11(), LoopFs::xfs(GIB), 1_000, &elsewhere);
    let rolled = Rolled::new(site, env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let schemas = ["core", "ibtmp1"];
    let mut session = rolled.session();
    for schema in schemas {
        for sql in [
            format!("CREATE DATABASE `{schema}`"),
            format!("CREATE TABLE `{schema}`.core (what VARCHAR(40) PRIMARY KEY)"),
            format!("INSERT INTO `{schema}`.core VALUES ('{schema}')"),
        ] {
            session.run(&sql).unwrap();
        }
    }
    rolled.done(&["save", "named"]);
    for schema in schemas {
        session.run(&format!("DROP DATABASE `{schema}`")).unwrap();
    }
    drop(session);
    rolled.done(&["rollback", "named", "--execute"]);
    for schema in schemas {
        let found = rolled
            .session()
            .value(&format!("SELECT what FROM `{schema}`.core"));
        assert_eq!(found.unwrap().as_deref(), Some(schema));
    }
    rolled.assert_tidy("at the end");
}
