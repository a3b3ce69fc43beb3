//! Does what is made of a dump have the collations that there were, whatever the server takes for granted?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{done, dump, load_into, manifest};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::{mariadb_11_4, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{Scratch, TestServer};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::process::Command;

/// A column that names what MySQL 8 takes for granted, among what names another and what names nothing.
const NAMED: [&str; 4] = [
    "CREATE DATABASE named CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci",
    "CREATE TABLE named.bin (id INT PRIMARY KEY, t VARCHAR(9) COLLATE utf8mb4_0900_ai_ci DEFAULT NULL, \
     u VARCHAR(9) COLLATE utf8mb4_general_ci DEFAULT 'x', KEY (t)) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
    "CREATE TABLE named.latin (id INT PRIMARY KEY, t TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci, \
     e ENUM('a', 'b') CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci DEFAULT 'a') DEFAULT CHARSET=latin1",
    "CREATE TABLE named.plain (id INT PRIMARY KEY, t VARCHAR(9) DEFAULT NULL) DEFAULT CHARSET=utf8mb4",
];

/// Tables of a server that leaves its own default out, and says the other's in a comment.
const SILENT: [&str; 3] = [
    "CREATE DATABASE silent CHARACTER SET utf8mb4",
    "CREATE TABLE silent.plain (id INT PRIMARY KEY, t VARCHAR(9) DEFAULT NULL) DEFAULT CHARSET=utf8mb4",
    "CREATE TABLE silent.says (id INT PRIMARY KEY, t VARCHAR(40) CHARACTER SET utf8mb4 \
     DEFAULT 'COLLATE utf8mb4_0900_ai_ci', `COLLATE utf8mb4_0900_ai_ci` INT) DEFAULT CHARSET=latin1 \
     COMMENT='no COLLATE utf8mb4_0900_ai_ci'",
];

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

fn client(running: &Running, database: &str, file: &Path) {
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "-u", "root", "--binary-mode", "--comments"]);
    client.args(["--default-character-set=utf8mb4", "-S"]);
    client.arg(running.socket()).arg(database);
    let input = File::open(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let ended = client.stdin(input).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{}: {said}", file.display());
}

/// Returns schemas, tables and columns of texts with their collations.
fn collations(running: &Running, database: &str) -> BTreeSet<String> {
    let sql = format!(
        "SELECT CONCAT_WS(' ', SCHEMA_NAME, DEFAULT_COLLATION_NAME) FROM information_schema.SCHEMATA \
         WHERE SCHEMA_NAME = '{database}' \
         UNION SELECT CONCAT_WS(' ', TABLE_NAME, TABLE_COLLATION) FROM information_schema.TABLES \
         WHERE TABLE_SCHEMA = '{database}' \
         UNION SELECT CONCAT_WS(' ', TABLE_NAME, COLUMN_NAME, COLLATION_NAME) FROM information_schema.COLUMNS \
         WHERE TABLE_SCHEMA = '{database}' AND COLLATION_NAME IS NOT NULL"
    );
    let rows = running.session().unwrap().rows(&sql).unwrap();
    let all: BTreeSet<String> = rows
        .iter()
        .map(|row| row.at(0).unwrap().to_owned())
        .collect();
    assert!(all.len() > 4, "{all:?}");
    all
}

/// Loads a directory as the description of its format says.
fn by_hand(running: &Running, dir: &Path) {
    let manifest = manifest(dir);
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    for schema in manifest["schemas"].as_array().unwrap() {
        client(running, "mysql", &dir.join(text(&schema["file"])));
    }
    for table in manifest["tables"].as_array().unwrap() {
        let chunks = table["chunks"].as_array().unwrap().iter();
        let files = std::iter::once(&table["file"]).chain(chunks.map(|chunk| &chunk["file"]));
        for file in files {
            client(running, &text(&table["schema"]), &dir.join(text(file)));
        }
    }
}

fn case(from: &TestServer, (database, made): (&str, &[&str]), targets: &[TestServer]) {
    let scratch = Scratch::new();
    let source = start(from, &scratch, "source");
    let mut session = source.session().unwrap();
    let run_all = |session: &mut evenkeel_server::connect::Session, sqls: &[&str]| {
        for sql in sqls {
            session.run(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
        }
    };
    run_all(&mut session, made);
    run_all(
        &mut session,
        &[&format!("INSERT INTO {database}.plain VALUES (1, 'ä')")],
    );
    let before = collations(&source, database);
    let script = scratch.join("script.sql");
    let mut command = program().command(&["dump", "--no-defaults", "-u", "root", "-o", "-", "-S"]);
    command
        .arg(source.socket())
        .stdout(File::create(&script).unwrap());
    assert!(command.output().unwrap().status.success());
    let dir = scratch.join("dir");
    let flags = ["--format", "sql", "--compress", "none"];
    done(run(dump(&program(), &source, &dir, &flags)));
    for target in targets {
        let running = start(target, &scratch, target.id);
        let load: [(&str, &dyn Fn()); 3] = [
            ("a script", &|| client(&running, "mysql", &script)),
            ("by hand", &|| by_hand(&running, &dir)),
            ("loaded", &|| {
                done(run(load_into(&program(), &running, &dir, &["--verify"])));
            }),
        ];
        for (how, load) in load {
            load();
            let after = collations(&running, database);
            assert_eq!(after, before, "{} to {}, {how}", from.name, target.name);
            let drop = format!("DROP DATABASE {database}");
            run_all(&mut running.session().unwrap(), &[&drop]);
        }
    }
}

/// One of MySQL's own default.
#[test]
fn named_ones() {
    let targets = [mysql_8_0_15(), mysql_9(), mariadb_11_8()];
    let targets = draw("servers of named ones", &targets, 1);
    case(&mariadb_11_4(), ("named", &NAMED), &targets);
}

/// One that the text leaves out.
#[test]
fn those_that_nobody_names() {
    let targets = [mariadb_11_8(), mysql_8_0_15(), mysql_9()];
    let targets = draw("servers of those unnamed", &targets, 1);
    case(&mysql_5_7_22(), ("silent", &SILENT), &targets);
}

/// A server whose administrator has changed what it takes for granted.
#[test]
fn where_another_is_taken_for_granted() {
    let scratch = Scratch::new();
    let source = start(&mysql_8_0_15(), &scratch, "source");
    let mut session = source.session().unwrap();
    for sql in &NAMED {
        session.run(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
    }
    let before = collations(&source, "named");
    let dir = scratch.join("dir");
    done(run(dump(&program(), &source, &dir, &[])));
    let running = start(&mysql_8_0_15(), &scratch, "target");
    let mut session = running.session().unwrap();
    let changed = "SET GLOBAL default_collation_for_utf8mb4 = utf8mb4_general_ci";
    session.run(changed).unwrap();
    done(run(load_into(&program(), &running, &dir, &["--verify"])));
    assert_eq!(collations(&running, "named"), before);
}
