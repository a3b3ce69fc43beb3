//! Is what cannot be read of a log counted and named, and all else read?

use evenkeel_op::{Cancel, ErrorKind};
use evenkeel_traffic::source::{Input, InputKind, Opened, Unread, Untimed};
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
    untimed: Untimed,
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
        untimed: Untimed::default(),
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
    found.untimed = opened.untimed();
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

const NOON: i64 = 1_795_867_200;
const SECOND: i64 = 1_000_000_000;

/// An entry as MariaDB writes it: by the clock of the session, in its own line of time, too.
fn mariadb(session: u32, at: i64, seconds: f64, sql: &str) -> String {
    let time = jiff::Timestamp::from_second(at).unwrap();
    format!(
        "# Time: {}\n# User@Host: app[app] @ web1 []\n# Thread_id: {session}  Schema: shop  QC_hit: No\n\
         # Query_time: {seconds:.6}  Lock_time: 0.000000  Rows_sent: 1  Rows_examined: 1\n\
         SET timestamp={at};\n{sql};\n",
        time.strftime("%y%m%d %k:%M:%S")
    )
}

/// Returns the seconds since noon.
fn times(log: &[String]) -> (Vec<i64>, u64) {
    let found = of(&log.concat());
    let at = found.at.iter().map(|at| at / SECOND - NOON).collect();
    (at, found.untimed.own_clocks)
}

#[test]
fn the_clock_of_one_session_moves_no_other_time() {
    let one = |session, after: i64| mariadb(session, NOON + after, 0.5, "SELECT 1");
    for far in [-800_000_000, -86_400, -60, 7200, 86_400, 800_000_000] {
        let log = [
            one(3, 0),
            one(4, 1),
            one(5, 1 + far),
            one(5, 2 + far),
            one(3, 3),
            one(4, 4),
        ];
        assert_eq!(times(&log), (vec![0, 1, 1, 1, 3, 4], 2), "{far}");
        // The last of the log: nothing comes after it.
        if far < 0 {
            assert_eq!(times(&log[..4]), (vec![0, 1, 1, 1], 2), "{far}");
        }
    }
}

#[test]
fn a_quiet_log_is_one_of_true_times() {
    let begin = NOON - 86_400 * 100;
    let day = |session, days: i64| mariadb(session, begin + 86_400 * days, 0.5, "SELECT 1");
    let log: Vec<String> = (0..40).map(|days| day(3 + days as u32 % 3, days)).collect();
    let expected: Vec<i64> = (0..40).map(|days| 86_400 * (days - 100)).collect();
    assert_eq!(times(&log), (expected, 0));
    // Also where one session is alone in it.
    let log = [0, 0, 7, 8, 8].map(|days| day(3, days));
    assert_eq!(
        times(&log),
        ([0, 0, 7, 8, 8].map(|day| 86_400 * (day - 100)).to_vec(), 0)
    );
}

#[test]
fn a_log_that_goes_back_is_believed() {
    // A clock that was set back, or two logs in one file.
    let one = |after: i64| mariadb(3 + after as u32 % 3, NOON + after, 0.001, "SELECT 1");
    let expected: Vec<i64> = (0..100).chain(-4000..-3900).chain(0..100).collect();
    let log: Vec<String> = expected.iter().map(|after| one(*after)).collect();
    assert_eq!(times(&log), (expected, 0));
}

#[test]
fn long_statements_fit_between_short_ones() {
    let log = [
        mariadb(3, NOON, 0.5, "SELECT 1"),
        mariadb(4, NOON - 9000, 9001.0, "SELECT 2"),
        mariadb(3, NOON + 2, 0.5, "SELECT 3"),
    ];
    assert_eq!(times(&log), (vec![0, -9000, 2], 0));
}

#[test]
fn a_session_that_is_seen_to_set_its_clock_has_its_own() {
    let one = |session, after: i64, sql: &str| mariadb(session, NOON + after, 0.0, sql);
    let log = [
        one(9, -500, "SET timestamp=1795866700"),
        one(9, -500, "SELECT 1"),
        one(3, 10, "SELECT 1"),
        one(9, 9, "/* x */ SELECT 1"),
        one(9, -500, "set @@session.timestamp = default"),
        one(9, 11, "SELECT 1"),
        one(9, 12, "SET STATEMENT timestamp=1 FOR SELECT 1"),
        one(9, 13, "SET explicit_defaults_for_timestamp=1"),
    ];
    assert_eq!(times(&log), (vec![10, 10, 10, 10, 10, 11, 11, 13], 5));
}

#[test]
fn a_session_with_its_own_clock_that_is_alone_is_believed() {
    let mut log = vec![mariadb(9, NOON, 0.0, "SET timestamp=1795867200")];
    log.extend((1..100).map(|after| mariadb(9, NOON + after, 0.0, "INSERT INTO t VALUES (1)")));
    assert_eq!(times(&log), ((0..100).collect(), 0));
}

#[test]
fn what_a_replica_applies_has_the_clock_of_its_source() {
    let late = |after: i64| {
        let entry = mariadb(2, NOON - 7200 + after, 0.0, "INSERT INTO t VALUES (1)");
        entry.replace("app[app] @ web1 []", "[SQL_SLAVE] @  []")
    };
    let one = |session, after: i64| mariadb(session, NOON + after, 0.0, "SELECT 1");
    let log = [
        late(0),
        late(1),
        one(3, 2),
        late(2),
        late(3),
        one(4, 4),
        late(4),
    ];
    // Before the first of the others, nothing contradicts it.
    assert_eq!(times(&log), (vec![-7200, -7199, 2, 2, 2, 4, 4], 3));
    // Where the replica is not late, it is as good as the others.
    let log = [
        one(3, 2),
        late(7203),
        late(7204),
        late(9000),
        late(20_000),
        one(3, 12_801),
    ];
    assert_eq!(times(&log), (vec![2, 3, 4, 1800, 12_800, 12_801], 0));
}

#[test]
fn times_that_cannot_be_read_are_named() {
    for (from, to) in [
        (
            "# Time: 2026-11-28T08:17:16.000000Z",
            "# Time: 2026-11-28T08:61:16.000000Z",
        ),
        (
            "# Time: 2026-11-28T08:17:16.000000Z",
            "# Time: 9999-11-28T08:17:16.000000Z",
        ),
        ("# Time: 2026-11-28T08:17:16.000000Z", "# Time: garbage"),
    ] {
        let found = of(&MYSQL.replace(from, to));
        assert_eq!(
            (found.sql.len(), found.coverage.undecodable),
            (2, 0),
            "{to}"
        );
        assert_eq!(
            (found.untimed.unreadable, found.untimed.first_line),
            (1, Some(11)),
            "{to}"
        );
        // What else is known of it.
        assert_eq!(found.at[1], 1_795_853_836 * SECOND, "{to}");
    }
    for broken in ["18446744073709551615", "9999999999", "1e9", "17958538x5"] {
        let mut log = [0, 1, 2].map(|after| mariadb(3, NOON + after, 0.5, "SELECT 1"));
        let time = log[1].find("# User").unwrap();
        log[1] = log[1][time..].replace(&(NOON + 1).to_string(), broken);
        let found = of(&log.concat());
        assert_eq!(found.sql, ["SELECT 1"; 3], "{broken}");
        assert_eq!(found.untimed.unreadable, 1, "{broken}");
        assert_eq!(found.at[1] / SECOND, NOON, "{broken}");
    }
    let log = "2026-11-28T08:17:15.725123Z\t    7 Query\tSELECT 1\n\
               2026-11-28T08:61:15.725123Z\t    7 Query\tSELECT 2\n\
               9999-11-28T08:17:15.725123Z\t    7 Query\tSELECT 3\n";
    let found = of(log);
    assert_eq!(found.sql, ["SELECT 1", "SELECT 2", "SELECT 3"]);
    assert_eq!(
        (found.untimed.unreadable, found.untimed.first_line),
        (2, Some(2))
    );
    assert_eq!((found.at[1], found.at[2]), (found.at[0], found.at[0]));
}

#[test]
fn a_general_log_that_goes_on_within_a_second_begins_then() {
    let log = "\t\t    7 Connect\tapp@web1 on shop using TCP/IP\n\t\t    7 Query\tSELECT 1\n\
               261128  8:17:15\t    7 Query\tSELECT 2\n\t\t    7 Query\tSELECT 3\n";
    let found = of(log);
    assert_eq!(found.sql, ["", "SELECT 1", "SELECT 2", "SELECT 3"]);
    assert_eq!(found.at, [1_795_853_835 * SECOND; 4]);
    assert_eq!(found.hosts[1].as_deref(), Some("web1"));
    assert_eq!(found.untimed.unreadable, 0);
    let timeless = log.replace("261128  8:17:15\t", "\t\t");
    assert_eq!(of(&timeless).untimed.unreadable, 4);
}

#[test]
fn entries_of_a_log_that_is_followed_wait_for_no_time() {
    let log = "\t\t    7 Query\tSELECT 1\n\t\t    7 Query\tSELECT 2\n";
    let input = Input::of("log", Cursor::new(log)).unwrap();
    let options = capture::Options::default();
    let mut opened = Opened::new(input, InputKind::GeneralLog, TimeZone::UTC, options).unwrap();
    opened.follow_from(NOON * SECOND);
    let mut at = Vec::new();
    let mut each = |one: &evenkeel_traffic::Statement<'_>| {
        at.push(one.at_ns);
        Ok(())
    };
    opened.read(&mut each, &Cancel::new()).unwrap();
    assert_eq!(at, [NOON * SECOND; 2]);
    assert_eq!(opened.untimed().unreadable, 0);
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
