//! Is a broken replica, after `replica resync`, another replica of the same source: with all rows, and with its own
//! number and name?

mod resynced;

use evenkeel_cases::failpoints::RESYNC;
use evenkeel_cases::far::FarHost;
use evenkeel_cases::program::{Ended, killed_at, run};
use evenkeel_op::exit;
use evenkeel_testkit::By;
use evenkeel_testkit::TestServer;
use evenkeel_testkit::effort::{Part, draw, share};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use resynced::Three;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

#[track_caller]
fn refused(ended: &Ended, why: &str) {
    assert_eq!(ended.code, Some(i32::from(exit::REFUSED)), "{ended:?}");
    assert!(ended.message().contains(why), "{ended:?}");
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// While the source is written to.
fn made_new(server: &TestServer, by: By) {
    let three = Three::start(server, by, 500);
    let uuids = || ["source", "sibling", "broken"].map(|name| three.uuid(name));
    let before = uuids();
    three.break_it();
    let mut source = three.session("source");
    source.run("SET GLOBAL log_output = 'TABLE'").unwrap();
    let traffic = three
        .bank
        .start(&three.running("source").connect_options(), 1)
        .unwrap();
    traffic.wait_for(20);
    source.run("SET GLOBAL general_log = ON").unwrap();
    let ended = three.done(three.resync(&[]), server.name);
    source.run("SET GLOBAL general_log = OFF").unwrap();
    traffic.wait_for(20);
    traffic.assert_undisturbed();
    drop(traffic.stop());
    three.assert_equal(server.name);
    assert_eq!(uuids(), before);
    three.assert_closed();
    assert_eq!(ended.answer["server_id"], 3, "{ended:?}");
    assert!(
        ended.answer["blocks_reused"].as_u64() > Some(0),
        "{ended:?}"
    );
    // The source was asked for nothing.
    let others = "SELECT COUNT(*) FROM mysql.general_log WHERE command_type = 'Connect' AND argument NOT LIKE 'repl@%'";
    let others = source.value(others).unwrap();
    assert_eq!(others.as_deref(), Some("0"), "{ended:?}");
}

/// It has no name of its own, and is asked for nothing else that MySQL is not: a sample has it in every other run.
#[test]
fn of_mariadb() {
    let ways = [By::Position, By::Gtid];
    for by in share("replicas of MariaDB", &ways, Part::new(0, 4)) {
        made_new(&mariadb_10_11(), by);
    }
}

#[test]
fn of_mysql() {
    for (server, by) in draw(
        "replicas of MySQL",
        &[(mysql_8_0_15(), By::Gtid), (mysql_5_7_22(), By::Position)],
        1,
    ) {
        made_new(&server, by);
    }
}

/// The server does not start any more, and the sibling is on another host.
#[test]
fn of_a_server_that_does_not_run() {
    let three = Three::start(&mariadb_10_11(), By::Gtid, 500);
    three.break_it();
    let [pid] = three.servers("broken")[..] else {
        panic!("one server");
    };
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    let words = String::from_utf8(words).unwrap();
    let words: Vec<String> = words
        .trim_end_matches('\0')
        .split('\0')
        .map(|word| format!("'{word}'"))
        .collect();
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap();
    let account = fs::metadata(three.fs.join("broken")).unwrap();
    let start = format!(
        "setsid setpriv --reuid={} --regid={} --clear-groups {} >/dev/null 2>&1 &",
        account.uid(),
        account.gid(),
        words.join(" ")
    );
    let socket = three.running("broken").socket().display().to_string();
    let (program, binary) = (program.display(), "--server-binary");
    let flags = [
        format!("--start-with={start}"),
        format!("--broken-socket={socket}"),
        format!("{binary}={program}"),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    three.kill("broken");
    // Of a crash, where the socket stays.
    let _ = fs::remove_file(three.running("broken").socket());
    refused(&run(three.resync(&[])), "no server runs on");
    let far = FarHost::having(PROGRAM, &[]);
    let over = |command: Command| far.over(command, 60);
    let plan = run(over(three.plan("broken", "sibling", &flags)));
    assert_eq!(plan.code, Some(0), "{plan:?}");
    assert_eq!(
        (&plan.answer["executed"], &plan.answer["runs"]),
        (&false.into(), &false.into())
    );
    assert!(three.leftovers().is_empty() && three.servers("broken").is_empty());
    three.done(over(three.resync(&flags)), "over ssh");
    far.assert_clean("after a resync");
    three.assert_equal("over ssh");
}

/// Wherever it dies, the same command does the rest.
#[test]
fn killed_and_continued() {
    let three = Three::start(&mariadb_10_11(), By::Position, 500);
    three.break_it();
    for point in share("kill points of a resync", &RESYNC, Part::new(0, 3)) {
        println!("killed at {point}");
        let killed = run(killed_at(three.resync(&[]), point));
        assert_eq!(killed.signal, Some(9), "{point}: {killed:?}");
        three.done(three.resync(&[]), point);
        three.assert_equal(point);
    }
    let kept = run(three.resync(&["--keep-old"]));
    assert_eq!(kept.code, Some(0), "{kept:?}");
    let place = kept.answer["old_kept_at"].as_str().expect("a place");
    assert!(three.fs.join(place).join("ibdata1").is_file(), "{kept:?}");
    three.assert_equal("kept");
}

/// A replica of the sibling is none of the sibling's source.
fn of_another_source(three: &Three) {
    let follow = |name: &str| {
        let port = three.running(name).port().unwrap();
        let mut session = three.session("broken");
        session.run("STOP SLAVE").unwrap();
        let change = format!("CHANGE MASTER TO MASTER_PORT={port}");
        session.run(&change).unwrap();
    };
    follow("sibling");
    three.session("broken").run("START SLAVE").unwrap();
    evenkeel_testkit::until("it knows its source", || {
        let status = three.session("broken").one("SHOW SLAVE STATUS").unwrap();
        status.unwrap().get("Master_Server_Id") == Some("2")
    });
    refused(&run(three.resync(&[])), "the broken server replicates from");
    let plan = run(three.plan("broken", "sibling", &["--other-source"]));
    assert_eq!(plan.code, Some(0), "{plan:?}");
    follow("source");
}

/// And then it is what it was.
#[test]
fn what_cannot_be_made_new_stays_as_it_was() {
    let three = Three::start(&mariadb_10_11(), By::Gtid, 100);
    three.break_it();
    let identity = |name: &str| fs::metadata(three.fs.join(name)).unwrap().ino();
    let (before, processes) = (identity("broken"), three.servers("broken"));
    let unchanged = || {
        assert_eq!(
            (identity("broken"), three.servers("broken")),
            (before, processes.clone())
        );
        assert!(three.leftovers().is_empty(), "{:?}", three.leftovers());
    };
    let plan = run(three.plan("broken", "sibling", &[]));
    assert_eq!(plan.code, Some(0), "{plan:?}");
    assert_eq!(
        (&plan.answer["executed"], &plan.answer["server_id"]),
        (&false.into(), &3.into())
    );
    unchanged();
    for flags in [&["--execute"][..], &[]] {
        refused(
            &run(three.plan("source", "sibling", flags)),
            "is not a replica",
        );
        refused(&run(three.plan("broken", "broken", flags)), "server_id");
        refused(&run(three.plan("broken", "source", flags)), "0 sources");
        refused(&run(three.plan("sibling", "broken", flags)), "not healthy");
    }
    unchanged();
    of_another_source(&three);
    unchanged();
    let mount = |command: &str, words: &[&str]| {
        let place = three.fs.join("broken");
        let mut mount = Command::new(command);
        assert!(mount.args(words).arg(&place).status().unwrap().success());
    };
    let place = three.fs.join("broken");
    mount("mount", &["--bind", place.to_str().unwrap()]);
    let mounted = run(three.resync(&[]));
    mount("umount", &[]);
    refused(&mounted, "is a mount point");
    unchanged();
    // The clone fails when the server was stopped.
    let failed = run(three.resync(&["--snapshot=btrfs"]));
    assert!(
        failed.code != Some(0) && failed.code.is_some(),
        "{failed:?}"
    );
    assert_ne!(three.servers("broken"), processes, "{failed:?}");
    assert_eq!(identity("broken"), before, "{failed:?}");
    let own = three.value("broken", "SELECT COUNT(*) FROM own.t");
    assert_eq!(own.as_deref(), Some("0"), "{failed:?}");
    fs::create_dir(three.fs.join("snapshots")).unwrap();
    three.done(
        three.resync(&["--snapshot-dir=snapshots"]),
        "after it failed",
    );
    three.assert_equal("after it failed");
}
