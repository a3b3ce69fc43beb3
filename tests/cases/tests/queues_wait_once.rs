//! Is a row lost where a wait stands in a statement that does more than wait, or is asked more than once?

use evenkeel_cases::queues::{Host, QueueSite};
use evenkeel_server::connect::Session;

/// What becomes of a wait in a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It gives one row.
    Waits,
    /// It is refused before anything is done.
    Refused,
    /// It gives one row; where a second one would be given, and the first be consumed, it fails.
    Once,
    /// It gives none, and there is no error.
    Idle,
}
use Fate::{Idle, Once, Refused, Waits};

/// Statements, and what becomes of the wait in MariaDB and in MySQL.
const FORMS: &[(&str, Fate, Fate)] = &[
    ("SELECT queue_wait('q', 0)", Waits, Waits),
    ("SELECT queue_wait_n('q', 1, 0)", Waits, Waits),
    ("SELECT queue_wait('q', 0) INTO @w", Waits, Waits),
    ("SELECT * FROM q WHERE queue_wait('q', 0)", Waits, Refused),
    ("DO queue_wait('q', 0)", Waits, Waits),
    ("SET @w = queue_wait('q', 0)", Waits, Waits),
    ("SELECT IF(queue_wait('q', 0), 1, 2)", Waits, Waits),
    ("SELECT (SELECT queue_wait('q', 0))", Waits, Waits),
    (
        "SELECT * FROM (SELECT queue_wait('q', 0) w) d",
        Waits,
        Waits,
    ),
    ("SELECT queue_wait('q', 0) UNION SELECT 5", Waits, Waits),
    (
        "SELECT * FROM i WHERE id IN (SELECT queue_wait('q', 0))",
        Waits,
        Waits,
    ),
    ("EXECUTE p", Waits, Waits),
    ("CALL in_a_select()", Waits, Waits),
    ("CALL in_a_condition()", Waits, Waits),
    ("CALL twice()", Waits, Waits),
    ("EXPLAIN SELECT queue_wait('q', 0)", Idle, Idle),
    (
        "EXPLAIN SELECT * FROM q WHERE queue_wait('q', 0)",
        Idle,
        Refused,
    ),
    ("DELETE FROM q WHERE queue_wait('q', 0)", Refused, Refused),
    ("DELETE FROM i WHERE queue_wait('q', 0)", Refused, Refused),
    ("UPDATE i SET x = queue_wait('q', 0)", Refused, Refused),
    (
        "UPDATE i SET x = 1 WHERE queue_wait('q', 0)",
        Refused,
        Refused,
    ),
    (
        "DELETE i FROM i JOIN q ON queue_wait('q', 0)",
        Refused,
        Refused,
    ),
    (
        "INSERT INTO i VALUES (queue_wait('q', 0), 9)",
        Refused,
        Refused,
    ),
    (
        "INSERT INTO i SELECT queue_wait('q', 0), 9",
        Refused,
        Refused,
    ),
    (
        "REPLACE INTO i SELECT queue_wait('q', 0), 9",
        Refused,
        Refused,
    ),
    (
        "CREATE TABLE made AS SELECT queue_wait('q', 0)",
        Refused,
        Refused,
    ),
    (
        "CREATE VIEW made AS SELECT queue_wait('q', 0)",
        Refused,
        Refused,
    ),
    ("SHOW TABLES WHERE queue_wait('q', 0)", Refused, Refused),
    ("KILL QUERY queue_wait('q', 0)", Refused, Refused),
    ("DELETE FROM q WHERE in_a_function()", Refused, Refused),
    ("SELECT queue_wait('q', 0) FROM i", Once, Once),
    ("SELECT id FROM q HAVING queue_wait('q', 0)", Once, Refused),
    ("SELECT SUM(queue_wait('q', 0)) FROM i", Once, Once),
    ("SELECT queue_wait('q', 0), queue_wait('q', 0)", Once, Once),
    (
        "SELECT queue_wait('q', 0) UNION ALL SELECT queue_wait('q', 0)",
        Once,
        Once,
    ),
    (
        "WITH c AS (SELECT queue_wait('q', 0) w) SELECT * FROM c a, c b",
        Once,
        Waits,
    ),
    (
        "SET @v = queue_wait('q', 0), @w = queue_wait('q', 0)",
        Once,
        Once,
    ),
    ("SELECT in_a_function() FROM i", Once, Refused),
    ("UPDATE i SET x = in_a_function()", Once, Refused),
    ("INSERT INTO triggered VALUES (1), (2)", Once, Refused),
];

const BEGIN: &[&str] = &[
    "CREATE TABLE q (id INT NOT NULL) ENGINE=QUEUE",
    "CREATE TABLE i (id INT, x INT) ENGINE=InnoDB",
    "INSERT INTO i VALUES (1, 0), (2, 0), (3, 0)",
    "CREATE FUNCTION in_a_function() RETURNS INT DETERMINISTIC \
     BEGIN DECLARE w INT; SELECT queue_wait('q', 0) INTO w; RETURN w; END",
    "CREATE PROCEDURE in_a_select() SELECT queue_wait('q', 0)",
    "CREATE PROCEDURE in_a_condition() BEGIN IF queue_wait('q', 0) THEN SELECT 1; END IF; END",
    // The second of two statements consumes what the first was given: as it should.
    "CREATE PROCEDURE twice() BEGIN SELECT queue_wait('other', 0) INTO @w; SELECT queue_wait('q', 0) INTO @w; END",
    "CREATE TABLE other (id INT NOT NULL) ENGINE=QUEUE",
    "CREATE TABLE triggered (a INT)",
    "CREATE TRIGGER waits BEFORE INSERT ON triggered FOR EACH ROW SET NEW.a = queue_wait('q', 0)",
];

fn number(session: &mut Session, sql: &str) -> i64 {
    session.value(sql).unwrap().unwrap().parse().unwrap()
}

/// Each says what to do instead.
fn is_refusal(why: &str) -> bool {
    why.contains("wait first") || why.contains("queue_wait(...) first")
}

fn try_form(site: &QueueSite, sql: &str, fate: Fate) {
    let (mut session, mut other) = (site.session(), site.session());
    other.run("DELETE FROM q").unwrap();
    other.run("INSERT INTO q VALUES (1), (2), (3)").unwrap();
    other.run("DELETE FROM other").unwrap();
    other.run("INSERT INTO other VALUES (7)").unwrap();
    session
        .run("PREPARE p FROM \"SELECT queue_wait('q', 0)\"")
        .unwrap();
    let reported = session.rows(sql).map(drop).map_err(|why| why.chain());
    match (fate, &reported) {
        (Waits | Idle, reported) => assert_eq!(reported, &Ok(()), "{sql}"),
        (Refused, Err(why)) => assert!(is_refusal(why), "{sql}: {why}"),
        (Once, Err(why)) => assert!(why.contains("waits once"), "{sql}: {why}"),
        (_, Ok(())) => panic!("{sql} was done"),
    }
    let owned = i64::from(matches!(fate, Waits | Once));
    let seen = number(&mut other, "SELECT COUNT(*) FROM q");
    assert_eq!(seen, 3 - owned, "{sql}: others see what is nobody's");
    drop(session);
    evenkeel_testkit::until("what it was given is back", || {
        number(&mut other, "SELECT COUNT(*) FROM q") == 3
    });
}

fn on(host: Host) {
    let site = QueueSite::start_on(host, &["--log-bin-trust-function-creators=1"]);
    let mut session = site.session();
    for sql in BEGIN {
        session
            .run(sql)
            .unwrap_or_else(|why| panic!("{sql}: {}", why.chain()));
    }
    for (sql, in_mariadb, in_mysql) in FORMS {
        let fate = match host {
            Host::MariaDb10 | Host::MariaDb11 => *in_mariadb,
            Host::MySql9 => *in_mysql,
        };
        try_form(&site, sql, fate);
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
