//! Is a binary log that is missing, of another history or of another server told, and never
//! restored from?

use evenkeel_cases::Site;
use evenkeel_cases::points::{add, archive, make_table, restore_to, rows_of};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{LoopFs, TestServer, until};

fn evenkeel() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

/// A server with one generation and one row behind it.
fn start_alone(server: TestServer) -> Site {
    let site = Site::start(server, LoopFs::xfs(2 << 30), 50, &[]);
    let mut session = site.running().session().unwrap();
    make_table(&mut session);
    assert_eq!(run(evenkeel().backup(&site, &[])).generation(), 1);
    add(&mut session, 1);
    site
}

/// The same, with the row archived.
fn start(server: TestServer) -> Site {
    let site = start_alone(server);
    let first = archive(&evenkeel(), &site, &[]);
    assert_eq!(first.code, Some(0), "{first:?}");
    site
}

fn purged(server: TestServer) {
    let site = start(server);
    let mut session = site.running().session().unwrap();
    let before = add(&mut session, 2);
    for _ in 0..2 {
        session.run("FLUSH LOGS").unwrap();
    }
    let behind = add(&mut session, 3);
    // The server keeps a log that it was sending until it notices that nobody listens.
    until("the logs are deleted", || {
        session
            .run(&format!("PURGE BINARY LOGS TO '{}'", behind.file))
            .unwrap();
        session.value("SHOW BINARY LOGS").unwrap().as_ref() == Some(&behind.file)
    });
    let reported = archive(&evenkeel(), &site, &[]);
    assert_eq!(reported.code, Some(4), "{reported:?}");
    assert!(reported.message().contains("deleted"), "{reported:?}");
    let allowed = archive(&evenkeel(), &site, &["--allow-gap"]);
    assert_eq!(allowed.code, Some(3), "{allowed:?}");
    let mut list = evenkeel().command(&["binlog", "list"]);
    list.arg(site.repository());
    let listed = run(list);
    let gaps = &listed.answer["sources"][0]["timelines"][0]["gaps"];
    assert_eq!(gaps.as_array().map(Vec::len), Some(1), "{listed:?}");

    let target = site.fs.join("restored");
    for to in [
        before.moved(0),
        behind.moved(0),
        format!("gtid:{}", behind.gtid),
    ] {
        let refused = restore_to(&evenkeel(), &site, &target, &to);
        assert_eq!(refused.code, Some(14), "{to}: {refused:?}");
        assert!(!target.exists(), "{to}");
    }
    // A generation behind the gap needs nothing before it.
    assert_eq!(run(evenkeel().backup(&site, &[])).generation(), 2);
    let last = add(&mut session, 4);
    add(&mut session, 5);
    assert_eq!(archive(&evenkeel(), &site, &[]).code, Some(0));
    let ended = restore_to(&evenkeel(), &site, &target, &last.moved(0));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(rows_of(&site, &target), "1,2,3,4");
}

fn reset(server: TestServer) {
    let site = start(server);
    let mut session = site.running().session().unwrap();
    session.run("RESET MASTER").unwrap();
    add(&mut session, 2);
    // As far as the log that was archived before, under the same name.
    let mut last = add(&mut session, 3);
    for id in 4..200 {
        last = add(&mut session, id);
    }
    let archived = archive(&evenkeel(), &site, &[]);
    assert_eq!(archived.code, Some(0), "{archived:?}");
    assert!(archived.said.contains("a new timeline"), "{archived:?}");
    let target = site.fs.join("restored");
    let refused = restore_to(&evenkeel(), &site, &target, &last.moved(0));
    assert_eq!(refused.code, Some(14), "{refused:?}");
    assert!(!target.exists());
    assert_eq!(run(evenkeel().backup(&site, &[])).generation(), 2);
    let after = add(&mut session, 500);
    assert_eq!(archive(&evenkeel(), &site, &[]).code, Some(0));
    let ended = restore_to(&evenkeel(), &site, &target, &after.moved(0));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(rows_of(&site, &target).ends_with(",500"));
}

/// Another server of the same name and id, with logs of the same names.
fn stranger(server: TestServer) {
    let site = start_alone(server);
    let mut session = site.running().session().unwrap();
    let mut second = || session.value("SELECT UNIX_TIMESTAMP()").unwrap();
    // Events have no finer time: what both do within the same second is the same log, byte by byte.
    let begun = second();
    until("the next second", || second() != begun);
    let other = start_alone(site.server.clone());
    let mut session = other.running().session().unwrap();
    let mut last = add(&mut session, 2);
    for id in 3..100 {
        last = add(&mut session, id);
    }
    // Into the repository of the first.
    let mut command = evenkeel().command(&["binlog", "archive", "--no-defaults", "-u", "root"]);
    command
        .arg("--until-current")
        .arg("-S")
        .arg(other.running().socket());
    command.arg(site.repository());
    let archived = run(command);
    assert_eq!(archived.code, Some(0), "{archived:?}");
    let target = site.fs.join("restored");
    let refused = restore_to(&evenkeel(), &site, &target, &last.moved(0));
    assert_eq!(refused.code, Some(14), "{refused:?}");
    assert!(!target.exists());
}

#[test]
fn mariadb_purged() {
    purged(mariadb_10_11());
}

#[test]
fn mariadb_reset() {
    reset(mariadb_10_11());
}

#[test]
fn mariadb_stranger() {
    stranger(mariadb_10_11());
}

#[test]
fn of_mysql() {
    type Case = (fn(TestServer), fn() -> TestServer);
    let cases: [Case; 4] = [
        (purged, mysql_8_0_15),
        (stranger, mysql_5_7_22),
        (reset, mysql_8_0_15),
        (purged, mysql_5_7_22),
    ];
    for (question, server) in draw("gaps in logs of MySQL", &cases, 1) {
        question(server());
    }
}
