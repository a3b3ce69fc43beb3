//! Is what cannot be read of a log counted and named, and all else read?

use evenkeel_op::{Cancel, ErrorKind};
use evenkeel_traffic::source::{Input, InputKind, Opened, Unread};
use evenkeel_traffic::{Command, Coverage, Source, capture};
use jiff::tz::TimeZone;
use proptest::prelude::*;
use std::io::{Cursor, Read};

const MYSQL: &str =
    "/usr/sbin/mysqld, Version: 8.0.15 (MySQL Community Server - GPL). started with:
Tcp port: 0  Unix socket: /run/s
Time                 Id Command    Argument
# Time: 2026-11-28T08:17:15.762970Z
# User@Host: app[app] @ web1 [10.0.0.7]  Id:     7
# Query_time: 0.500000  Lock_time: 0.000096 Rows_sent: 2  Rows_examined: 9
use shop;
SET timestamp=1795853835;
SELECT 1
FROM t;
# Time: 2026-11-28T08:17:16.000000Z
# User@Host: app[app] @  [10.0.0.7]  Id:     8
# Query_time: 0.000001  Lock_time: 0.000000 Rows_sent: 0  Rows_examined: 0
SET timestamp=1795853836;
# administrator command: Quit;
";

struct Read1 {
    sql: Vec<String>,
    commands: Vec<Command>,
    coverage: Coverage,
    unread: Vec<Unread>,
    bytes: Vec<u64>,
    at: Vec<i64>,
    hosts: Vec<Option<String>>,
}

fn read(bytes: impl Read + Send + 'static) -> Read1 {
    let input = Input::of("log", bytes).unwrap();
    let kind = input.kind.unwrap_or(InputKind::SlowLog);
    let mut found = Read1 {
        sql: Vec::new(),
        commands: Vec::new(),
        coverage: Coverage::default(),
        unread: Vec::new(),
        bytes: Vec::new(),
        at: Vec::new(),
        hosts: Vec::new(),
    };
    let mut each = |one: &evenkeel_traffic::Statement<'_>| {
        found
            .sql
            .push(String::from_utf8_lossy(one.sql).into_owned());
        found.commands.push(one.command);
        found.bytes.push(one.sql_bytes);
        found.at.push(one.at_ns);
        found.hosts.push(one.host.map(str::to_owned));
        Ok(())
    };
    let mut opened = Opened::new(input, kind, TimeZone::UTC, capture::Options::default()).unwrap();
    found.coverage = opened.read(&mut each, &Cancel::new()).unwrap();
    found.unread = opened.unread().to_vec();
    found
}

fn of(text: &str) -> Read1 {
    read(Cursor::new(text.to_owned().into_bytes()))
}

#[test]
fn entries_are_read() {
    let found = of(MYSQL);
    assert_eq!(
        found.sql,
        ["SELECT 1\nFROM t", "administrator command: Quit"]
    );
    assert_eq!(found.commands, [Command::Query, Command::Quit]);
    assert_eq!(found.coverage.undecodable, 0);
    // Half a second before it was written.
    assert_eq!(found.at[0], 1_795_853_835_262_970_000);
    let hosts: Vec<_> = found
        .hosts
        .iter()
        .map(|host| host.as_deref().unwrap())
        .collect();
    assert_eq!(hosts, ["web1", "10.0.0.7"]);
}

#[test]
fn line_ends_of_windows_are_ends() {
    let found = of(&MYSQL.replace('\n', "\r\n"));
    assert_eq!(found.sql[0].replace('\r', ""), "SELECT 1\nFROM t");
    assert_eq!((found.sql.len(), found.coverage.undecodable), (2, 0));
}

#[test]
fn compressed_logs_are_decompressed() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, MYSQL.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(MYSQL.as_bytes(), 1).unwrap();
    for packed in [gzip, zstd] {
        assert_eq!(read(Cursor::new(packed)).sql.len(), 2);
    }
}

#[test]
fn half_an_entry_is_counted_wherever_it_is() {
    // A server died while it wrote; the next one opened the log again.
    let half = MYSQL.find("FROM t").unwrap();
    let found = of(&format!("{}\n{MYSQL}", &MYSQL[..half]));
    assert_eq!((found.sql.len(), found.coverage.undecodable), (2, 1));
    assert_eq!(
        (found.unread[0].line, found.unread[0].why),
        (4, "an entry that is not complete")
    );
    // The same without the lines of a start.
    let entry = MYSQL.find("# Time").unwrap();
    let found = of(&format!("{}\n{}", &MYSQL[..half], &MYSQL[entry..]));
    assert_eq!((found.sql.len(), found.coverage.undecodable), (2, 1));
    // Cut within its header, and one follows.
    let header = MYSQL.find("Rows_sent").unwrap();
    let found = of(&format!("{}\n{}", &MYSQL[..header], &MYSQL[entry..]));
    assert_eq!((found.sql.len(), found.coverage.undecodable), (2, 1));
    // A log that begins in the middle of an entry.
    let found = of(&MYSQL[half..]);
    assert_eq!((found.sql.len(), found.coverage.undecodable), (1, 1));
}

#[test]
fn general_logs_count_what_they_miss() {
    let log = "2026-11-28T08:17:15.725123Z\t    7 Connect\tapp@web1 on shop using TCP/IP\n\
               2026-11-28T08:17:15.725575Z\t    7 Query\tSELECT 1\n# no\n\
               2026-11-28T08:17:16.725575Z\t    7 Init DB\tother\n\
               2026-11-28T08:17:16.725575Z\t    7 Query\tSELECT";
    let found = of(log);
    assert_eq!(
        found.sql,
        ["", "SELECT 1\n# no", "administrator command: Init DB"]
    );
    assert_eq!((found.coverage.undecodable, found.unread[0].line), (1, 5));
    let found = of(&format!("# no\n# no more\n{log}\n"));
    assert_eq!((found.sql.len(), found.coverage.undecodable), (4, 1));
}

#[test]
fn huge_statements_keep_their_head_and_length() {
    let end = MYSQL.find(" 1\nFROM").unwrap();
    let head = Cursor::new(MYSQL.as_bytes()[..end].to_vec());
    let middle = std::io::repeat(b'x').take(300 << 20);
    let rest = Cursor::new(MYSQL.as_bytes()[end..].to_vec());
    let found = read(head.chain(middle).chain(rest));
    assert_eq!(found.coverage.undecodable, 0);
    assert_eq!(
        found.bytes[0],
        (300 << 20) + "SELECT 1\nFROM t".len() as u64
    );
    assert_eq!(found.sql[0].len(), 64 << 10);
    assert_eq!(found.commands[1], Command::Quit);
}

#[test]
fn other_files_are_not_logs() {
    let kind = |text: &str| {
        Input::of("x", Cursor::new(text.to_owned().into_bytes()))
            .unwrap()
            .kind
    };
    assert_eq!(kind("INSERT INTO t VALUES (1);\n"), None);
    assert_eq!(kind(""), Some(InputKind::SlowLog));
    let error = Input::open("nothing/here".as_ref()).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_cut_costs_one_entry(cut in 0..MYSQL.len()) {
        prop_assume!(MYSQL.is_char_boundary(cut));
        let found = of(&MYSQL[..cut]);
        let complete = usize::from(cut >= MYSQL.find("# Time: 2026-11-28T08:17:16").unwrap());
        prop_assert_eq!(found.sql.len(), complete);
        prop_assert!(found.coverage.undecodable <= 1);
    }

    #[test]
    fn no_bytes_are_too_much(bytes in proptest::collection::vec(any::<u8>(), 0..2000), at in 0..MYSQL.len()) {
        let mut log = MYSQL.as_bytes().to_vec();
        log.splice(at..at, bytes.iter().copied());
        read(Cursor::new(log));
        read(Cursor::new(bytes));
    }
}
