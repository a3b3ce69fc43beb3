//! Does a load of a part bring what its patterns name and nothing else, say what it leaves out, and go on
//! only as it was begun?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{done, dump, load_into};
use evenkeel_cases::program::{Ended, Evenkeel, killed_at, run};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_8_0_15};
use evenkeel_testkit::{Scratch, TestServer};
use serde_json::{Value, json};
use std::path::PathBuf;

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

const SCRIPT: [&str; 15] = [
    "CREATE DATABASE shop",
    "CREATE DATABASE other",
    "CREATE TABLE shop.customers (id INT PRIMARY KEY)",
    "CREATE TABLE shop.orders (id INT PRIMARY KEY, customer INT, far INT, CONSTRAINT who FOREIGN KEY \
     (customer) REFERENCES shop.customers (id))",
    "CREATE TABLE shop.lines (id INT PRIMARY KEY, o INT, CONSTRAINT of_order FOREIGN KEY (o) REFERENCES \
     shop.orders (id))",
    "CREATE TABLE other.lines (id INT PRIMARY KEY)",
    "INSERT INTO shop.customers VALUES (1), (2)",
    "INSERT INTO shop.orders VALUES (10, 1, 0), (20, 2, 0), (30, NULL, 0)",
    "INSERT INTO shop.lines VALUES (100, 10)",
    "INSERT INTO other.lines VALUES (7)",
    "CREATE VIEW shop.orders_seen AS SELECT id FROM shop.orders",
    "CREATE TRIGGER shop.loud BEFORE INSERT ON shop.orders FOR EACH ROW SET NEW.far = 1",
    "CREATE TRIGGER shop.calm BEFORE INSERT ON shop.lines FOR EACH ROW SET NEW.o = NULL",
    "CREATE PROCEDURE shop.orders_gone() DELETE FROM shop.orders",
    "CREATE PROCEDURE shop.apart() SELECT 1",
];

/// A server with two databases and a dump of them.
fn fixture(server: &TestServer, scratch: &Scratch) -> (Running, PathBuf) {
    let source = server.start(&scratch.join("source"), &SMALL);
    let mut session = source.session().unwrap();
    for sql in SCRIPT {
        session.run(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
    }
    let output = scratch.join("dump");
    done(run(dump(&program(), &source, &output, &[])));
    (server.start(&scratch.join("target"), &SMALL), output)
}

fn list(session: &mut Session, sql: &str) -> Vec<String> {
    let rows = session
        .rows(sql)
        .unwrap_or_else(|e| panic!("{}", e.chain()));
    let cell = |row: &evenkeel_server::connect::Row| row.at(0).unwrap_or("NULL").to_owned();
    rows.iter().map(cell).collect()
}

/// Everything of the two databases that a server has.
fn there(session: &mut Session) -> Vec<String> {
    list(
        session,
        "SELECT n FROM (SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) AS n, TABLE_SCHEMA AS s FROM \
         information_schema.TABLES UNION ALL SELECT CONCAT(ROUTINE_SCHEMA, '.', ROUTINE_NAME), \
         ROUTINE_SCHEMA FROM information_schema.ROUTINES UNION ALL SELECT CONCAT(TRIGGER_SCHEMA, '.', \
         TRIGGER_NAME), TRIGGER_SCHEMA FROM information_schema.TRIGGERS UNION ALL SELECT SCHEMA_NAME, \
         SCHEMA_NAME FROM information_schema.SCHEMATA) a WHERE s IN ('shop', 'other') ORDER BY n",
    )
}

/// Fails unless it ended with this code, and its error and hints have these words.
#[track_caller]
fn refused(ended: &Ended, code: i32, words: &[&str]) {
    let hints = ended.answer["hints"].as_array().into_iter().flatten();
    let said: Vec<&str> = hints.filter_map(Value::as_str).collect();
    let said = format!("{}; {}", ended.message(), said.join("; "));
    assert_eq!(ended.code, Some(code), "{said}");
    for word in words {
        assert!(said.contains(word), "{word}: {said}");
    }
}

fn parts_are_loaded(server: TestServer) {
    let scratch = Scratch::new();
    let (target, output) = fixture(&server, &scratch);
    let load = |flags: &[&str]| run(load_into(&program(), &target, &output, flags));
    let mut session = target.session().unwrap();

    // What matches nothing is named, and nothing is made.
    refused(
        &load(&["--table", r"shop\.orders", "--table", r"shop\.ordres"]),
        2,
        &[r"--table 'shop\.ordres'", "shop.orders", "other.lines"],
    );
    refused(&load(&["--database=shpo"]), 2, &["shpo", "other; shop"]);
    refused(
        &load(&["--database=other", "--table", r"shop\.orders"]),
        2,
        &[r"shop\.orders", "other.lines"],
    );
    assert_eq!(there(&mut session), [""; 0]);

    let flags = ["--table", r"shop\.orders.*", "--no-triggers", "--verify"];
    let ended = done(load(&flags));
    assert_eq!(
        there(&mut session),
        [
            "shop",
            "shop.orders",
            "shop.orders_gone",
            "shop.orders_seen"
        ]
    );
    let rows = "SELECT CONCAT_WS(',', id, customer, far) FROM shop.orders ORDER BY id";
    assert_eq!(list(&mut session, rows), ["10,1,0", "20,2,0", "30,0"]);
    assert_eq!(ended.answer["tables"], 1);
    assert_eq!(ended.answer["rows"], 3);
    assert_eq!(ended.answer["differs"], json!([]));
    let left_out: Vec<&str> = ended.answer["left_out"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for name in [
        "database other",
        "table other.lines",
        "table shop.customers",
        "table shop.lines",
        "trigger shop.loud",
        "procedure shop.apart",
    ] {
        assert!(left_out.contains(&name), "{name}: {left_out:?}");
    }
    assert!(!left_out.contains(&"table shop.orders"), "{left_out:?}");
    let warnings = ended.answer["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let warning = warnings[0].as_str().unwrap();
    assert!(
        warning.contains("shop.orders has a foreign key to shop.customers"),
        "{warning}"
    );
    // The key is there, and holds once the table is.
    done(load(&["--table", r"shop\.customers"]));
    session
        .run("INSERT INTO shop.orders VALUES (40, 1, 0)")
        .unwrap();
    let error = session.run("INSERT INTO shop.orders VALUES (50, 3, 0)");
    assert!(error.unwrap_err().chain().contains("foreign key"));
}

#[test]
fn on_mariadb() {
    parts_are_loaded(mariadb_10_11());
}

#[test]
fn on_mysql_8() {
    parts_are_loaded(mysql_8_0_15());
}

/// A trigger goes with its table, as in a dump.
#[test]
fn triggers_go_with_their_tables() {
    let scratch = Scratch::new();
    let (target, output) = fixture(&mariadb_10_11(), &scratch);
    let flags = ["--table", r"shop\.(orders|customers)"];
    let ended = done(run(load_into(&program(), &target, &output, &flags)));
    assert_eq!(ended.answer["warnings"], json!([]));
    assert_eq!(
        there(&mut target.session().unwrap()),
        ["shop", "shop.customers", "shop.loud", "shop.orders"]
    );
}

/// A load that was killed resumes with the options that it was begun with, and with no others.
#[test]
fn killed_loads_resume_as_they_were_begun() {
    let scratch = Scratch::new();
    let (target, output) = fixture(&mariadb_10_11(), &scratch);
    let load = |flags: &[&str]| load_into(&program(), &target, &output, flags);
    let flags = ["--table", r"shop\..*"];
    let killed = run(killed_at(load(&flags), "load::committed#2"));
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    for others in [&[][..], &["--table", r"shop\.orders"], &["--database=shop"]] {
        refused(
            &run(load(others)),
            2,
            &["started with other options", r"--table 'shop\..*'"],
        );
    }
    let ended = done(run(load(&flags)));
    assert_eq!(ended.answer["resumed"], true);
    assert_eq!(ended.answer["rows"], 6);
    let count = "SELECT COUNT(*) FROM shop.orders";
    assert_eq!(list(&mut target.session().unwrap(), count), ["3"]);
}
