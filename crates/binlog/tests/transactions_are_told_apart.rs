//! Is each transaction, and each statement that stands alone, told with its bounds and its GTID?

mod made;

use evenkeel_binlog::{Events, Format, Group, Groups, Gtid, kind};
use evenkeel_server::connect::Session;
use evenkeel_testkit::servers::{TestServer, mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{Scratch, until};
use made::Made;
use std::io::{Cursor, Read};

fn groups<R: Read>(from: R) -> Vec<Group> {
    let mut events = Events::new(from).unwrap();
    let (mut groups, mut all) = (Groups::default(), Vec::new());
    while let Some(event) = events.next_event().unwrap() {
        let format: Format = events.format().unwrap().clone();
        all.extend(groups.step(&event, &format).unwrap());
    }
    assert_eq!(groups.unfinished(), None);
    all
}

fn bounds(made: &Made) -> Vec<(u64, u64)> {
    let all = groups(Cursor::new(&made.bytes));
    all.iter().map(|group| (group.start, group.end)).collect()
}

#[test]
fn a_commit_ends_a_transaction_and_a_statement_ends_itself() {
    let mut made = Made::new(true);
    let first = made.bytes.len() as u64;
    made.gtid(1, true);
    let alone = made.query("CREATE TABLE t (a INT)");
    made.gtid(2, false);
    made.query("INSERT INTO t VALUES (1)");
    made.query("SAVEPOINT s");
    let rows = made.event(kind::XID, &[0; 8]);
    made.gtid(3, false);
    made.query("INSERT INTO myisam VALUES (1)");
    let commit = made.query("COMMIT");
    made.gtid(4, false);
    made.query("XA START 'a',''");
    made.query("XA END 'a',''");
    let prepared = made.event(kind::XA_PREPARE, b"a");
    assert_eq!(
        bounds(&made),
        [
            (first, alone),
            (alone, rows),
            (rows, commit),
            (commit, prepared)
        ]
    );
}

#[test]
fn logs_without_gtids_have_transactions_too() {
    let mut made = Made::new(true);
    let start = made.bytes.len() as u64;
    made.query("BEGIN");
    made.event(kind::INTVAR, &[1; 9]);
    made.query("INSERT INTO t VALUES (NULL)");
    let first = made.event(kind::XID, &[0; 8]);
    made.event(kind::USER_VAR, &[0; 9]);
    let second = made.query("INSERT INTO myisam VALUES (@a)");
    let packed = made.event(kind::TRANSACTION_PAYLOAD, &[0; 30]);
    made.event(kind::ANONYMOUS_GTID, &[0; 25]);
    let whole = made.event(kind::TRANSACTION_PAYLOAD, &[0; 30]);
    assert_eq!(
        bounds(&made),
        [
            (start, first),
            (first, second),
            (second, packed),
            (packed, whole)
        ]
    );
}

fn run(session: &mut Session, statements: &[&str]) {
    for sql in statements {
        session.run(sql).unwrap();
    }
}

/// Where the server is in its log.
fn at(session: &mut Session) -> (String, u64) {
    let row = session.one("SHOW MASTER STATUS").unwrap().unwrap();
    let position: u64 = row.at(1).unwrap().parse().unwrap();
    (row.at(0).unwrap().to_owned(), position)
}

/// A thread of MariaDB's own writes, some time after a log began, that recovery needs none before it. Among the
/// transactions that follow, that would be in none of them.
fn wait_for_its_checkpoint(session: &mut Session) {
    let (file, _) = at(session);
    let events = format!("SHOW BINLOG EVENTS IN '{file}'");
    until("the log's checkpoint is written", || {
        let rows = session.rows(&events).unwrap();
        let mut rows = rows.iter();
        rows.any(|row| row.at(2) == Some("Binlog_checkpoint") && row.at(5) == Some(&file))
    });
}

/// What the server says its log holds is what is read from its file.
fn case(server: &TestServer, more: &[&str]) {
    let scratch = Scratch::new();
    let datadir = scratch.path().join("data");
    let mut args = vec!["--log-bin=binlog", "--server-id=7"];
    args.extend(more);
    let running = server.start(&datadir, &args);
    let mut session = running.session().unwrap();
    run(&mut session, &["CREATE DATABASE s", "FLUSH LOGS"]);
    if server.name.starts_with("MariaDB") {
        wait_for_its_checkpoint(&mut session);
    }
    let mut last = at(&mut session).1;
    let mut expected = Vec::new();
    let units: [&[&str]; 9] = [
        &["CREATE TABLE s.t (a INT PRIMARY KEY AUTO_INCREMENT, b TEXT) ENGINE=InnoDB"],
        &["CREATE TABLE s.m (a INT) ENGINE=MyISAM"],
        &[
            "BEGIN",
            "INSERT INTO s.t (b) VALUES (REPEAT('x', 5000))",
            "UPDATE s.t SET b = 1",
            "COMMIT",
        ],
        &[
            "SET binlog_format = 'STATEMENT'",
            "SET @v = 3",
            "INSERT INTO s.t (b) VALUES (@v + RAND())",
        ],
        &["SET binlog_format = 'ROW'", "INSERT INTO s.m VALUES (1)"],
        &[
            "XA START 'one'",
            "INSERT INTO s.t (b) VALUES ('xa')",
            "XA END 'one'",
            "XA PREPARE 'one'",
        ],
        &["XA COMMIT 'one'"],
        &["ALTER TABLE s.t ADD c INT"],
        &["DROP TABLE s.m"],
    ];
    for unit in units {
        run(&mut session, unit);
        let now = at(&mut session).1;
        // An older server writes a prepared transaction when it commits.
        if now > last {
            expected.push(now);
        }
        last = now;
    }
    let (file, _) = at(&mut session);
    running
        .stop(evenkeel_testkit::servers::SERVER_DEADLINE)
        .unwrap();
    let found = groups(std::fs::File::open(datadir.join(file)).unwrap());
    let ends: Vec<u64> = found.iter().map(|group| group.end).collect();
    assert_eq!(ends, expected, "{} {more:?}", server.name);
    assert!(found.len() >= 8, "{found:?}");
    for two in found.windows(2) {
        assert_eq!(two[0].end, two[1].start);
    }
    let numbers: Vec<u64> = found
        .iter()
        .filter_map(|group| match group.gtid {
            Some(Gtid::MySql { number, .. }) => Some(number),
            Some(Gtid::MariaDb { sequence, .. }) => Some(sequence),
            None => None,
        })
        .collect();
    let named = numbers.len() == found.len() && numbers.windows(2).all(|n| n[0] + 1 == n[1]);
    let none = more.is_empty() && server.name.starts_with("MySQL");
    assert_eq!(named, !none, "{} {more:?}: {numbers:?}", server.name);
}

const GTIDS: [&str; 2] = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"];

#[test]
fn mariadb_10_11_is_read() {
    case(&mariadb_10_11(), &[]);
    case(
        &mariadb_10_11(),
        &["--log-bin-compress=ON", "--log-bin-compress-min-len=10"],
    );
    case(&mariadb_10_11(), &["--binlog-checksum=NONE"]);
}

#[test]
fn mysql_8_0_15_is_read() {
    case(&mysql_8_0_15(), &GTIDS);
    case(&mysql_8_0_15(), &[]);
}

#[test]
fn mysql_5_7_22_is_read() {
    case(&mysql_5_7_22(), &GTIDS);
    case(&mysql_5_7_22(), &[]);
}
