//! Does what a server takes with a table come back where keys are added after the rows?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{done, dump, load_into};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_server::abilities::Flavour;
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::{Part, share};
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{Scratch, TestServer};
use std::collections::BTreeMap;
use std::fs::File;

/// What rows refer to.
const PARENT: &str = "CREATE TABLE parent (id INT PRIMARY KEY, u INT, UNIQUE KEY (u), KEY twice (u, id)) ENGINE=InnoDB";

/// Definitions of a child: a server is not asked for what it takes with no table.
const CHILDREN: [&str; 14] = [
    // MariaDB alone takes the first two, and adds their keys only by a copy.
    "s INT AS (a + 1) STORED, KEY (a), CONSTRAINT c1 FOREIGN KEY (a) REFERENCES parent (id) ON DELETE CASCADE",
    "b INT, s INT AS (a + 1) STORED, z INT DEFAULT 1 CHECK (z <> 7), d DATE, KEY (a, b), KEY (s), KEY (b), \
     CONSTRAINT c2 FOREIGN KEY (a) REFERENCES parent (u) ON DELETE CASCADE, \
     CONSTRAINT c3 FOREIGN KEY (b) REFERENCES parent (id) ON DELETE SET NULL",
    "v INT AS (a + 1) VIRTUAL, s INT AS (v + 1) STORED, KEY (a), \
     CONSTRAINT c4 FOREIGN KEY (a) REFERENCES parent (id) ON DELETE CASCADE",
    "v INT AS (a + 1) VIRTUAL, KEY (a), KEY (v), \
     CONSTRAINT c5 FOREIGN KEY (a) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE",
    "s INT AS (a) STORED, KEY (s), CONSTRAINT c6 FOREIGN KEY (s) REFERENCES parent (id) ON DELETE CASCADE",
    "v INT AS (a) VIRTUAL, KEY (v), CONSTRAINT c7 FOREIGN KEY (v) REFERENCES parent (id)",
    "KEY (a), CONSTRAINT c8 FOREIGN KEY (a) REFERENCES parent (id) ON DELETE SET DEFAULT",
    "KEY (a), CONSTRAINT c9 FOREIGN KEY (a) REFERENCES child_8 (id) ON UPDATE SET NULL",
    "KEY (a), CONSTRAINT c10 FOREIGN KEY (a) REFERENCES parent (u)",
    "x TEXT, y TEXT, v INT AS (a + 1) VIRTUAL, FULLTEXT KEY (x), KEY (v), FULLTEXT KEY (y)",
    "KEY f ((a + 1)), KEY (a), CONSTRAINT c12 FOREIGN KEY (a) REFERENCES parent (id) ON DELETE CASCADE",
    "x TEXT, UNIQUE KEY (x), v INT AS (a + 1) VIRTUAL, KEY (v)",
    "i INT INVISIBLE DEFAULT 3, KEY (i), KEY (a DESC)",
    "CONSTRAINT c15 FOREIGN KEY (id) REFERENCES parent (id)",
];

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

fn run_all(session: &mut Session, sqls: &[&str]) {
    for sql in sqls {
        session.run(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
    }
}

/// Makes what the server takes, and returns how many children there are.
fn make(session: &mut Session, flavour: Flavour) -> usize {
    run_all(
        session,
        &[
            "CREATE DATABASE halves CHARACTER SET utf8mb4",
            "USE halves",
            PARENT,
            "SET SESSION sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO' /*M!100201 , check_constraint_checks = 0 */",
            "INSERT INTO parent VALUES (0, 0), (1, 1), (2, 2), (3, 3)",
        ],
    );
    let mut made = 0;
    for (number, lines) in CHILDREN.iter().enumerate() {
        let name = format!("child_{}", number + 1);
        let create = format!(
            "CREATE TABLE {name} (id INT AUTO_INCREMENT PRIMARY KEY, a INT, {lines}) ENGINE=InnoDB"
        );
        if session.run(&create).is_ok() {
            made += 1;
            run_all(
                session,
                &[&format!("INSERT INTO {name} (id, a) VALUES (0, 0), (2, 2)")],
            );
        }
    }
    // A copy of the table looks at each value again.
    if flavour == Flavour::MariaDb {
        let past = "UPDATE child_2 SET d = '2023-02-31', z = 7 WHERE id = 0";
        run_all(session, &[past]);
    }
    made
}

/// Returns definition and checksum of each table, and what a deletion leaves.
fn state(running: &Running) -> BTreeMap<String, String> {
    let mut session = running.session().unwrap();
    run_all(&mut session, &["USE halves"]);
    let names = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'halves'";
    let names = session.rows(names).unwrap();
    let mut all = BTreeMap::new();
    for name in names.iter().map(|row| row.at(0).unwrap()) {
        let create = session
            .one(&format!("SHOW CREATE TABLE {name}"))
            .unwrap()
            .unwrap();
        let sum = session
            .one(&format!("CHECKSUM TABLE {name}"))
            .unwrap()
            .unwrap();
        let both = format!("{} {}", create.at(1).unwrap(), sum.at(1).unwrap());
        all.insert(name.to_owned(), both);
    }
    session.run("START TRANSACTION").unwrap();
    // Which key refuses it first is the server's affair.
    let deleted = session.run("DELETE FROM parent WHERE id = 2").is_ok();
    all.insert("deleted".to_owned(), deleted.to_string());
    session.run("ROLLBACK").unwrap();
    all
}

fn case(server: &TestServer, at_least: usize) {
    let scratch = Scratch::new();
    let mut args = SMALL.to_vec();
    if server.id == mysql_9().id {
        args.retain(|arg| !arg.starts_with("--innodb-log-file-size"));
    }
    let running = server.start(&scratch.join("source"), &args);
    let mut session = running.session().unwrap();
    let made = make(&mut session, server.binary.flavour);
    assert!(made >= at_least, "{}: {made} tables", server.name);
    let before = state(&running);
    let script = scratch.join("script.sql");
    let mut command = program().command(&["dump", "--no-defaults", "-u", "root", "-o", "-", "-S"]);
    command
        .arg(running.socket())
        .stdout(File::create(&script).unwrap());
    assert!(command.output().unwrap().status.success());
    for format in ["tab", "sql"] {
        done(run(dump(
            &program(),
            &running,
            &scratch.join(format),
            &["--format", format],
        )));
    }
    let import = || {
        let mut command = program().command(&["import", "--no-defaults", "-u", "root", "-S"]);
        command
            .arg(running.socket())
            .args(["--indexes", "after"])
            .arg(&script);
        command
    };
    let load = |format: &str| load_into(&program(), &running, &scratch.join(format), &["--verify"]);
    for (how, command) in [
        ("tab", load("tab")),
        ("sql", load("sql")),
        ("import", import()),
    ] {
        run_all(&mut running.session().unwrap(), &["DROP DATABASE halves"]);
        done(run(command));
        let after = state(&running);
        for (name, was) in &before {
            assert_eq!(after.get(name), Some(was), "{}, {how}: {name}", server.name);
        }
        assert_eq!(after.len(), before.len(), "{}, {how}", server.name);
    }
}

/// In each run one of the two servers of MariaDB, and one of the three of MySQL.
fn in_turn(server: TestServer, part: Part, at_least: usize) {
    for server in share("keys made afterwards", &[server], part) {
        case(&server, at_least);
    }
}

#[test]
fn on_mariadb_10_11() {
    in_turn(mariadb_10_11(), Part::new(0, 2), 13);
}

#[test]
fn on_mariadb_11_8() {
    in_turn(mariadb_11_8(), Part::new(1, 2), 13);
}

#[test]
fn on_mysql_5_7() {
    in_turn(mysql_5_7_22(), Part::new(0, 3), 6);
}

#[test]
fn on_mysql_8_0() {
    in_turn(mysql_8_0_15(), Part::new(1, 3), 7);
}

#[test]
fn on_mysql_9() {
    in_turn(mysql_9(), Part::new(2, 3), 9);
}
