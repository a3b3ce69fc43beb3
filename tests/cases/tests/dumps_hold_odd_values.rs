//! Do values come back that a server stores and does not like to be given: ENUM's error value, members
//! that are empty, rows that no column of theirs stores, rows that their CHECK refuses?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{done, dump, load_into};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_server::abilities::Flavour;
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::{Part, draw, share};
use evenkeel_testkit::servers::give_to_server;
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{Scratch, TestServer};
use std::path::Path;

/// What comes of these is more than the 65 535 warnings that a server counts in its answer.
const DOUBLINGS: usize = 16;

const TABLES: [&str; 10] = [
    "CREATE TABLE plain (id INT PRIMARY KEY, e ENUM('a','b') NOT NULL, n ENUM('a','b'), t VARCHAR(9))",
    "INSERT INTO plain VALUES (1, 0, NULL, ''), (2, 'a', 0, '0'), (3, 'b', 'b', 'x'), (4, 0, 0, '')",
    "CREATE TABLE empty_member (id INT PRIMARY KEY, e ENUM('a','','b') NOT NULL, s SET('','a','b'))",
    "INSERT INTO empty_member VALUES (0, 0, 0), (1, 1, 1), (2, 2, 2), (3, 3, 3), (4, 0, NULL), (5, 2, 7), (6, 1, 5)",
    "CREATE TABLE digits (id INT PRIMARY KEY, e ENUM('2','1','','0') CHARACTER SET latin1, s SET('1','2','') CHARACTER SET utf16)",
    "INSERT INTO digits VALUES (0, 0, 0), (1, 1, 1), (2, 2, 2), (3, 3, 4), (4, 4, 6), (5, NULL, NULL)",
    "CREATE TABLE computed (a INT AS (1) VIRTUAL, b VARCHAR(9) AS ('x') STORED)",
    "INSERT INTO computed () VALUES (), (), ()",
    "CREATE TABLE many (e ENUM('a') NOT NULL, n ENUM('b'))",
    "INSERT INTO many VALUES (0, 'b')",
];

/// What a server has that the others have not.
fn own(server: &TestServer) -> Vec<String> {
    let text = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
    match (server.binary.flavour, server.id) {
        (Flavour::MariaDb, _) => text(&[
            "CREATE TABLE refused (a INT CHECK (a > 0), b INT INVISIBLE, CONSTRAINT c CHECK (b <> a))",
            "SET SESSION check_constraint_checks = 0",
            "INSERT INTO refused (a, b) VALUES (-1, 1), (0, 0), (3, 3)",
        ]),
        (Flavour::MySql, id) if id == mysql_9().id => text(&[
            "CREATE TABLE unseen (a INT PRIMARY KEY, b INT INVISIBLE, p POINT NOT NULL SRID 4326)",
            "INSERT INTO unseen (a, b, p) VALUES (1, 2, ST_GeomFromText('POINT(1 2)', 4326))",
        ]),
        _ => Vec::new(),
    }
}

fn make(session: &mut Session, server: &TestServer) {
    let mut run = |sql: &str| session.run(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
    run("CREATE DATABASE odd CHARACTER SET utf8mb4");
    run("USE odd");
    run("SET SESSION sql_mode = ''");
    TABLES.iter().for_each(|sql| run(sql));
    for _ in 0..DOUBLINGS {
        run("INSERT INTO many SELECT * FROM many");
    }
    let members: Vec<String> = (1..64).map(|n| format!("'m{n}'")).collect();
    run(&format!(
        "CREATE TABLE wide (id INT PRIMARY KEY, s SET('',{}))",
        members.join(",")
    ));
    run(
        "INSERT INTO wide VALUES (1, 18446744073709551615), (2, 9223372036854775809), (3, 1), (4, 0)",
    );
    own(server).iter().for_each(|sql| run(sql));
}

/// Every value of every column, as bytes and as a number.
fn values(session: &mut Session) -> Vec<String> {
    let columns = session
        .rows(
            "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS \
             WHERE TABLE_SCHEMA = 'odd' ORDER BY TABLE_NAME, ORDINAL_POSITION",
        )
        .unwrap();
    let mut all = Vec::new();
    for column in &columns {
        let (table, name) = (column.at(0).unwrap(), quote_name(column.at(1).unwrap()));
        let number = if matches!(column.at(1), Some("e" | "s" | "n")) {
            format!("CAST({name} AS UNSIGNED)")
        } else {
            "0".to_owned()
        };
        let sql = format!(
            "SELECT HEX(CAST({name} AS BINARY)) AS b, {number} AS n, COUNT(*) FROM odd.{table} GROUP BY b, n ORDER BY b, n"
        );
        for row in session.rows(&sql).unwrap() {
            let cell = |at| row.at(at).unwrap_or("NULL");
            all.push(format!(
                "{table}.{name}: {} {} {}",
                cell(0),
                cell(1),
                cell(2)
            ));
        }
        // Which row has it.
        if table != "many" && table != "computed" {
            let sql =
                format!("SELECT GROUP_CONCAT(COALESCE({number}, 'N') ORDER BY 1) FROM odd.{table}");
            all.push(session.value(&sql).unwrap().unwrap_or_default());
        }
    }
    all
}

fn come_back(server: TestServer) {
    let scratch = Scratch::new();
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut args = SMALL.to_vec();
    if server.id == mysql_9().id {
        args.retain(|arg| !arg.starts_with("--innodb-log-file-size"));
    }
    let running: Running = server.start(&scratch.join("source"), &args);
    let mut session = running.session().unwrap();
    make(&mut session, &server);
    let before = values(&mut session);
    assert!(before.len() > 40, "{before:?}");
    for (format, method) in [
        ("tab", "load-data"),
        ("tab", "insert"),
        ("sql", "insert"),
        ("csv", "load-data"),
    ] {
        let name = format!("{}, {format} by {method}", server.name);
        let dir = scratch.join(format!("{format}-{method}"));
        done(run(dump(&program, &running, &dir, &["--format", format])));
        session.run("DROP DATABASE odd").unwrap();
        let flags = ["--verify", "--method", method];
        done(run(load_into(&program, &running, &dir, &flags)));
        let after = values(&mut session);
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(after, before, "{name}");
        }
        assert_eq!(after.len(), before.len(), "{name}");
    }
}

// In each run one server of MariaDB, whose CHECK refuses rows, and one of MySQL.

#[test]
fn on_mariadb_10_11() {
    share("odd values", &[mariadb_10_11()], Part::new(0, 2))
        .into_iter()
        .for_each(come_back);
}

#[test]
fn on_others() {
    share("odd values", &[mariadb_11_8()], Part::new(1, 2))
        .into_iter()
        .for_each(come_back);
    let servers = [mysql_8_0_15(), mysql_5_7_22(), mysql_9()];
    draw("servers of MySQL", &servers, 1)
        .into_iter()
        .for_each(come_back);
}

/// Makes a table of texts whose bytes are none of their character set, as servers have them after wrong
/// conversions. No statement stores them: a table of MyISAM gets the rows of one of bytes.
fn make_no_texts(session: &mut Session, data: &Path) {
    let mut run = |sql: &str| session.run(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
    run("DROP DATABASE IF EXISTS odd");
    run("CREATE DATABASE odd CHARACTER SET utf8mb4");
    run("USE odd");
    run("CREATE TABLE raw (id INT PRIMARY KEY, t BLOB, u BLOB) ENGINE=MyISAM");
    run(
        "INSERT INTO raw VALUES (1, 'fine', 'fine'), (2, X'61C3', ''), (3, '', X'EDA080'), (4, X'C3A9FF', X'F09F9880')",
    );
    run(
        "CREATE TABLE no_texts (id INT PRIMARY KEY, t TEXT CHARACTER SET utf8mb4, u TEXT CHARACTER SET utf8) ENGINE=MyISAM",
    );
    run("FLUSH TABLES");
    for ending in ["MYD", "MYI"] {
        let of = |table: &str| data.join("odd").join(format!("{table}.{ending}"));
        std::fs::copy(of("raw"), of("no_texts")).unwrap();
        give_to_server(&of("no_texts"));
    }
    run("FLUSH TABLES");
    let stored = "SELECT GROUP_CONCAT(CONCAT(HEX(t), ' ', HEX(u)) ORDER BY id) FROM odd.no_texts";
    let stored = session.value(stored).unwrap();
    assert_eq!(
        stored.as_deref(),
        Some("66696E65 66696E65,61C3 , EDA080,C3A9FF F09F9880")
    );
}

/// What no server takes is named, and nothing of it is loaded.
fn no_texts_are_named(server: &TestServer) {
    let scratch = Scratch::new();
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let data = scratch.join("data");
    let running = server.start(&data, &SMALL);
    let mut session = running.session().unwrap();
    for (format, method) in [
        ("tab", "load-data"),
        ("sql", "insert"),
        ("csv", "load-data"),
    ] {
        make_no_texts(&mut session, &data);
        let name = format!("{}, {format} by {method}", server.name);
        let dir = scratch.join(format);
        let flags = ["--format", format, "--table", r"odd\.no_texts"];
        done(run(dump(&program, &running, &dir, &flags)));
        session.run("DROP DATABASE odd").unwrap();
        let ended = run(load_into(&program, &running, &dir, &["--method", method]));
        assert_eq!(ended.code, Some(1), "{name}: {ended:?}");
        let said = format!("{} {}", ended.message(), ended.answer["hints"]);
        for wanted in ["odd.no_texts", "Incorrect string value", "repair them"] {
            assert!(said.contains(wanted), "{name}: {said}");
        }
        session.run("DROP DATABASE evenkeel_load").unwrap();
    }
}

#[test]
fn bytes_that_are_no_text_are_named() {
    for server in draw(
        "bytes that are no text",
        &[mariadb_10_11(), mysql_8_0_15()],
        1,
    ) {
        no_texts_are_named(&server);
    }
}
