//! Does a transaction tell when it was committed, whatever time its session says it is?

use evenkeel_binlog::{Events, Groups};
use evenkeel_testkit::Scratch;
use evenkeel_testkit::effort::{Part, share};
use evenkeel_testkit::servers::{
    SERVER_DEADLINE, TestServer, mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9,
};
use std::time::{SystemTime, UNIX_EPOCH};

/// In 2037, and in 2000.
const ELSEWHEN: [u32; 2] = [2_114_380_800, 946_684_800];

fn now() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u32::try_from(since.as_secs()).unwrap()
}

/// What tells its time besides statements and DDL.
#[derive(PartialEq, PartialOrd)]
enum Tells {
    Nothing,
    Rows,
    /// The commit itself, whatever comes before it.
    Commit,
}

/// Rows, a statement and DDL in each time, and a commit in another time than its rows.
fn case(server: &TestServer, tells: &Tells) {
    let scratch = Scratch::new();
    let datadir = scratch.path().join("data");
    let running = server.start(&datadir, &["--log-bin=binlog", "--server-id=7"]);
    let mut session = running.session().unwrap();
    let mut run = |sql: &str| session.run(sql).unwrap();
    run("CREATE DATABASE s");
    run("CREATE TABLE s.t (a INT PRIMARY KEY) ENGINE=InnoDB");
    run("FLUSH BINARY LOGS");
    let begun = now();
    let mut row = 0;
    for elsewhen in ELSEWHEN {
        run(&format!("SET timestamp = {elsewhen}"));
        for format in ["ROW", "STATEMENT"] {
            row += 2;
            run(&format!("SET binlog_format = '{format}'"));
            run("BEGIN");
            run(&format!("INSERT INTO s.t (a) VALUES ({row})"));
            run(&format!("INSERT INTO s.t (a) VALUES ({})", row + 1));
            run("COMMIT");
        }
        run(&format!("ALTER TABLE s.t ADD c{row} INT"));
        run("SET timestamp = DEFAULT");
    }
    run("SET binlog_format = 'ROW'");
    run("BEGIN");
    run("DELETE FROM s.t WHERE a = 2");
    run(&format!("SET timestamp = {}", ELSEWHEN[0]));
    run("COMMIT");
    let ended = now();
    drop(session);
    running.stop(SERVER_DEADLINE).unwrap();
    let file = std::fs::File::open(datadir.join("binlog.000002")).unwrap();
    let mut events = Events::new(file).unwrap();
    let mut groups = Groups::default();
    let mut found = Vec::new();
    while let Some(event) = events.next_event().unwrap() {
        let format = events.format().unwrap().clone();
        found.extend(groups.step(&event, &format).unwrap());
    }
    assert_eq!(found.len(), 7, "{found:?}");
    let here = begun..=ended;
    for (number, group) in found.iter().enumerate() {
        let reported = match number {
            6 => *tells == Tells::Commit,
            0 | 3 => *tells >= Tells::Rows,
            _ => true,
        };
        if reported {
            assert!(here.contains(&group.time), "{here:?}: {group:?}");
            assert!(here.contains(&group.clock.unwrap()), "{here:?}: {group:?}");
        } else {
            let said = ELSEWHEN[number / 3 % 2];
            assert_eq!(group.time, said, "{group:?}");
            assert!(group.clock.is_none_or(|clock| here.contains(&clock)));
        }
    }
}

/// One of the servers that tell as much in each run.
fn in_turn(server: TestServer, nth: usize, tells: &Tells) {
    for server in share("servers that tell their time", &[server], Part::new(nth, 2)) {
        case(&server, tells);
    }
}

#[test]
fn on_mariadb_10_11_but_of_rows() {
    in_turn(mariadb_10_11(), 0, &Tells::Nothing);
}

#[test]
fn on_mariadb_11_8_but_of_rows() {
    in_turn(mariadb_11_8(), 1, &Tells::Nothing);
}

#[test]
fn on_mysql_5_7_22() {
    case(&mysql_5_7_22(), &Tells::Rows);
}

#[test]
fn on_mysql_8_0_15() {
    in_turn(mysql_8_0_15(), 1, &Tells::Commit);
}

#[test]
fn on_mysql_9() {
    in_turn(mysql_9(), 0, &Tells::Commit);
}
