//! Does each statement of an imported file run under the settings that stand before it, and under no
//! later ones?

use evenkeel_cases::SMALL;
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::{self, Part, draw, share};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_8_0_15};
use evenkeel_testkit::{Scratch, TestServer};
use std::path::Path;
use std::process::Command;

const DATABASES: [&str; 3] = ["one", "two", "three"];
/// Keys, none, and an engine without transactions: their rows are handed on in different ways.
const TABLES: [(&str, &str); 3] = [
    ("keyed", "id INT PRIMARY KEY, {}) ENGINE=InnoDB"),
    ("bare", "id INT, {}) ENGINE=InnoDB"),
    ("old", "id INT, KEY (id), {}) ENGINE=MyISAM"),
];
/// Each with another outcome for the very same row.
const SETTINGS: [&str; 8] = [
    "SET NAMES latin1",
    "SET NAMES utf8mb4",
    "SET time_zone = '+05:00'",
    "SET time_zone = '+00:00'",
    "SET @before = @@sql_mode, sql_mode = 'NO_BACKSLASH_ESCAPES'",
    "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
    "SET timestamp = 1700000000",
    "SET timestamp = 1710000000",
];

fn start(server: &TestServer, scratch: &Scratch) -> Running {
    let launch = server.prepare(&scratch.join("data"), &SMALL);
    server.run(&launch.with_networking())
}

/// Numbers that a seed decides.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % most
    }
}

/// Databases with tables of the same names.
fn definitions() -> String {
    let columns = "at TIMESTAMP NULL, s VARCHAR(40) CHARACTER SET utf8mb4, pad TEXT, made DATETIME DEFAULT CURRENT_TIMESTAMP";
    let mut text = String::from("SET timestamp = 1690000000;\nSET sql_mode = '';\n");
    for database in DATABASES {
        text.push_str(&format!("CREATE DATABASE {database};\nUSE {database};\n"));
        for (name, rest) in TABLES {
            let rest = rest.replace("{}", columns);
            text.push_str(&format!("CREATE TABLE {name} ({rest};\n"));
        }
    }
    text
}

/// Rows of some table, small or so many that a connection gets them at once.
fn insert(chance: &mut Chance, next: &mut u32, text: &mut String) {
    let (table, _) = TABLES[chance.below(TABLES.len())];
    let many = if chance.below(3) == 0 { 1500 } else { 1 };
    text.push_str(&format!("INSERT INTO {table} (id, at, s, pad) VALUES "));
    let pad = "x".repeat(800);
    for row in 0..many {
        *next += 1;
        let comma = if row > 0 { "," } else { "" };
        text.push_str(&format!(
            "{comma}({next},'2024-06-01 12:00:00','caf\u{e9}\\\\','{pad}')"
        ));
    }
    text.push_str(";\n");
}

/// A file that changes its settings and its database between rows.
fn file(seed: u64) -> String {
    let (mut chance, mut next) = (Chance(seed), 0);
    let mut text = definitions();
    for _ in 0..60 {
        match chance.below(4) {
            0 => text.push_str(&format!("USE {};\n", DATABASES[chance.below(3)])),
            1 => text.push_str(&format!("{};\n", SETTINGS[chance.below(8)])),
            _ => insert(&mut chance, &mut next, &mut text),
        }
    }
    text
}

/// Every row, without what only makes it long.
fn rows(running: &Running) -> Vec<String> {
    let mut session = running.session().expect("a session");
    session.run("SET time_zone = '+00:00'").unwrap();
    let mut all = Vec::new();
    for database in DATABASES {
        for (table, _) in TABLES {
            let sql = format!(
                "SELECT CONCAT_WS(' ', '{database}.{table}', id, at, made, HEX(s)) FROM {database}.{table} ORDER BY id"
            );
            let found = session.rows(&sql).unwrap();
            all.extend(found.iter().map(|row| row.at(0).unwrap().to_owned()));
        }
        session.run(&format!("DROP DATABASE {database}")).unwrap();
    }
    all
}

#[track_caller]
fn refer(running: &Running, file: &Path) {
    let output = Command::new("mariadb")
        .args(["--no-defaults", "-u", "root", "-S"])
        .arg(running.socket())
        .stdin(std::fs::File::open(file).unwrap())
        .output()
        .expect("mariadb");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

fn imports_as_the_client_does(server: &TestServer) {
    let scratch = Scratch::new();
    let running = start(server, &scratch);
    let path = scratch.join("file.sql");
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let seed = effort::seed();
    for round in 0..effort::rounds("files of settings", 2, 40) {
        let seed = seed.wrapping_add(u64::from(round));
        std::fs::write(&path, file(seed)).unwrap();
        refer(&running, &path);
        let wanted = rows(&running);
        for threads in ["--threads=1", "--threads=4"] {
            let mut command = program.command(&["import", "--no-defaults", "-u", "root", threads]);
            command.arg("-S").arg(running.socket()).arg(&path);
            let ended = run(command);
            assert_eq!(ended.code, Some(0), "seed {seed} {threads}: {ended:?}");
            let found = rows(&running);
            let odd = wanted.iter().zip(&found).find(|(one, other)| one != other);
            assert!(
                found == wanted,
                "{} seed {seed} {threads}: {odd:?}",
                server.name
            );
        }
    }
}

/// What is made once the rows are in is read as the definition that it comes from.
#[test]
fn indexes_after_rows_are_read_as_their_table() {
    let text = "SET foreign_key_checks = 0, sql_mode = '';\nCREATE DATABASE one;\nUSE one;\n\
                SET NAMES latin1;\nCREATE TABLE `t` (\n  `a` int NOT NULL,\n  `b` int DEFAULT NULL,\n  \
                PRIMARY KEY (`a`),\n  KEY `b` (`b`) COMMENT 'caf\u{e9}'\n) ENGINE=InnoDB;\n\
                SET NAMES utf8mb4;\nINSERT INTO t VALUES (1,1);\n\
                CREATE TABLE later (s VARCHAR(9) CHARACTER SET utf8mb4, PRIMARY KEY (s));\n\
                INSERT INTO later VALUES ('caf\u{e9}');\n";
    for server in draw("late indexes", &[mysql_8_0_15(), mariadb_10_11()], 1) {
        let scratch = Scratch::new();
        let running = start(&server, &scratch);
        let path = scratch.join("file.sql");
        std::fs::write(&path, text).unwrap();
        let look = || {
            let mut session = running.session().unwrap();
            let comment = "SELECT HEX(INDEX_COMMENT) FROM information_schema.STATISTICS \
                           WHERE TABLE_SCHEMA = 'one' AND INDEX_NAME = 'b'";
            let found =
                [comment, "SELECT HEX(s) FROM one.later"].map(|sql| session.value(sql).unwrap());
            session.run("DROP DATABASE one").unwrap();
            found
        };
        refer(&running, &path);
        let wanted = look();
        let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        let mut command = program.command(&["import", "--no-defaults", "-u", "root"]);
        command.args(["--indexes=after", "--threads=1", "-S"]);
        let ended = run({
            command.arg(running.socket()).arg(&path);
            command
        });
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(look(), wanted, "{}", server.name);
    }
}

// One of the two in each run.

#[test]
fn into_mariadb() {
    for server in share("imported settings", &[mariadb_10_11()], Part::new(0, 2)) {
        imports_as_the_client_does(&server);
    }
}

#[test]
fn into_mysql() {
    for server in share("imported settings", &[mysql_8_0_15()], Part::new(1, 2)) {
        imports_as_the_client_does(&server);
    }
}
