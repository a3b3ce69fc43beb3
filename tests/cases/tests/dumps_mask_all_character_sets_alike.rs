//! Do columns of other character sets still join when they are masked?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{done, dump, load_into};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_server::connect::Session;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{Scratch, TestServer};

/// Those of one byte: each byte is tried.
const ONE_BYTE: [&str; 23] = [
    "latin1", "latin2", "latin5", "latin7", "cp1250", "cp1251", "cp1256", "cp1257", "cp850",
    "cp852", "cp866", "koi8r", "koi8u", "greek", "hebrew", "armscii8", "geostd8", "macce",
    "macroman", "keybcs2", "tis620", "dec8", "hp8",
];
/// Those of several.
const WIDE: [&str; 5] = ["utf8", "ucs2", "utf16", "utf16le", "utf32"];

const MASKS: [&str; 6] = [
    "--mask",
    r"masked\..*\.(o|u)=hash",
    "--mask",
    r"masked\..*\.(so|su)=shape",
    "--mask",
    r"masked\..*\.(eo|eu)=email",
];

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

fn run_all(session: &mut Session, sqls: &[String]) {
    for sql in sqls {
        session.run(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
    }
}

/// A table with each letter of a character set beside the same in UTF-8.
fn one_byte(session: &mut Session, charset: &str) {
    let column = |name: &str, charset: &str| {
        format!("{name} VARCHAR(50) CHARACTER SET {charset} COLLATE {charset}_bin")
    };
    let columns: Vec<String> = [
        ("o", charset),
        ("u", "utf8mb4"),
        ("so", charset),
        ("su", "utf8mb4"),
    ]
    .map(|(name, charset)| column(name, charset))
    .to_vec();
    let rows: Vec<String> = (128..256)
        .map(|byte| format!("({byte}, _{charset} X'41{byte:02X}62', _{charset} X'41{byte:02X}62')"))
        .collect();
    run_all(
        session,
        &[
            format!(
                "CREATE TABLE masked.{charset} (id INT PRIMARY KEY, {})",
                columns.join(", ")
            ),
            format!(
                "INSERT INTO masked.{charset} (id, o, so) VALUES {}",
                rows.join(", ")
            ),
            format!(
                "UPDATE masked.{charset} SET u = CONVERT(o USING utf8mb4), su = CONVERT(so USING utf8mb4)"
            ),
            // What is no letter there, or a second byte for one.
            format!(
                "DELETE FROM masked.{charset} WHERE HEX(CONVERT(u USING {charset})) <> HEX(o) OR HEX(u) LIKE '%EFBFBD%'"
            ),
        ],
    );
}

fn wide(session: &mut Session, charset: &str) {
    // The others' own collations are general ones, which look at blanks behind as this one does.
    let column = |name: &str, charset: &str| match charset {
        "utf8mb4" => format!("{name} VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"),
        _ => format!("{name} VARCHAR(60) CHARACTER SET {charset}"),
    };
    let columns: Vec<String> = [
        ("o", charset),
        ("u", "utf8mb4"),
        ("eo", charset),
        ("eu", "latin1"),
    ]
    .map(|(name, charset)| column(name, charset))
    .to_vec();
    run_all(
        session,
        &[
            format!(
                "CREATE TABLE masked.{charset} (id INT PRIMARY KEY, {})",
                columns.join(", ")
            ),
            format!(
                "INSERT INTO masked.{charset} VALUES (1, 'Ärger €', 'ärger €  ', 'Jörg@x', 'JÖRG@X'), \
                 (2, 'x ', 'X', 'a', 'A  '), (3, '山田', '山田', 'ß', 'ß'), (4, 'Ω', 'ω', '', '')"
            ),
        ],
    );
}

fn case(server: &TestServer, at_least: u64) {
    let scratch = Scratch::new();
    let mut args = SMALL.to_vec();
    if server.id == mysql_9().id {
        args.retain(|arg| !arg.starts_with("--innodb-log-file-size"));
    }
    let running = server.start(&scratch.join("data"), &args);
    let mut session = running.session().unwrap();
    run_all(
        &mut session,
        &[
            "SET SESSION sql_mode = ''".to_owned(),
            "CREATE DATABASE masked".to_owned(),
        ],
    );
    ONE_BYTE
        .iter()
        .for_each(|charset| one_byte(&mut session, charset));
    WIDE.iter().for_each(|charset| wide(&mut session, charset));
    let dir = scratch.join("dump");
    done(run(dump(&program(), &running, &dir, &MASKS)));
    run_all(&mut session, &["DROP DATABASE masked".to_owned()]);
    done(run(load_into(&program(), &running, &dir, &["--verify"])));

    let mut rows = 0;
    for charset in ONE_BYTE {
        let ask = |what: &str| format!("SELECT {what} FROM masked.{charset}");
        let mut count = |what: &str| -> u64 {
            let found = session
                .value(&ask(what))
                .unwrap_or_else(|e| panic!("{}", e.chain()));
            found.unwrap_or_else(|| "0".to_owned()).parse().unwrap()
        };
        let name = format!("{}, {charset}", server.name);
        let letters = count("COUNT(*)");
        rows += letters;
        assert_eq!(count("COUNT(DISTINCT u)"), letters, "{name}");
        assert_eq!(count("SUM(CONVERT(o USING utf8mb4) <> u)"), 0, "{name}");
        assert_eq!(count("SUM(CONVERT(so USING utf8mb4) <> su)"), 0, "{name}");
        assert_eq!(count("SUM(LENGTH(u) <> 32)"), 0, "{name}");
    }
    assert!(rows >= at_least, "{}: {rows} letters", server.name);
    for charset in WIDE {
        let same = |one: &str, other: &str| {
            format!("SUM(HEX(CONVERT({one} USING utf8mb4)) = HEX(CONVERT({other} USING utf8mb4)))")
        };
        let sql = format!(
            "SELECT CONCAT(COUNT(*), ' ', {}, ' ', {}, ' ', COUNT(DISTINCT u)) FROM masked.{charset}",
            same("o", "u"),
            same("eo", "eu")
        );
        let found = session.value(&sql).unwrap();
        assert_eq!(
            found.as_deref(),
            Some("4 4 4 4"),
            "{}, {charset}",
            server.name
        );
    }
}

#[test]
fn on_mariadb() {
    case(&mariadb_10_11(), 2000);
}

#[test]
fn on_mysql_5_7() {
    case(&mysql_5_7_22(), 2000);
}

#[test]
fn on_mysql_8() {
    case(&mysql_8_0_15(), 2000);
}

#[test]
fn on_mysql_9() {
    case(&mysql_9(), 2000);
}
