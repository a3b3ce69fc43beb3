//! Does a restore to a point hold exactly the transactions before it: at the bounds of one, inside
//! one, by time, by GTID and by position?

use evenkeel_cases::Site;
use evenkeel_cases::leftovers::names_in;
use evenkeel_cases::points::{add, archive, make_table, mark, restore_to, rows_of};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_testkit::effort::{Part, draw, share};
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{LoopFs, TestServer, until};
use std::fs;

/// Waits for the next second, for logs have whole ones, and returns it as `--to` takes it.
fn next_second(session: &mut evenkeel_server::connect::Session) -> String {
    let mut now = || -> i64 {
        let text = session.value("SELECT UNIX_TIMESTAMP()").unwrap().unwrap();
        text.parse().unwrap()
    };
    let before = now();
    let mut then = before;
    until("the next second came", || {
        then = now();
        then > before
    });
    format!("@{then}")
}

/// Returns a second as a person writes it.
fn text(seconds: i64) -> String {
    let output = std::process::Command::new("date")
        .args(["-u", "-d", &format!("@{seconds}"), "+%Y-%m-%dT%H:%M:%SZ"])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The servers share the points: in a sample each is asked for half of them.
fn case(server: TestServer, more: &[&str], gtids: bool, nth: usize) {
    let mut site = Site::start(server, LoopFs::xfs(3 << 30), 100, more);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut session = site.running().session().unwrap();
    make_table(&mut session);
    add(&mut session, 1);
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    next_second(&mut session);
    let two = add(&mut session, 2);
    session.run("BEGIN").unwrap();
    session.run("INSERT INTO points.n VALUES (3)").unwrap();
    session.run("INSERT INTO points.n VALUES (4)").unwrap();
    session.run("COMMIT").unwrap();
    let four = mark(&mut session);
    session
        .run("CREATE USER who@localhost IDENTIFIED BY 'x'")
        .unwrap();
    session
        .run("ALTER TABLE points.n ADD COLUMN c INT DEFAULT 7")
        .unwrap();
    session.run("INSERT INTO points.n (id) VALUES (5)").unwrap();
    session.run("FLUSH LOGS").unwrap();
    let second = next_second(&mut session);
    session.run("INSERT INTO points.n (id) VALUES (6)").unwrap();
    let six = mark(&mut session);
    session.run("DROP TABLE points.n").unwrap();
    let dropped = mark(&mut session);
    // What follows is of no transaction, and archived.
    session.run("FLUSH LOGS").unwrap();
    let end = mark(&mut session);
    let archived = archive(&evenkeel, &site, &[]);
    assert_eq!(archived.code, Some(0), "{archived:?}");
    site.kill();

    let time: i64 = second.trim_start_matches('@').parse().unwrap();
    let mut points = vec![
        (two.moved(-1), "1"),
        (two.moved(0), "1,2"),
        (two.moved(1), "1,2"),
        (four.moved(-1), "1,2"),
        (four.moved(0), "1,2,3,4"),
        (text(time), "1,2,3,4,5"),
        (six.moved(0), "1,2,3,4,5,6"),
        (end.moved(0), ""),
    ];
    if gtids {
        points.push((format!("gtid:{}", four.gtid), "1,2,3,4"));
        points.push((format!("before:{}", four.gtid), "1,2"));
        points.push((format!("before:{}", dropped.gtid), "1,2,3,4,5,6"));
    }
    for (to, rows) in share("points in time", &points, Part::new(nth, 2)) {
        let target = site.fs.join("restored");
        let ended = restore_to(&evenkeel, &site, &target, &to);
        assert_eq!(ended.code, Some(0), "{to}: {ended:?}");
        let left: Vec<_> = names_in(&target);
        assert!(!left.iter().any(|name| name.contains("relay")), "{left:?}");
        assert_eq!(rows_of(&site, &target), rows, "{to}: {ended:?}");
        fs::remove_dir_all(&target).unwrap();
    }
    // Beyond the archive, and before the first generation: nothing is left.
    for to in [end.moved(5000), text(time + 5000), text(time - 5000)] {
        let target = site.fs.join("restored");
        let ended = restore_to(&evenkeel, &site, &target, &to);
        assert_eq!(ended.code, Some(14), "{to}: {ended:?}");
        assert!(!target.exists(), "{to}");
    }
}

#[test]
fn on_mariadb_10_11() {
    case(mariadb_10_11(), &[], true, 0);
}

#[test]
fn on_mariadb_10_11_in_strict_mode() {
    case(mariadb_10_11(), &["--gtid-strict-mode=ON"], true, 1);
}

/// Of any three, one is of another maker or writes no GTIDs.
#[test]
fn on_others() {
    let none: &[&str] = &[];
    let without = &["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"];
    let others = [
        (mysql_8_0_15(), none, true, 1),
        (mariadb_11_8(), none, true, 1),
        (mysql_5_7_22(), none, true, 0),
        (mysql_9(), none, true, 0),
        (mysql_5_7_22(), without, false, 1),
    ];
    for (server, options, has_gtids, part) in draw("servers with points", &others, 3) {
        case(server, options, has_gtids, part);
    }
}
