//! Does what one flavour writes otherwise and means the same come to the other as it was?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{done, dump, load_into};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{Scratch, TestServer};

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

fn start(server: &TestServer, scratch: &Scratch, name: &str) -> Running {
    let mut args = SMALL.to_vec();
    if server.id == mysql_9().id {
        args.retain(|arg| !arg.starts_with("--innodb-log-file-size"));
    }
    server.start(&scratch.join(name), &args)
}

fn run_all(session: &mut Session, sqls: &[&str]) {
    for sql in sqls {
        session
            .run(sql)
            .unwrap_or_else(|e| panic!("{sql}: {}", e.chain()));
    }
}

/// What came of a load.
struct Sent {
    /// What it said is lost.
    lost: String,
    /// How many keys the other server's optimizer does not see.
    hidden: Option<String>,
}

/// Loads what is made on one server into another, and asks both the same after a row was added.
fn sent(from: &TestServer, to: &TestServer, made: &[&str], added: &str, asked: &[&str]) -> Sent {
    let scratch = Scratch::new();
    let source = start(from, &scratch, "source");
    let target = start(to, &scratch, "target");
    let mut here = source.session().unwrap();
    run_all(&mut here, &["CREATE DATABASE spoken CHARACTER SET latin1"]);
    run_all(&mut here, made);
    let dir = scratch.join("dump");
    done(run(dump(
        &program(),
        &source,
        &dir,
        &["--database", "spoken"],
    )));
    let ended = done(run(load_into(&program(), &target, &dir, &["--verify"])));
    let mut there = target.session().unwrap();
    run_all(&mut here, &[added]);
    run_all(&mut there, &[added]);
    for sql in asked {
        let reported = |session: &mut Session| {
            let rows = session
                .rows(sql)
                .unwrap_or_else(|e| panic!("{sql}: {}", e.chain()));
            let rows = rows.iter().map(|row| {
                let cells =
                    (0..row.names().len()).map(|at| row.at(at).unwrap_or("NULL").to_owned());
                cells.collect::<Vec<_>>().join("|")
            });
            rows.collect::<Vec<_>>()
        };
        let (was, is) = (reported(&mut here), reported(&mut there));
        assert!(!was.is_empty(), "{sql}");
        assert_eq!(is, was, "{} to {}: {sql}", from.name, to.name);
    }
    Sent {
        lost: ended.answer["lost"].to_string(),
        hidden: there.value(&hidden_keys(to)).unwrap(),
    }
}

const FROM_MYSQL: [&str; 2] = [
    "CREATE TABLE spoken.t (id INT PRIMARY KEY, i INT DEFAULT 3 INVISIBLE COMMENT 'x', n INT NOT NULL DEFAULT 4 INVISIBLE, \
     m INT AS (id + 1) VIRTUAL INVISIBLE, u CHAR(36) DEFAULT (UUID()), x INT DEFAULT (id + 1), \
     g GEOMETRYCOLLECTION, a INT, KEY a (a) INVISIBLE, UNIQUE KEY n (n, id) INVISIBLE COMMENT 'y') CHARSET=latin1",
    "INSERT INTO spoken.t (id, i, n, g, a) VALUES (1, 8, 9, ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 2))'), 5)",
];

const FROM_MARIADB: [&str; 2] = [
    "CREATE TABLE spoken.t (id INT PRIMARY KEY, i INT DEFAULT 3 INVISIBLE COMMENT 'x', n INT NOT NULL INVISIBLE DEFAULT 4, \
     m INT AS (id + 1) VIRTUAL INVISIBLE, u CHAR(36) DEFAULT UUID(), x INT DEFAULT (id + 1), \
     c VARCHAR(9) DEFAULT CONCAT('a', 1), e TEXT DEFAULT 'it''s', b BLOB DEFAULT NULL, d DATE DEFAULT '2020-02-03', \
     s TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, a INT, \
     KEY a (a) IGNORED, UNIQUE KEY n (n, id) IGNORED COMMENT 'y') CHARSET=latin1",
    "INSERT INTO spoken.t (id, i, n, a, s) VALUES (1, 8, 9, 5, '2020-01-02 03:04:05')",
];

const ADDED: &str = "INSERT INTO spoken.t (id) VALUES (7)";

/// What the star gives, and what defaults gave.
const ASKED: [&str; 3] = [
    "SELECT GROUP_CONCAT(COLUMN_NAME, '=', EXTRA LIKE '%INVISIBLE%', COLUMN_COMMENT ORDER BY ORDINAL_POSITION) \
     FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'spoken'",
    "SELECT id, i, n, m, LENGTH(u), x, a FROM spoken.t ORDER BY id",
    "SELECT GROUP_CONCAT(DISTINCT INDEX_NAME, INDEX_COMMENT ORDER BY INDEX_NAME) \
     FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'spoken'",
];

/// Counts the keys that the optimizer does not see.
fn hidden_keys(server: &TestServer) -> String {
    let hidden = match server.id {
        // It sees all.
        "mysql-5.7.22" => "FALSE",
        id if id.starts_with("mysql") => "IS_VISIBLE = 'NO'",
        _ => "IGNORED = 'YES'",
    };
    format!(
        "SELECT COUNT(DISTINCT INDEX_NAME) FROM information_schema.STATISTICS \
         WHERE TABLE_SCHEMA = 'spoken' AND {hidden}"
    )
}

/// What is hidden stays hidden, keys and columns.
#[test]
fn from_mysql_to_mariadb() {
    for to in draw("to MariaDB", &[mariadb_10_11(), mariadb_11_8()], 1) {
        let asked = [
            &ASKED[..],
            &["SELECT ST_AsText(g), id FROM spoken.t WHERE g IS NOT NULL"],
        ]
        .concat();
        let sent = sent(&mysql_9(), &to, &FROM_MYSQL, ADDED, &asked);
        assert_eq!(sent.lost, "[]", "{}", to.name);
        assert_eq!(sent.hidden.as_deref(), Some("2"), "{}", to.name);
    }
}

/// What is hidden stays hidden, keys and columns.
#[test]
fn from_mariadb_to_mysql() {
    for from in draw("from MariaDB", &[mariadb_11_8(), mariadb_10_11()], 1) {
        let asked = [
            &ASKED[..],
            &["SELECT c, e, b, d, s > '2020-01-01' FROM spoken.t"],
        ]
        .concat();
        let sent = sent(&from, &mysql_9(), &FROM_MARIADB, ADDED, &asked);
        assert_eq!(sent.lost, "[]", "{}", from.name);
        assert_eq!(sent.hidden.as_deref(), Some("2"), "{}", from.name);
    }
}

/// Literals of more than plain ASCII, in what is computed, given and checked.
const LITERALS: [&str; 2] = [
    "CREATE TABLE spoken.t (id INT PRIMARY KEY, a VARCHAR(9) DEFAULT 'q', k VARCHAR(9), \
     s VARCHAR(40) AS (CONCAT(a, '\\\\n', 'ü', '\\n')) STORED, v VARCHAR(40) AS (CONCAT(a, '\\\\t', 'é')) VIRTUAL, \
     d VARCHAR(20) DEFAULT (CONCAT('ö\\\\x', 'it''s')), CONSTRAINT c CHECK (k <> 'ü')) \
     CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci",
    "INSERT INTO spoken.t (id) VALUES (1)",
];

#[test]
fn literals_in_expressions_stay() {
    // Of each two that follow one another, one is from MySQL and one from MariaDB.
    let pairs = [
        (mysql_9(), mariadb_10_11()),
        (mariadb_11_8(), mariadb_11_8()),
        (mysql_9(), mariadb_11_8()),
        (mariadb_11_8(), mariadb_10_11()),
    ];
    for (from, to) in draw("literals from one to another", &pairs, 2) {
        // The last of them is refused.
        let added = "INSERT IGNORE INTO spoken.t (id, k) VALUES (2, 'y'), (3, 'ü')";
        let asked = ["SELECT id, HEX(s), HEX(v), HEX(d), k FROM spoken.t ORDER BY id"];
        let sent = sent(&from, &to, &LITERALS, added, &asked);
        assert_eq!(sent.lost, "[]", "{} to {}", from.name, to.name);
    }
}

/// A server that hides no columns says so; it hides keys.
#[test]
fn what_is_older_is_reported() {
    let made = [
        "CREATE TABLE spoken.t (id INT PRIMARY KEY, i INT DEFAULT 3 INVISIBLE, u CHAR(36) DEFAULT UUID(), \
         KEY i (i) IGNORED) CHARSET=latin1",
        "INSERT INTO spoken.t (id, i) VALUES (1, 8)",
    ];
    let asked = ["SELECT id, i, LENGTH(u) FROM spoken.t ORDER BY id"];
    let sent = sent(&mariadb_10_11(), &mysql_8_0_15(), &made, ADDED, &asked);
    assert!(sent.lost.contains("INVISIBLE"), "{}", sent.lost);
    assert_eq!(sent.hidden.as_deref(), Some("1"));
}

#[test]
fn collections_have_one_type() {
    let made = [
        "CREATE TABLE spoken.t (id INT PRIMARY KEY, g GEOMETRYCOLLECTION NOT NULL, `geomcollection` INT) CHARSET=latin1",
        "INSERT INTO spoken.t VALUES (1, ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 2))'), 3)",
    ];
    let added = "INSERT INTO spoken.t SELECT 2, g, 4 FROM spoken.t WHERE id = 1";
    let asked = ["SELECT id, ST_AsText(g), `geomcollection` FROM spoken.t ORDER BY id"];
    for to in draw("collections", &[mysql_5_7_22(), mysql_9()], 1) {
        let sent = sent(&mysql_8_0_15(), &to, &made, added, &asked);
        assert_eq!(sent.lost, "[]");
    }
}
