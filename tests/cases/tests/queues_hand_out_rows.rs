//! Does a queue in a stock server hand out each row to one consumer at a time, in order, whatever
//! consumers do?

use evenkeel_cases::queues::{Host, QueueSite};
use evenkeel_server::connect::Session;
use evenkeel_testkit::servers::SERVER_DEADLINE;
use evenkeel_testkit::until;
use std::thread;

fn ids(session: &mut Session, table: &str) -> Vec<i64> {
    let rows = session.rows(&format!("SELECT id FROM {table}")).unwrap();
    rows.iter()
        .map(|row| row.at(0).unwrap().parse().unwrap())
        .collect()
}

fn number(session: &mut Session, what: &str) -> Option<i64> {
    let value = session.value(&format!("SELECT {what}")).unwrap();
    value.map(|text| text.parse().unwrap())
}

fn refused(session: &mut Session, sql: &str, because: &str) {
    let why = session.rows(sql).unwrap_err().chain();
    assert!(why.contains(because), "{sql}: {why}");
}

fn queue(session: &mut Session, name: &str, rows: i64) {
    session
        .run(&format!(
            "CREATE TABLE {name} (id INT NOT NULL, what VARCHAR(50)) ENGINE=QUEUE"
        ))
        .unwrap();
    for id in 1..=rows {
        session
            .run(&format!("INSERT INTO {name} VALUES ({id}, 'row {id}')"))
            .unwrap();
    }
}

fn to_their_owners(site: QueueSite) -> QueueSite {
    let (mut one, mut other) = (site.session(), site.session());
    queue(&mut one, "mails", 4);
    assert_eq!(number(&mut one, "queue_wait('mails', 0)"), Some(1));
    assert_eq!(ids(&mut one, "mails"), [1], "an owner sees its row");
    assert_eq!(ids(&mut other, "mails"), [2, 3, 4], "others see the rest");
    assert_eq!(number(&mut one, "queue_rowid()"), Some(1));
    assert_eq!(number(&mut one, "queue_abort()"), Some(1));
    assert_eq!(ids(&mut other, "mails"), [1, 2, 3, 4], "it is where it was");
    // The next wait consumes what the last one gave.
    assert_eq!(number(&mut one, "queue_wait('shop.mails', 0)"), Some(1));
    assert_eq!(number(&mut one, "queue_wait('mails', 0)"), Some(1));
    assert_eq!(ids(&mut one, "mails"), [2]);
    assert_eq!(number(&mut one, "queue_end()"), Some(1));
    assert_eq!(ids(&mut one, "mails"), [3, 4]);
    refused(&mut one, "SELECT queue_end()", "queue_wait()");
    refused(&mut one, "SELECT queue_rowid()", "queue_wait()");
    // A connection that goes gives back.
    assert_eq!(number(&mut other, "queue_wait_n('mails', 5, 0)"), Some(1));
    assert_eq!(ids(&mut other, "mails"), [3, 4]);
    assert_eq!(
        number(&mut one, "queue_wait('mails', 0)"),
        Some(0),
        "the time is over"
    );
    assert!(
        ids(&mut one, "mails").is_empty(),
        "and yet it owns: nothing"
    );
    one.run("SELECT queue_abort()").unwrap();
    drop(other);
    until("its rows are back", || ids(&mut one, "mails") == [3, 4]);
    // Whoever owns a row may delete it; DELETE by others passes over it.
    let mut other = site.session();
    assert_eq!(number(&mut other, "queue_wait('mails', 0)"), Some(1));
    one.run("INSERT INTO mails VALUES (5, 'five')").unwrap();
    one.run("DELETE FROM mails WHERE id < 5").unwrap();
    assert_eq!(ids(&mut one, "mails"), [5]);
    assert_eq!(ids(&mut other, "mails"), [3]);
    other.run("DELETE FROM mails").unwrap();
    assert!(ids(&mut other, "mails").is_empty());
    other.run("SELECT queue_abort()").unwrap();
    assert_eq!(ids(&mut other, "mails"), [5]);
    assert_eq!(number(&mut one, "queue_wait('none', 0)"), None);
    let at_once = "SELECT * FROM mails WHERE queue_wait('mails', 1)";
    if site.host.waits_in_where() {
        assert_eq!(one.rows(at_once).unwrap().len(), 1);
        in_one_statement(&mut one, &mut other);
    } else {
        refused(&mut one, at_once, "SELECT queue_wait(...) first");
    }
    site
}

/// A wait for what cannot be waited for leaves the row with its owner.
fn to_whom_owns_them_while_waits_fail(site: QueueSite) -> QueueSite {
    let mut session = site.session();
    queue(&mut session, "letters", 2);
    session.run("CREATE TABLE plain (id INT)").unwrap();
    assert_eq!(number(&mut session, "queue_wait('letters', 0)"), Some(1));
    assert_eq!(number(&mut session, "queue_wait('leters', 0)"), None);
    assert_eq!(
        number(&mut session, "queue_wait('letters', 'leters', 0)"),
        None
    );
    assert_eq!(number(&mut session, "queue_wait('plain', 0)"), None);
    assert_eq!(number(&mut session, "queue_wait_n('leters', 5, 0)"), None);
    refused(
        &mut session,
        "SELECT queue_wait('letters:none > 1', 0)",
        "there is no column",
    );
    assert_eq!(ids(&mut session, "letters"), [1], "it is owned still");
    assert_eq!(number(&mut session, "queue_abort()"), Some(1));
    assert_eq!(ids(&mut session, "letters"), [1, 2]);
    session.run("DROP TABLE plain, letters").unwrap();
    site
}

/// `SELECT … WHERE queue_wait(…)` takes one row, however many there are, and waits where there is none.
fn in_one_statement(one: &mut Session, other: &mut Session) {
    let take = "SELECT id FROM mails WHERE queue_wait('mails', 0.1)";
    let sql = "INSERT INTO mails VALUES (21, 'a'), (22, 'b'), (23, 'c')";
    other.run(sql).unwrap();
    let mut seen = vec![];
    for _ in 0..3 {
        let rows = one.rows(take).unwrap();
        assert_eq!(rows.len(), 1);
        seen.push(rows[0].at(0).unwrap().to_owned());
    }
    assert_eq!(seen, ["21", "22", "23"]);
    // The last one is owned until now. Nothing is left then, and it has been waited for.
    assert!(one.rows(take).unwrap().is_empty());
    one.run("SELECT queue_end()").unwrap();
    assert!(one.rows(take).unwrap().is_empty());
    one.run("SELECT queue_end()").unwrap();
}

fn to_those_who_wait(site: QueueSite) -> QueueSite {
    let (mut one, mut other) = (site.session(), site.session());
    queue(&mut one, "urgent", 0);
    queue(&mut one, "later", 1);
    // The first table has priority, once it has rows.
    assert_eq!(
        number(&mut other, "queue_wait('urgent', 'later', 0)"),
        Some(2)
    );
    assert_eq!(ids(&mut other, "later"), [1]);
    let waits = |mut session: Session, what: &'static str| {
        let id = session.value("SELECT CONNECTION_ID()").unwrap().unwrap();
        let thread = thread::spawn(move || {
            let value = session.value(&format!("SELECT {what}"));
            (value.map_err(|why| why.chain()), session)
        });
        (id, thread)
    };
    let mut waiting = |what: &str, many: i64| {
        until("they wait", || {
            let stats = one
                .value(&format!("SELECT queue_stats('{what}')"))
                .unwrap()
                .unwrap();
            stats.contains(&format!("waiters: {many}\n"))
        });
    };
    let (_, first) = waits(other, "queue_wait('urgent', 'later', 60)");
    waiting("urgent", 1);
    let mut writer = site.session();
    writer.run("INSERT INTO urgent VALUES (7, 'now')").unwrap();
    let (value, mut first) = first.join().unwrap();
    assert_eq!(value, Ok(Some("1".to_owned())));
    assert_eq!(ids(&mut first, "urgent"), [7]);
    waiting("later", 0);
    // KILL ends a wait at once; so does DROP.
    let (id, killed) = waits(first, "queue_wait('later', 600)");
    waiting("later", 1);
    writer.run(&format!("KILL QUERY {id}")).unwrap();
    let (value, other) = killed.join().unwrap();
    assert!(value.is_err(), "{value:?}");
    let (_, dropped) = waits(other, "queue_wait('later', 600)");
    waiting("later", 1);
    writer.run("DROP TABLE later").unwrap();
    let (value, _) = dropped.join().unwrap();
    assert_eq!(value, Ok(None));
    site
}

fn as_they_were_put_in(site: QueueSite) -> QueueSite {
    let mut session = site.session();
    let columns = "a TINYINT UNSIGNED, b BIGINT, c DECIMAL(20,5), d FLOAT, e DOUBLE, f BIT(11), g CHAR(20), h VARCHAR(300), \
                   i BINARY(5), j VARBINARY(9), k TINYTEXT, l LONGTEXT, m BLOB, n DATE, o TIME(3), p DATETIME(6), \
                   q TIMESTAMP(2) NULL, r YEAR, s ENUM('x','y'), t SET('x','y'), u JSON, v POINT, w VARCHAR(20) CHARACTER SET utf8mb4, z INT NOT NULL";
    session
        .run(&format!("CREATE TABLE r ({columns}) ENGINE=InnoDB"))
        .unwrap();
    session
        .run(&format!("CREATE TABLE q ({columns}) ENGINE=QUEUE"))
        .unwrap();
    let row = "255, -9223372036854775808, 123456789012345.67891, -0.0, 1e300, b'10000000001', ' a ', REPEAT('é', 200), \
               X'00FF', X'5C00', '', REPEAT('long', 50000), X'000102', '0000-00-00', '-838:59:59.999', '2026-11-22 01:02:03.456789', \
               '2026-11-22 01:02:03.45', 1999, 'y', 'x,y', '{\"a\":[1]}', POINT(1, 2), '😀', ";
    session.run("SET sql_mode = ''").unwrap();
    for table in ["r", "q"] {
        session
            .run(&format!("INSERT INTO {table} VALUES ({row} 1)"))
            .unwrap();
        session
            .run(&format!("INSERT INTO {table} (z) VALUES (2), (3)"))
            .unwrap();
        session
            .run(&format!("INSERT INTO {table} SELECT * FROM r WHERE z = 1"))
            .unwrap();
    }
    session.run("DELETE FROM r WHERE z = 1 LIMIT 1").unwrap();
    session
        .run(&format!("INSERT INTO r VALUES ({row} 1)"))
        .unwrap();
    let all = |session: &mut Session, table: &str| {
        let rows = session.rows(&format!("SELECT SHA2(CONCAT_WS('|', HEX(a), b, c, HEX(d), e, HEX(f), HEX(g), HEX(h), HEX(i), HEX(j), \
             HEX(k), SHA2(l, 256), HEX(m), n, o, p, q, r, s, t, u, HEX(v), HEX(w), z), 256) FROM {table} ORDER BY z, 1"));
        let rows = rows.unwrap();
        rows.iter()
            .map(|row| row.at(0).unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(all(&mut session, "q").len(), 5);
    let (mut was, mut is) = (all(&mut session, "r"), all(&mut session, "q"));
    is.dedup();
    was.dedup();
    assert_eq!(is, was);
    // They are there after a clean stop, and a statement of many rows is there wholly or not at all.
    let before = all(&mut session, "q");
    drop(session);
    let site = site.again(|running| running.stop(SERVER_DEADLINE).unwrap());
    let mut session = site.session();
    assert_eq!(all(&mut session, "q"), before);
    session.run("SET sql_mode = 'STRICT_ALL_TABLES'").unwrap();
    refused(
        &mut session,
        "INSERT INTO q (z) VALUES (4), (5), ('six')",
        "six",
    );
    assert_eq!(all(&mut session, "q"), before);
    session.run("RENAME TABLE q TO q2").unwrap();
    assert_eq!(all(&mut session, "q2"), before);
    session.run("TRUNCATE q2").unwrap();
    assert_eq!(number(&mut session, "COUNT(*) FROM q2"), Some(0));
    site
}

fn to_nobody_else(site: QueueSite) -> QueueSite {
    let mut session = site.session();
    queue(&mut session, "mails", 1);
    refused(&mut session, "UPDATE mails SET id = 2", "not changed");
    refused(
        &mut session,
        "CREATE TABLE k (id INT PRIMARY KEY) ENGINE=QUEUE",
        "keys",
    );
    refused(
        &mut session,
        "CREATE TABLE k (id INT AUTO_INCREMENT) ENGINE=QUEUE",
        "",
    );
    refused(
        &mut session,
        "CREATE TEMPORARY TABLE k (id INT) ENGINE=QUEUE",
        "",
    );
    refused(
        &mut session,
        "SELECT queue_wait('mails', 'urgent', 'x', 1, 2)",
        "queue_wait('[database.]table[:condition]'",
    );
    for slot in ["-1", "64", "9223372036854775807"] {
        let what = format!("queue_set_srcid({slot}, 'a', 1)");
        assert_eq!(number(&mut session, &what), None, "{slot}");
    }
    // What a source sent again is passed over.
    for (mode, id) in [("a", 5), ("a", 5), ("a", 6), ("w", 5)] {
        session
            .run(&format!("SELECT queue_set_srcid(3, '{mode}', {id})"))
            .unwrap();
        session
            .run("INSERT INTO mails VALUES (9, 'relayed')")
            .unwrap();
    }
    assert_eq!(ids(&mut session, "mails"), [1, 9, 9, 9]);
    for sql in [
        "CREATE USER reader@localhost",
        "GRANT SELECT, INSERT ON shop.* TO reader@localhost",
    ] {
        session.run(sql).unwrap();
    }
    let mut options = site.running.connect_options();
    options.user = Some("reader".to_owned());
    let mut reader = Session::open(&options).unwrap();
    refused(
        &mut reader,
        "SELECT queue_wait('shop.mails', 0)",
        "DELETE command denied",
    );
    reader
        .run("INSERT INTO shop.mails VALUES (10, 'mine')")
        .unwrap();
    assert_eq!(ids(&mut reader, "shop.mails"), [1, 9, 9, 9, 10]);
    site
}

fn to_those_whose_condition_is_true(site: QueueSite) -> QueueSite {
    let mut session = site.session();
    let columns = "id INT NOT NULL, size SMALLINT UNSIGNED, what VARCHAR(300), body BLOB, day DATE, at DATETIME(3), \
                   t TIME, made TIMESTAMP NULL, y YEAR, big BIGINT, c CHAR(5), kind ENUM('a','b'), price DECIMAL(20,5), \
                   x DOUBLE, f FLOAT, bits BIT(11), b BINARY(5), vb VARBINARY(300), spot POINT";
    session
        .run(&format!("CREATE TABLE q ({columns}) ENGINE=QUEUE"))
        .unwrap();
    session.run("SET time_zone = '+00:00'").unwrap();
    let rows = "(1, 65535, 'one', 'x', '2026-11-22', '2026-11-22 01:02:03.5', '-12:34:56', '1970-01-02', 1999, -5, 'ab', 'b', -1234567890.5, 1e-3, 0.1, b'10000000001', X'00FF', X'005C00', POINT(1, 2)), \
                (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), \
                (3, 3, 'three', 'y', '1000-01-01', '1000-01-01', '01:00:00', '2026-11-22', 2026, 5, '', 'a', 0.1, -2, 1, 3, 'abcde', '', NULL)";
    session
        .run(&format!("INSERT INTO q VALUES {rows}"))
        .unwrap();
    for (condition, row) in [
        ("id=2", Some(2)),
        ("size > 60000", Some(1)),
        ("size IS NULL", Some(2)),
        ("what = ''three''", Some(3)),
        ("what LIKE ''on%''", Some(1)),
        ("day < 20000101", Some(3)),
        ("at = 20261122010203", Some(1)),
        ("t < 0", Some(1)),
        ("made = 86400", Some(1)),
        ("y IN (2025, 2026)", Some(3)),
        ("big < 0 AND c = ''ab''", Some(1)),
        ("kind = 1", Some(3)),
        ("price = -1234567890.50", Some(1)),
        ("price = 0.1", Some(3)),
        ("x = 0.001", Some(1)),
        ("f = 0.1", None),
        ("f > 0.1 AND f < 0.2e0", Some(1)),
        ("bits & 1024", Some(1)),
        ("bits = 3", Some(3)),
        ("`id` BETWEEN 4 AND 9", None),
        ("b = X''00FF000000''", Some(1)),
        ("b = X''00FF''", None),
        ("b = ''abcde''", Some(3)),
        ("vb = x''005c00''", Some(1)),
        ("vb < X''00''", Some(3)),
        ("vb IS NULL", Some(2)),
        ("body = ''y''", Some(3)),
        ("body > X''78'' OR body = 1", Some(3)),
    ] {
        let waited = number(&mut session, &format!("queue_wait('q:{condition}', 0)"));
        assert_eq!(waited, Some(i64::from(row.is_some())), "{condition}");
        assert_eq!(ids(&mut session, "q"), Vec::from_iter(row), "{condition}");
        session.run("DO queue_abort()").unwrap();
    }
    // The first that matches comes first, whatever stands before it.
    assert_eq!(
        number(&mut session, "queue_wait('q:id > 5', 'q:id >= 2', 0)"),
        Some(2)
    );
    assert_eq!(ids(&mut session, "q"), [2]);
    these_are_no_conditions(&mut session);
    if site.host != Host::MySql9 {
        no_text_is_asked_that_is_kept_as_something_else(&mut session);
    }
    site
}

/// Types of MariaDB alone. A comparison of their bytes would find nothing, and say nothing of it.
fn no_text_is_asked_that_is_kept_as_something_else(session: &mut Session) {
    let columns = "a UUID, b INET6, c VARCHAR(9) COMPRESSED, d BLOB COMPRESSED, id INT";
    for sql in [
        &format!("CREATE TABLE kept ({columns}) ENGINE=QUEUE"),
        "INSERT INTO kept VALUES (UUID(), '::1', 'abc', 'abc', 7)",
    ] {
        session.run(sql).unwrap();
    }
    for column in ["a", "b", "c", "d"] {
        let asked = format!("SELECT queue_wait('kept:{column} = ''abc''', 0)");
        refused(session, &asked, &format!("no column {column}"));
    }
    assert_eq!(number(session, "queue_wait('kept:id = 7', 0)"), Some(1));
}

fn these_are_no_conditions(session: &mut Session) {
    for (sql, because) in [
        (
            "SELECT queue_wait('q:spot = 1', 0)",
            "condition is wrong at byte 0",
        ),
        ("SELECT queue_wait('q:id >', 0)", "condition is wrong"),
        ("SELECT queue_wait('q:vb = \\'\\0\\'', 0)", "zero byte"),
        (
            "SELECT queue_wait('q:vb = X\\'0\\'', 0)",
            "this is not a string of bytes",
        ),
    ] {
        refused(session, sql, because);
    }
}

/// What is asked of each server.
const QUESTIONS: [fn(QueueSite) -> QueueSite; 6] = [
    to_their_owners,
    to_whom_owns_them_while_waits_fail,
    to_those_who_wait,
    as_they_were_put_in,
    to_nobody_else,
    to_those_whose_condition_is_true,
];

fn on(host: Host) {
    let mut site = QueueSite::start_on(host, &[]);
    for question in QUESTIONS {
        site.clear();
        site = question(site);
    }
}

#[test]
fn on_mariadb_10_11() {
    on(Host::MariaDb10);
}

#[test]
fn on_mariadb_11_8() {
    on(Host::MariaDb11);
}

#[test]
fn on_mysql_9() {
    on(Host::MySql9);
}
