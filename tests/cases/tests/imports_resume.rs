//! Does an import go on after what fails, where it was told to or nothing is wrong, and say each failure once?

use evenkeel_cases::SMALL;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_8_0_15};
use evenkeel_testkit::wait::until_within;
use evenkeel_testkit::{Scratch, TestServer};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn start(server: &TestServer, scratch: &Scratch) -> Running {
    server.run(&server.prepare(&scratch.join("data"), &SMALL))
}

fn import(running: &Running, file: &Path, flags: &[&str]) -> Command {
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut command = program.command(&["import", "--no-defaults", "-u", "root", "-S"]);
    command.arg(running.socket()).arg(file).args(flags);
    command
}

fn value(session: &mut Session, sql: &str) -> String {
    session.value(sql).unwrap().unwrap_or_default()
}

/// Statements that fail in each way that they are run: alone, as a setting, among rows of others, as rows that
/// come in order, as a definition, as a command.
const FAULTS: &str = "CREATE DATABASE f; USE f;
CREATE TABLE a (i INT PRIMARY KEY, v INT NOT NULL) ENGINE=InnoDB;
CREATE TABLE m (i INT PRIMARY KEY) ENGINE=MyISAM;
INSERT INTO a VALUES (1,1);
  INSERT INTO a VALUES (2,2,2);
INSERT INTO a VALUES (3,3); INSERT INTO a VALUES (3,4);
INSERT INTO m VALUES (1);
INSERT INTO m VALUES (1);
INSERT INTO m VALUES (2);
SELECT nothing;
SET nothing = 1;
use nowhere
CREATE TABLE a (i INT);
\\y
INSERT INTO gone VALUES (1);
INSERT INTO a VALUES (4,4);
";

/// Their lines and columns.
const PLACES: [(u64, u64); 9] = [
    (5, 3),
    (6, 29),
    (8, 1),
    (10, 1),
    (11, 1),
    (12, 1),
    (13, 1),
    (14, 1),
    (15, 1),
];

#[test]
fn with_force_all_else_is_run_and_each_failure_reported_once() {
    for server in [mariadb_10_11(), mysql_8_0_15()] {
        let scratch = Scratch::new();
        let running = start(&server, &scratch);
        let file = scratch.join("f.sql");
        std::fs::write(&file, FAULTS).unwrap();
        for threads in ["--threads=1", "--threads=4"] {
            let mut session = running.session().unwrap();
            session.run("DROP DATABASE IF EXISTS f").unwrap();
            let ended = run(import(&running, &file, &["--force", threads]));
            assert_eq!(ended.code, Some(3), "{ended:?}");
            assert_eq!(ended.answer["schema"], "evenkeel/import/1");
            assert_eq!(ended.answer["failed"], 9, "{}", ended.answer);
            let failures = ended.answer["failures"].as_array().unwrap();
            let number = |one: &serde_json::Value, key: &str| one[key].as_u64().unwrap();
            let mut places: Vec<(u64, u64)> = failures
                .iter()
                .map(|one| (number(one, "line"), number(one, "column")))
                .collect();
            places.sort_unstable();
            assert_eq!(places, PLACES, "{}", ended.answer);
            for (line, column) in PLACES {
                let place = format!("line {line}, column {column} of {}: ", file.display());
                assert_eq!(
                    ended.said.matches(&place).count(),
                    1,
                    "{place} {}",
                    ended.said
                );
            }
            let rows = "SELECT CONCAT((SELECT GROUP_CONCAT(i,v ORDER BY i) FROM f.a), ' ', \
                        (SELECT GROUP_CONCAT(i ORDER BY i) FROM f.m))";
            assert_eq!(value(&mut session, rows), "11,33,44 1,2");
            let ended = run(import(&running, &file, &[threads]));
            assert!(
                ended.message().contains("line 1,"),
                "without it, the first stops: {ended:?}"
            );
        }
    }
}

/// A definition that waits for somebody else's transaction is tried again, as after a kill whose last statements
/// the server is still busy with.
#[test]
fn a_definition_that_others_hold_up_is_tried_again() {
    for server in [mariadb_10_11(), mysql_8_0_15()] {
        let scratch = Scratch::new();
        let running = start(&server, &scratch);
        let mut holder = running.session().unwrap();
        for sql in [
            "SET GLOBAL lock_wait_timeout = 1",
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT PRIMARY KEY)",
            "BEGIN",
            "INSERT INTO d.t VALUES (5)",
        ] {
            holder.run(sql).unwrap();
        }
        let file = scratch.join("x.sql");
        let text = "USE d;\nDROP TABLE IF EXISTS t;\nCREATE TABLE t (a INT PRIMARY KEY);\nINSERT INTO t VALUES (1);\n";
        std::fs::write(&file, text).unwrap();
        let mut command = import(&running, &file, &[]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        until_within(Duration::from_secs(60), "it was tried twice", || {
            let row = holder.one("SHOW GLOBAL STATUS LIKE 'Com_drop_table'");
            let row = row.unwrap().unwrap();
            let tries: Option<u64> = row.at(1).and_then(|text| text.parse().ok());
            tries >= Some(2) || child.try_wait().unwrap().is_some()
        });
        holder.run("ROLLBACK").unwrap();
        let ended = Ended::of(&child.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(0), "{}: {ended:?}", server.name);
        assert_eq!(value(&mut holder, "SELECT GROUP_CONCAT(a) FROM d.t"), "1");
    }
}

/// A transaction that is run as it stands is there wholly or not at all, and is resumed from its beginning.
#[test]
fn a_transaction_that_fails_is_gone_and_run_again() {
    let server = mariadb_10_11();
    let scratch = Scratch::new();
    let running = start(&server, &scratch);
    let mut session = running.session().unwrap();
    session.run("CREATE DATABASE d").unwrap();
    session
        .run("CREATE TABLE d.t (a INT) ENGINE=InnoDB")
        .unwrap();
    let good = "USE d;\nBEGIN;\nINSERT INTO t VALUES (1);\nROLLBACK;\nBEGIN;\nINSERT INTO t VALUES (2);\nINSERT INTO t VALUES (3);\nCOMMIT;\n";
    let file = scratch.join("x.sql");
    std::fs::write(&file, good.replace("(3)", "(3,3)")).unwrap();
    let ended = run(import(&running, &file, &[]));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.message().contains("line 7"), "{}", ended.message());
    let hints = ended.answer["hints"].to_string();
    assert!(hints.contains("--from-line 5"), "{hints}");
    assert_eq!(value(&mut session, "SELECT COUNT(*) FROM d.t"), "0");
    std::fs::write(&file, good).unwrap();
    let ended = run(import(&running, &file, &["--from-line=5"]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(
        value(&mut session, "SELECT GROUP_CONCAT(a) FROM d.t"),
        "2,3"
    );
}

/// With `sql_mode` ORACLE, BEGIN is the beginning of a block, and rows go to all connections all the same.
#[test]
fn rows_come_in_with_oracles_sql() {
    let server = mariadb_10_11();
    let scratch = Scratch::new();
    let running = start(&server, &scratch);
    let file = scratch.join("x.sql");
    let text = "CREATE DATABASE d; USE d;\nSET sql_mode = ORACLE;\nCREATE TABLE t (a INT PRIMARY KEY);\nINSERT INTO t VALUES (1);\nINSERT INTO t VALUES (2);\n";
    std::fs::write(&file, text).unwrap();
    let ended = run(import(&running, &file, &[]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut session = running.session().unwrap();
    assert_eq!(
        value(&mut session, "SELECT GROUP_CONCAT(a) FROM d.t"),
        "1,2"
    );
}
