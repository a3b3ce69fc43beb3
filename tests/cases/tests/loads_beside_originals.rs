//! Is a database that is loaded under another name the original cell by cell, does nothing of it lead back,
//! and is the original as it was?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{done, dump, load_into};
use evenkeel_cases::program::{Ended, Evenkeel, killed_at, run};
use evenkeel_server::abilities::Flavour;
use evenkeel_server::connect::{Session, quote, quote_name};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_8_0_15};
use evenkeel_testkit::{Scratch, TestServer};
use serde_json::{Value, json};
use std::process::Command;

/// The database: a backquote, a dot, and a word that stands in literals and is a column's name too.
const OLD: &str = "sh`o.p";
const NEW: &str = "co`p.y";

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

/// `@@` is the database's name in backquotes. What leads back if it is not exchanged: keys, a view, a
/// trigger, routines and an event say it in whole.
const SCRIPT: [&str; 19] = [
    "CREATE DATABASE @@ CHARACTER SET utf8mb4",
    "CREATE DATABASE shop",
    "CREATE TABLE shop.kinds (id INT PRIMARY KEY)",
    "INSERT INTO shop.kinds VALUES (1)",
    "CREATE TABLE @@.parent (id INT PRIMARY KEY, @@ VARCHAR(20) DEFAULT '@@', g VARCHAR(30) AS (CONCAT('@@.', @@)))",
    "CREATE TABLE @@.`ch``i.ld` (id INT PRIMARY KEY, up INT, kind INT, s INT AS (id * 2) STORED, KEY (s), \
     CONSTRAINT up FOREIGN KEY (up) REFERENCES @@.parent (id) ON DELETE CASCADE, \
     CONSTRAINT kind FOREIGN KEY (kind) REFERENCES shop.kinds (id))",
    "CREATE TABLE @@.log (id INT PRIMARY KEY AUTO_INCREMENT, what VARCHAR(60), b BLOB)",
    "CREATE TABLE @@.my (a INT) ENGINE=MyISAM",
    "INSERT INTO @@.parent (id, @@) VALUES (1, '@@.parent'), (2, NULL), (3, 'ü')",
    "INSERT INTO @@.`ch``i.ld` (id, up, kind) VALUES (10, 1, 1), (20, 2, NULL), (30, NULL, 1)",
    "INSERT INTO @@.log (what, b) VALUES ('x', X'00FF27095C')",
    "INSERT INTO @@.my VALUES (1), (1)",
    "CREATE FUNCTION @@.`size`() RETURNS INT READS SQL DATA RETURN (SELECT COUNT(*) FROM @@.parent)",
    "CREATE VIEW @@.seen AS SELECT p.@@ AS @@, @@.`size`() AS n, c.id AS c FROM @@.parent p JOIN \
     @@.`ch``i.ld` c ON c.up = p.id",
    "CREATE VIEW @@.counted AS SELECT COUNT(*) AS n FROM @@.seen",
    "CREATE PROCEDURE @@.note(what VARCHAR(60)) BEGIN INSERT INTO @@.log (what) SELECT what FROM \
     (SELECT 1) x, @@.counted; UPDATE @@.parent SET @@.parent.@@ = what WHERE id = 3; END",
    "CREATE TRIGGER @@.loud AFTER INSERT ON @@.parent FOR EACH ROW INSERT INTO @@.log (what) \
     VALUES (NEW.@@)",
    "CREATE EVENT @@.later ON SCHEDULE EVERY 1 DAY STARTS '2036-01-01 00:00:00' COMMENT '@@' DO DELETE FROM \
     @@.log",
    "CREATE PROCEDURE @@.told() PREPARE s FROM 'DELETE FROM @@.log'",
];

/// What MariaDB has besides.
const SEQUENCES: [&str; 3] = [
    "CREATE SEQUENCE @@.`n.o` START WITH 100",
    "CREATE TABLE @@.numbered (id INT PRIMARY KEY DEFAULT nextval(@@.`n.o`), a INT)",
    "INSERT INTO @@.numbered (a) VALUES (1), (2)",
];

fn make(session: &mut Session, flavour: Flavour) {
    let special = match flavour {
        Flavour::MariaDb => &SEQUENCES[..],
        Flavour::MySql => &[],
    };
    for sql in SCRIPT.iter().chain(special) {
        let sql = sql.replace("@@", &quote_name(OLD));
        session
            .run(&sql)
            .unwrap_or_else(|e| panic!("{}", e.chain()));
    }
}

fn rows(session: &mut Session, sql: &str) -> Vec<Vec<Option<String>>> {
    let rows = session
        .rows(sql)
        .unwrap_or_else(|e| panic!("{}", e.chain()));
    let width = |row: &evenkeel_server::connect::Row| {
        (0..40).map(|at| row.at(at).map(str::to_owned)).collect()
    };
    rows.iter().map(width).collect()
}

/// Every cell of every table and view of a database, and what it has besides.
fn cells(session: &mut Session, schema: &str) -> Vec<Vec<Option<String>>> {
    let columns = session
        .rows(&format!(
            "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} \
             ORDER BY TABLE_NAME, ORDINAL_POSITION",
            quote(schema)
        ))
        .unwrap();
    let mut all = Vec::new();
    for one in &columns {
        let (table, column) = (one.at(0).unwrap(), one.at(1).unwrap());
        let sql = format!(
            "SELECT {}, {}, HEX({}) AS cell FROM {}.{} ORDER BY cell",
            quote(table),
            quote(column),
            quote_name(column),
            quote_name(schema),
            quote_name(table)
        );
        all.extend(rows(session, &sql));
    }
    for (list, of) in [
        ("TABLES", "TABLE_NAME, TABLE_TYPE, ENGINE"),
        ("ROUTINES", "ROUTINE_NAME, ROUTINE_TYPE, DEFINER"),
        ("TRIGGERS", "TRIGGER_NAME, EVENT_OBJECT_TABLE, DEFINER"),
        ("EVENTS", "EVENT_NAME, STATUS, DEFINER"),
    ] {
        let place = match list {
            "TABLES" => "TABLE_SCHEMA",
            "ROUTINES" => "ROUTINE_SCHEMA",
            "TRIGGERS" => "TRIGGER_SCHEMA",
            _ => "EVENT_SCHEMA",
        };
        all.extend(rows(
            session,
            &format!(
                "SELECT {of} FROM information_schema.{list} WHERE {place} = {} ORDER BY 1",
                quote(schema)
            ),
        ));
    }
    all
}

/// Everything that makes a database, in the server's words.
fn texts(session: &mut Session, schema: &str) -> String {
    let name = quote_name(schema);
    let mut all = String::new();
    for (noun, sql) in [
        ("TABLE", format!("SHOW TABLES FROM {name}")),
        (
            "PROCEDURE",
            format!(
                "SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = {} AND ROUTINE_TYPE = 'PROCEDURE' AND ROUTINE_NAME <> 'told'",
                quote(schema)
            ),
        ),
        (
            "FUNCTION",
            format!(
                "SELECT ROUTINE_NAME FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = {} AND ROUTINE_TYPE = 'FUNCTION'",
                quote(schema)
            ),
        ),
        (
            "TRIGGER",
            format!(
                "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = {}",
                quote(schema)
            ),
        ),
        (
            "EVENT",
            format!(
                "SELECT EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA = {}",
                quote(schema)
            ),
        ),
    ] {
        for row in session.rows(&sql).unwrap() {
            let object = quote_name(row.at(0).unwrap());
            let shown = session
                .one(&format!("SHOW CREATE {noun} {name}.{object}"))
                .unwrap()
                .unwrap();
            let cells: Vec<&str> = (1..4).filter_map(|at| shown.at(at)).collect();
            all.push_str(&cells.join(" "));
            all.push('\n');
        }
    }
    all
}

/// What counts up by itself is the same when it is asked for; that it was asked is not.
fn before(session: &mut Session) -> (Vec<Vec<Option<String>>>, String) {
    (cells(session, OLD), texts(session, OLD))
}

fn value(session: &mut Session, sql: &str) -> String {
    let value = session
        .value(sql)
        .unwrap_or_else(|e| panic!("{}", e.chain()));
    value.unwrap_or_else(|| "NULL".to_owned())
}

#[track_caller]
fn assert_is_copy(
    session: &mut Session,
    original: &(Vec<Vec<Option<String>>>, String),
    what: &str,
) {
    let copy = cells(session, NEW);
    assert!(copy.len() > 40, "{what}: {}", copy.len());
    for (one, other) in original.0.iter().zip(&copy) {
        assert_eq!(other, one, "{what}");
    }
    assert_eq!(copy.len(), original.0.len(), "{what}");
    assert_eq!(before(session), *original, "{what}: the original changed");
    // Nothing leads back: what is left of the old name are literals, comments and a column.
    let old = quote_name(OLD);
    let text = texts(session, NEW);
    let leads_back = |part: &&str| !part.starts_with('\'');
    let back = text.split(&format!("{old}.")).skip(1).find(leads_back);
    assert_eq!(back, None, "{what}: {text}");
    assert!(text.contains(&quote_name(NEW)), "{what}: {text}");
}

/// Uses the copy: what is called, fires and cascades stays in it.
fn use_copy(session: &mut Session, what: &str) {
    let (new, old) = (quote_name(NEW), quote_name(OLD));
    let old_sums = cells(session, OLD);
    let run = |session: &mut Session, sql: &str| {
        session
            .run(sql)
            .unwrap_or_else(|e| panic!("{what}: {}", e.chain()));
    };
    run(
        session,
        &format!("INSERT INTO {new}.parent (id) VALUES (4)"),
    );
    run(
        session,
        &format!("INSERT INTO {new}.`ch``i.ld` (id, up) VALUES (40, 4)"),
    );
    run(session, &format!("CALL {new}.note('called')"));
    assert_eq!(
        value(session, &format!("SELECT COUNT(*) FROM {new}.log")),
        "3",
        "{what}"
    );
    assert_eq!(
        value(
            session,
            &format!("SELECT {old} FROM {new}.parent WHERE id = 3")
        ),
        "called"
    );
    assert_eq!(
        value(session, &format!("SELECT MAX(n) FROM {new}.seen")),
        "4",
        "{what}"
    );
    run(session, &format!("DELETE FROM {new}.parent WHERE id = 4"));
    assert_eq!(
        value(session, &format!("SELECT COUNT(*) FROM {new}.`ch``i.ld`")),
        "3",
        "{what}"
    );
    assert_eq!(
        cells(session, OLD),
        old_sums,
        "{what}: the original changed"
    );
}

fn warnings(ended: &Ended) -> Vec<&str> {
    let all = ended.answer["warnings"].as_array().unwrap();
    all.iter().filter_map(Value::as_str).collect()
}

/// Loads that are killed on their way go on as they were begun, and in no other way.
fn killed_on_the_way(load: &dyn Fn(&[&str]) -> Command, otherwise: Command, what: &str) {
    for point in [
        "load::begun",
        "load::phase#3",
        "load::committed#2",
        "load::rows",
    ] {
        let ended = run(killed_at(load(&[]), point));
        assert_eq!(ended.signal, Some(9), "{what}, {point}: {ended:?}");
    }
    let other = run(otherwise);
    let said = other.message();
    assert_eq!(other.code, Some(2), "{what}: {said}");
    assert!(said.contains("other options"), "{what}: {said}");
}

/// What cannot be decided is told of the object that has it, and of no other.
#[track_caller]
fn assert_reported(ended: &Ended, what: &str) {
    let reported = warnings(ended);
    let literal = format!("procedure {NEW}.told has {OLD} in a literal");
    assert!(
        reported.iter().any(|one| one.starts_with(&literal)),
        "{what}: {reported:?}"
    );
    assert!(
        !reported.iter().any(|one| one.contains(".note")),
        "{what}: {reported:?}"
    );
}

/// What is there is not touched; replaced, only the copy is dropped.
fn replaced(session: &mut Session, load: &dyn Fn(&[&str]) -> Command, what: &str) {
    let there = run(load(&[]));
    assert_eq!(there.code, Some(14), "{what}: {}", there.message());
    let plan = done(run(load(&["--replace"])));
    let drops = plan.answer["drops"].as_array().unwrap();
    let inside = |one: &Value| one.as_str().unwrap().contains(NEW);
    assert!(
        drops.len() > 6 && drops.iter().all(inside),
        "{what}: {drops:?}"
    );
    let emptied = format!("DELETE FROM {}.log", quote_name(NEW));
    session.run(&emptied).unwrap();
    done(run(load(&["--replace", "--execute"])));
}

/// A column of the copy takes its default from the copy's sequence.
fn assert_own_sequence(session: &mut Session, what: &str) {
    let new = quote_name(NEW);
    let first = value(session, &format!("SELECT NEXTVAL({new}.`n.o`)"));
    let insert = format!("INSERT INTO {new}.numbered (a) VALUES (3)");
    session.run(&insert).unwrap();
    let given = format!("SELECT id FROM {new}.numbered WHERE a = 3");
    let next = first.parse::<u64>().unwrap() + 1;
    assert_eq!(value(session, &given), next.to_string(), "{what}");
}

fn copies(server: TestServer) {
    let scratch = Scratch::new();
    let running = server.start(&scratch.join("source"), &SMALL);
    let mut session = running.session().unwrap();
    make(&mut session, server.binary.flavour);
    let original = before(&mut session);
    let into = format!("{OLD}={NEW}");
    let only = format!("--database={OLD}");
    for (format, method) in [("tab", "load-data"), ("sql", "insert"), ("csv", "insert")] {
        let what = format!("{}, {format}", server.name);
        let output = scratch.join(format);
        let flags = ["--format", format];
        done(run(dump(&program(), &running, &output, &flags)));
        let flags = [
            only.as_str(),
            "--into",
            into.as_str(),
            "--verify",
            "--method",
            method,
        ];
        let load = |more: &[&str]| {
            let flags = [&flags[..], more].concat();
            load_into(&program(), &running, &output, &flags)
        };
        if format == "tab" {
            let otherwise = load_into(&program(), &running, &output, &[&only]);
            killed_on_the_way(&load, otherwise, &what);
        }
        let ended = done(run(load(&[])));
        assert_eq!(ended.answer["differs"], json!([]), "{what}");
        assert_eq!(ended.answer["into"], json!({ OLD: NEW }), "{what}");
        assert_eq!(ended.answer["resumed"], format == "tab", "{what}");
        assert_reported(&ended, &what);
        assert_is_copy(&mut session, &original, &what);
        replaced(&mut session, &load, &what);
        assert_is_copy(&mut session, &original, &format!("{what}, replaced"));
        use_copy(&mut session, &what);
        if server.binary.flavour == Flavour::MariaDb {
            assert_own_sequence(&mut session, &what);
        }
        let drop = format!("DROP DATABASE {}", quote_name(NEW));
        session.run(&drop).unwrap();
    }
}

#[test]
fn on_mariadb() {
    copies(mariadb_10_11());
}

#[test]
fn on_mysql_8() {
    copies(mysql_8_0_15());
}

/// Two databases change their names, and what one says of the other follows.
#[test]
fn names_are_exchanged_at_once() {
    let scratch = Scratch::new();
    let server = mariadb_10_11();
    let running = server.start(&scratch.join("source"), &SMALL);
    let mut session = running.session().unwrap();
    for sql in [
        "CREATE DATABASE one",
        "CREATE DATABASE two",
        "CREATE TABLE one.t (id INT PRIMARY KEY)",
        "CREATE TABLE two.t (id INT PRIMARY KEY, CONSTRAINT up FOREIGN KEY (id) REFERENCES one.t (id))",
        "CREATE VIEW one.v AS SELECT id FROM two.t",
        "INSERT INTO one.t VALUES (1), (2)",
        "INSERT INTO two.t VALUES (2)",
    ] {
        session.run(sql).unwrap();
    }
    let output = scratch.join("dump");
    done(run(dump(&program(), &running, &output, &[])));
    let target = server.start(&scratch.join("target"), &SMALL);
    let flags = ["--into", "one=two", "--into", "two=one", "--verify"];
    let ended = done(run(load_into(&program(), &target, &output, &flags)));
    assert_eq!(ended.answer["differs"], json!([]));
    let mut there = target.session().unwrap();
    assert_eq!(value(&mut there, "SELECT COUNT(*) FROM two.t"), "2");
    assert_eq!(value(&mut there, "SELECT id FROM two.v"), "2");
    there.run("DELETE FROM two.t WHERE id = 1").unwrap();
    assert!(there.run("DELETE FROM two.t WHERE id = 2").is_err());
}

/// Names that cannot be, and two that would be one, are refused before anything is made.
#[test]
fn what_cannot_be_is_refused() {
    let scratch = Scratch::new();
    let running = mariadb_10_11().start(&scratch.join("source"), &SMALL);
    let mut session = running.session().unwrap();
    for sql in [
        "CREATE DATABASE one",
        "CREATE TABLE one.t (id INT)",
        "CREATE DATABASE two",
    ] {
        session.run(sql).unwrap();
    }
    let output = scratch.join("dump");
    done(run(dump(&program(), &running, &output, &["--users"])));
    let load = |flags: &[&str]| run(load_into(&program(), &running, &output, flags));
    let long = format!("--into=one={}", "x".repeat(65));
    for (flags, word) in [
        (&["--into=three=copy"][..], "no database 'three'"),
        (
            &["--into=one=two"],
            "two databases of the dump would be loaded as two",
        ),
        (
            &["--into=one=copy", "--into=two=copy"],
            "would be loaded as copy",
        ),
        (&["--into=one=copy", "--into=one=other"], "names one twice"),
        (&["--into=one=mysql"], "'mysql'"),
        (&["--into=one=Information_Schema"], "'Information_Schema'"),
        (&["--into=one=evenkeel_load"], "'evenkeel_load'"),
        (&[&long], "64 characters"),
        (&["--into=one=copy "], "ends with a space"),
        (&["--into=one=\u{1f600}"], "character"),
        (&["--into=one"], "'one'"),
        (&["--into=one="], "'one='"),
        (&["--into==copy"], "'=copy'"),
        (&["--database=two", "--into=one=copy"], "leave out"),
        (
            &["--into=one=copy", "--into=two=copy2", "--users"],
            "--users",
        ),
    ] {
        let ended = load(flags);
        let said = ended.message();
        assert_eq!(ended.code, Some(2), "{flags:?}: {said}");
        assert!(said.contains(word), "{flags:?}: {said}");
    }
    assert_eq!(
        value(
            &mut session,
            "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE '%copy%'"
        ),
        "0"
    );
}
