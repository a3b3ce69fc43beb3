//! Is every statement that a server wrote into its logs handed out as it was sent?

use evenkeel_op::Cancel;
use evenkeel_testkit::Scratch;
use evenkeel_testkit::servers::{
    SERVER_DEADLINE, TestServer, mariadb_10_11, mariadb_11_4, mariadb_11_8, mysql_5_7_22,
    mysql_8_0_15, mysql_9,
};
use evenkeel_traffic::source::{Input, InputKind, Opened};
use evenkeel_traffic::{Command, Source, capture};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::path::Path;

/// Statements that are logged as they are sent, the last one of them slow.
const SENT: [&str; 12] = [
    "CREATE DATABASE s",
    "USE s",
    "CREATE TABLE t (a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(100))",
    "INSERT INTO t (b) VALUES ('x'),('y'),('it''s')",
    "SELECT *\n  FROM t\nWHERE a > 1\n\n# Time: 2020-01-01\n# User@Host: me\n-- x",
    "SELECT 'line\r\nend\\n;\n\n'",
    "SELECT 'ü€😀', _binary'\u{1}\u{7f}'",
    "SELECT nothing FROM nowhere",
    "UPDATE t SET b = 'z' WHERE a < 3",
    "SELECT '# Time: 2026-11-28T08:17:21.120353Z\n# Query_time: 5\n'",
    "SELECT 'a;\n# Time: never\n# User@Host: me\n'",
    "SELECT SLEEP(0.05)",
];
const LOGGED: [&str; 5] = [
    "--slow-query-log=1",
    "--long-query-time=0",
    "--slow-query-log-file=slow.log",
    "--general-log=1",
    "--general-log-file=general.log",
];

/// What a test looks at of a statement.
#[derive(Debug)]
struct Seen {
    at_ns: i64,
    sql: String,
    command: Command,
    user: Option<String>,
    host: Option<String>,
    schema: Option<String>,
    total_ns: Option<u64>,
    rows_sent: Option<u64>,
}

fn all(path: &Path, expected: InputKind) -> Vec<Seen> {
    let input = Input::open(path).unwrap();
    assert_eq!(input.kind, Some(expected), "{}", path.display());
    let mut source = Opened::new(
        input,
        expected,
        TimeZone::system(),
        capture::Options::default(),
    )
    .unwrap();
    let mut seen = Vec::new();
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let coverage = source.read(
        &mut |one| {
            assert!(!one.is_cut());
            seen.push(Seen {
                at_ns: one.at_ns,
                sql: String::from_utf8_lossy(one.sql).into_owned(),
                command: one.command,
                user: owned(one.user),
                host: owned(one.host),
                schema: owned(one.schema),
                total_ns: one.total_ns,
                rows_sent: one.rows_sent,
            });
            Ok(())
        },
        &Cancel::new(),
    );
    let coverage = coverage.unwrap();
    assert_eq!(coverage.undecodable, 0, "{}", path.display());
    assert_eq!(coverage.statements, seen.len() as u64);
    seen
}

fn case(server: &TestServer) {
    let scratch = Scratch::new();
    let datadir = scratch.path().join("data");
    let begun = Timestamp::now();
    let running = server.start(&datadir, &LOGGED);
    {
        let mut session = running.session().unwrap();
        for sql in SENT {
            let _ = session.run(sql);
        }
        session.run("FLUSH LOGS").unwrap();
        session
            .run("SELECT 'after the log was opened again'")
            .unwrap();
    }
    running.stop(SERVER_DEADLINE).unwrap();
    // MariaDB counts whole seconds.
    let span = begun.as_second() * 1_000_000_000..=Timestamp::now().as_nanosecond() as i64;

    let slow = all(&datadir.join("slow.log"), InputKind::SlowLog);
    let text = std::fs::read(datadir.join("slow.log")).unwrap();
    let entries = text
        .split(|b| *b == b'\n')
        .filter(|line| line.starts_with(b"# User@Host: root["));
    assert_eq!(slow.len(), entries.count(), "{}", server.name);
    check(server, &slow);
    let sleep = slow.iter().find(|one| one.sql.contains("SLEEP")).unwrap();
    assert!(sleep.total_ns.unwrap() >= 50_000_000, "{sleep:?}");
    assert_eq!(sleep.rows_sent, Some(1));
    assert_eq!(sleep.host.as_deref(), Some("localhost"));

    let general = all(&datadir.join("general.log"), InputKind::GeneralLog);
    check(server, &general);
    let connects = |one: &&Seen| one.command == Command::Connect;
    assert_eq!(
        general.iter().filter(connects).count(),
        1,
        "{}",
        server.name
    );
    for one in slow.iter().chain(&general) {
        assert!(
            span.contains(&one.at_ns),
            "{}: {one:?} {span:?}",
            server.name
        );
    }
}

/// Everything sent is there, once, in order, with whose it is.
fn check(server: &TestServer, seen: &[Seen]) {
    let mut rest = seen.iter();
    for (number, sent) in SENT.iter().enumerate() {
        let found = rest.find(|one| one.sql == *sent);
        let found = found.unwrap_or_else(|| panic!("{}: {sent:?} in {seen:#?}", server.name));
        assert_eq!(found.user.as_deref(), Some("root"), "{}", server.name);
        assert_eq!(found.command, Command::Query);
        if number > 1 {
            assert_eq!(
                found.schema.as_deref(),
                Some("s"),
                "{}: {sent}",
                server.name
            );
        }
    }
    assert!(
        rest.any(|one| one.sql.contains("opened again")),
        "{}",
        server.name
    );
}

#[test]
fn mariadb_10_11_writes_what_was_sent() {
    case(&mariadb_10_11());
}

#[test]
fn mariadb_11_4_writes_what_was_sent() {
    case(&mariadb_11_4());
}

#[test]
fn mariadb_11_8_writes_what_was_sent() {
    case(&mariadb_11_8());
}

#[test]
fn mysql_5_7_writes_what_was_sent() {
    case(&mysql_5_7_22());
}

#[test]
fn mysql_8_writes_what_was_sent() {
    case(&mysql_8_0_15());
}

#[test]
fn mysql_9_writes_what_was_sent() {
    case(&mysql_9());
}
