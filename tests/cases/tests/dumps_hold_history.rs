//! Do old rows of system-versioned tables come back with the times at which they held, also on a server
//! whose end of time is another one?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{done, dump, load_into, manifest};
use evenkeel_cases::program::{Evenkeel, killed_at, run};
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::{Part, draw, share};
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_8_0_15};
use evenkeel_testkit::{Scratch, TestServer};
use std::fs::File;
use std::process::{Command, Stdio};

/// What makes the tables: name, columns, what stands behind them.
const TABLES: [(&str, &str, &str); 9] = [
    ("implicit", "i INT PRIMARY KEY, v VARCHAR(99)", ""),
    ("keyless", "i INT, v VARCHAR(99)", ""),
    ("isam", "i INT PRIMARY KEY, v VARCHAR(99)", "ENGINE=MyISAM"),
    (
        "part_of_it",
        "i INT PRIMARY KEY, v VARCHAR(99), w INT AS (i * 2) STORED, u INT DEFAULT 1 WITHOUT SYSTEM VERSIONING",
        "",
    ),
    (
        "shown",
        "`from ``then` TIMESTAMP(6) GENERATED ALWAYS AS ROW START, i INT PRIMARY KEY, v VARCHAR(99), \
         `to` TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (`from ``then`, `to`)",
        "",
    ),
    (
        "hidden",
        "i INT PRIMARY KEY, v VARCHAR(99), s TIMESTAMP(6) GENERATED ALWAYS AS ROW START INVISIBLE, \
         e TIMESTAMP(6) GENERATED ALWAYS AS ROW END INVISIBLE, PERIOD FOR SYSTEM_TIME (s, e)",
        "",
    ),
    (
        "by_number",
        "i INT PRIMARY KEY, v VARCHAR(99)",
        "PARTITION BY SYSTEM_TIME LIMIT 2000 (PARTITION p0 HISTORY, PARTITION p1 HISTORY, PARTITION pc CURRENT)",
    ),
    (
        "by_year",
        "i INT PRIMARY KEY, v VARCHAR(99)",
        "PARTITION BY SYSTEM_TIME INTERVAL 1 YEAR STARTS '2020-09-13 00:00:00' AUTO",
    ),
    ("large", "i INT PRIMARY KEY, v VARCHAR(99)", ""),
];

/// What a server's rows with numbers of transactions look like.
const BY_TRANSACTION: &str = "CREATE TABLE h.numbered (i INT PRIMARY KEY, v VARCHAR(99), \
    s BIGINT UNSIGNED GENERATED ALWAYS AS ROW START, e BIGINT UNSIGNED GENERATED ALWAYS AS ROW END, \
    PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING";

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

/// Makes the tables with rows of three days, and of a summer's night that some clocks have twice.
fn make(session: &mut Session) {
    let mut run = |sql: &str| session.run(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
    run("CREATE DATABASE h CHARACTER SET latin1");
    run("USE h");
    run("SET SESSION timestamp = 1600000000, time_zone = '+05:00'");
    run("CREATE TABLE plain (i INT PRIMARY KEY)");
    run("INSERT INTO plain VALUES (1)");
    for (name, columns, options) in TABLES {
        run("SET SESSION timestamp = 1600000000");
        run(&format!(
            "CREATE TABLE {name} ({columns}) WITH SYSTEM VERSIONING {options}"
        ));
        let (rows, last) = match name {
            "large" => ("seq_1_to_2000", 2000),
            _ => ("seq_1_to_5", 5),
        };
        run(&format!(
            "INSERT INTO {name} (i, v) SELECT seq, REPEAT('x', seq % 90) FROM {rows}"
        ));
        run("SET SESSION timestamp = 1603584000.123456");
        run(&format!("UPDATE {name} SET v = 'it''s' WHERE i < {last}"));
        run("SET SESSION timestamp = 1700100000.000001");
        run(&format!("UPDATE {name} SET v = NULL WHERE i = 2"));
        run(&format!("DELETE FROM {name} WHERE i = 3"));
    }
    run("ANALYZE TABLE large");
}

/// Every row that there is and was with its times, which end at `open` where it holds; another program
/// reads them.
fn all_rows(running: &Running) -> String {
    let open = "REPLACE(REPLACE(e, '2038-01-19 03:14:07.999999', 'open'), '2106-02-07 06:28:15.999999', 'open')";
    let mut sql = String::new();
    for (name, columns, _) in TABLES {
        let (start, end) = match name {
            "shown" => ("`from ``then`", "`to`"),
            "hidden" => ("s", "e"),
            _ => ("ROW_START", "ROW_END"),
        };
        let (w, u) = match columns.contains("w INT") {
            true => ("w", "u"),
            false => ("0", "0"),
        };
        sql.push_str(&format!(
            "SELECT '{name}', i, v, w, u, s, {open} FROM (SELECT i, v, {w} AS w, {u} AS u, {start} AS s, \
             {end} AS e FROM h.{name} FOR SYSTEM_TIME ALL) AS every_row ORDER BY i, s; \
             SELECT '{name}', i, v FROM h.{name} ORDER BY i;"
        ));
    }
    client(running, &["-N", "-e", &sql], Stdio::null())
}

/// Runs the real client, and returns what it printed.
fn client(running: &Running, args: &[&str], input: Stdio) -> String {
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "-u", "root", "--binary-mode"]);
    client.args(["--default-character-set=utf8mb4", "--init-command"]);
    client.args(["SET SESSION time_zone = '+00:00'", "-S"]);
    client.arg(running.socket()).args(args);
    let ended = client.stdin(input).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    String::from_utf8(ended.stdout).unwrap()
}

fn start(server: &TestServer, scratch: &Scratch, name: &str) -> Running {
    // A clock that is not UTC, with an hour that comes twice.
    let mut args = SMALL.to_vec();
    args.push("--default-time-zone=+02:00");
    server.start(&scratch.join(name), &args)
}

/// Formats, and how they are loaded.
const WAYS: [(&str, &str); 4] = [
    ("tab", "load-data"),
    ("tab", "insert"),
    ("sql", "insert"),
    ("csv", "load-data"),
];

fn comes_back(source: TestServer, target: TestServer) {
    let scratch = Scratch::new();
    let from = start(&source, &scratch, "source");
    make(&mut from.session().unwrap());
    let before = all_rows(&from);
    assert!(before.matches("open").count() > 2000, "{before}");
    assert!(
        before.contains(
            "large\t3\tit's\t0\t0\t2020-10-25 00:00:00.123456\t2023-11-16 02:00:00.000001\n"
        ),
        "{before}"
    );
    let to = start(&target, &scratch, "target");
    let mut session = to.session().unwrap();
    let mut ways = WAYS;
    if source.id != target.id {
        // Those that a server does not take from itself.
        ways.rotate_left(2);
    }
    for (format, method) in draw("ways of history", &ways, 2) {
        let name = format!("{} to {}, {format} by {method}", source.name, target.name);
        let dir = scratch.join(format!("{format}-{method}"));
        let flags = ["--history", "--format", format, "--chunk-size=64K"];
        let ended = done(run(dump(&program(), &from, &dir, &flags)));
        assert_eq!(
            ended.answer["history_left_out"],
            serde_json::json!([]),
            "{name}"
        );
        let manifest = manifest(&dir);
        let tables = manifest["tables"].as_array().unwrap();
        let large = tables.iter().find(|one| one["name"] == "large").unwrap();
        assert!(large["chunks"].as_array().unwrap().len() > 2, "{large}");
        done(run(load_into(
            &program(),
            &to,
            &dir,
            &["--verify", "--method", method],
        )));
        assert!(all_rows(&to) == before, "{name}");
        session.run("DROP DATABASE h").unwrap();
    }
    let script = scratch.join("script.sql");
    let mut piped = dump(&program(), &from, "-".as_ref(), &["--history"]);
    piped.stdout(File::create(&script).unwrap());
    assert!(piped.status().unwrap().success());
    client(&to, &[], File::open(&script).unwrap().into());
    assert!(all_rows(&to) == before, "a script");
    session.run("DROP DATABASE h").unwrap();
    let mut import = program().command(&["import", "--no-defaults", "-u", "root", "-S"]);
    import.arg(to.socket()).arg(&script);
    done(run(import));
    assert!(all_rows(&to) == before, "a script, imported");
}

/// In each run one from a server to itself, and one to another: by all ways together.
fn in_turn(source: TestServer, target: TestServer, nth: usize) {
    let pair = (source, target);
    for (source, target) in share("history from and to", &[pair], Part::new(nth, 2)) {
        comes_back(source, target);
    }
}

#[test]
fn on_10_11() {
    in_turn(mariadb_10_11(), mariadb_10_11(), 0);
}

#[test]
fn on_11_8() {
    in_turn(mariadb_11_8(), mariadb_11_8(), 1);
}

#[test]
fn from_10_11_to_11_8() {
    in_turn(mariadb_10_11(), mariadb_11_8(), 1);
}

#[test]
fn from_11_8_to_10_11() {
    in_turn(mariadb_11_8(), mariadb_10_11(), 0);
}

/// An upgrade leaves the old end of time in tables that are not rebuilt, and the server sees none of
/// their rows any more.
#[test]
fn what_an_upgrade_hid_is_there_again() {
    let scratch = Scratch::new();
    let server = start(&mariadb_11_8(), &scratch, "server");
    let mut session = server.session().unwrap();
    for sql in [
        "SET SESSION system_versioning_insert_history = 1, time_zone = '+00:00'",
        "CREATE DATABASE h",
        "CREATE TABLE h.t (i INT PRIMARY KEY) WITH SYSTEM VERSIONING",
        "INSERT INTO h.t (i, row_start, row_end) VALUES (1, '2020-01-01', '2038-01-19 03:14:07.999999')",
    ] {
        session.run(sql).unwrap();
    }
    assert_eq!(session.value("SELECT i FROM h.t").unwrap(), None);
    let dir = scratch.join("dump");
    done(run(dump(&program(), &server, &dir, &["--history"])));
    session.run("DROP DATABASE h").unwrap();
    done(run(load_into(&program(), &server, &dir, &["--verify"])));
    assert_eq!(
        session.value("SELECT i FROM h.t").unwrap().as_deref(),
        Some("1")
    );
}

/// What is not in a dump is in its answer, and where old rows cannot go nothing is made.
#[test]
fn what_is_left_out_is_named() {
    let scratch = Scratch::new();
    let from = start(&mariadb_10_11(), &scratch, "source");
    let mut session = from.session().unwrap();
    make(&mut session);
    session.run(BY_TRANSACTION).unwrap();
    session
        .run("INSERT INTO h.numbered (i) VALUES (1)")
        .unwrap();
    session.run("UPDATE h.numbered SET v = 'x'").unwrap();
    let without = scratch.join("without");
    let ended = done(run(dump(&program(), &from, &without, &[])));
    let mut all: Vec<String> = TABLES.iter().map(|one| format!("h.{}", one.0)).collect();
    all.push("h.numbered".to_owned());
    all.sort();
    assert_eq!(ended.answer["history_left_out"], serde_json::json!(all));
    let with = scratch.join("with");
    let ended = done(run(dump(&program(), &from, &with, &["--history"])));
    let left_out = serde_json::json!(["h.numbered"]);
    assert_eq!(ended.answer["history_left_out"], left_out);
    assert!(ended.said.contains("h.numbered"), "{}", ended.said);

    for (server, option) in [
        (mysql_8_0_15(), "--skip-name-resolve"),
        (mariadb_10_11(), "--secure-timestamp=YES"),
    ] {
        let args: Vec<&str> = SMALL.into_iter().chain([option]).collect();
        let other = server.start(&scratch.join(server.id), &args);
        let refused = run(load_into(&program(), &other, &with, &[]));
        let message = refused.message();
        assert_eq!(refused.code, Some(14), "{}: {message}", server.name);
        assert!(message.contains("old rows"), "{}: {message}", server.name);
        let mut session = other.session().unwrap();
        for name in ["h", "evenkeel_try"] {
            let there = session.rows(&format!("SHOW DATABASES LIKE '{name}'"));
            assert!(there.unwrap().is_empty(), "{}: {name}", server.name);
        }
    }

    session.run("DROP DATABASE h").unwrap();
    done(run(load_into(&program(), &from, &with, &["--verify"])));
    let numbered = "SELECT GROUP_CONCAT(i, v) FROM h.numbered FOR SYSTEM_TIME ALL";
    assert_eq!(session.value(numbered).unwrap().as_deref(), Some("1x"));
}

/// A table without transactions is emptied of what a killed load left, old rows too.
#[test]
fn a_load_that_was_killed_resumes() {
    let scratch = Scratch::new();
    let server = start(&mariadb_10_11(), &scratch, "server");
    let mut session = server.session().unwrap();
    make(&mut session);
    let dir = scratch.join("dump");
    let flags = ["--history", "--table", r"h\.isam", "--chunk-size=64K"];
    done(run(dump(&program(), &server, &dir, &flags)));
    let rows = format!(
        "SELECT i, v, ROW_START, ROW_END FROM h.{} FOR SYSTEM_TIME ALL ORDER BY i, ROW_START",
        quote_name("isam")
    );
    let before = client(&server, &["-N", "-e", &rows], Stdio::null());
    session.run("DROP DATABASE h").unwrap();
    let load = || load_into(&program(), &server, &dir, &[]);
    let killed = run(killed_at(load(), "load::before_note"));
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    done(run(load()));
    assert_eq!(client(&server, &["-N", "-e", &rows], Stdio::null()), before);
}
