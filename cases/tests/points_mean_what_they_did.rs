//! Does a restore to a point give the values that the source has, where an event leaves something to the
//! server that applies it: the time zone, the default engine, limits, who may write functions?

use evenkeel_cases::points::{archive, mark, restore_to};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_cases::{SMALL, Site};
use evenkeel_server::connect::Session;
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{LoopFs, TestServer};

/// A zone that is far from any that a test runs in, and has no summer time.
const ZONE: &str = "Asia/Tokyo";

/// What the source is set to, other than by default.
const SETTINGS: [&str; 7] = [
    "--default-storage-engine=MyISAM",
    "--character-set-server=latin1",
    "--collation-server=latin1_general_ci",
    "--innodb-strict-mode=OFF",
    "--group-concat-max-len=7",
    "--div-precision-increment=9",
    "--loose-log-bin-trust-function-creators=ON",
];

/// In every format of the log: data, and definitions that fill in data.
const ROUND: [&str; 9] = [
    "CREATE DATABASE IF NOT EXISTS of_the_server",
    "CREATE TABLE m_FORMAT (id INT PRIMARY KEY, at DATETIME, stamp TIMESTAMP NULL, what VARCHAR(60))",
    "INSERT INTO m_FORMAT VALUES (1, NOW(), NOW(), 'now')",
    "INSERT INTO m_FORMAT SELECT 2, FROM_UNIXTIME(86400 * 365), '2001-02-03 04:05:06', \
     UNIX_TIMESTAMP('2001-02-03 04:05:06')",
    "INSERT INTO m_FORMAT SELECT 3, NULL, NULL, GROUP_CONCAT(id) FROM m_FORMAT",
    "INSERT INTO m_FORMAT SELECT 4, NULL, NULL, 1 / 3",
    "INSERT INTO m_FORMAT SELECT 5, CURDATE(), NULL, @@session.time_zone",
    "ALTER TABLE m_FORMAT ADD COLUMN added DATETIME DEFAULT CURRENT_TIMESTAMP",
    "ALTER TABLE m_FORMAT ADD COLUMN added_stamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP",
];

const FORMATS: [&str; 3] = ["STATEMENT", "MIXED", "ROW"];

/// Makes one round in a format, with a function whose author has to be trusted.
fn round(session: &mut Session, format: &str) {
    let mut run = |sql: &str| {
        let done = session.run(sql);
        done.unwrap_or_else(|why| panic!("{sql}: {}", why.chain()));
    };
    run(&format!("SET SESSION binlog_format = {format}"));
    for sql in ROUND {
        run(&sql.replace("FORMAT", format));
    }
    run(&format!(
        "CREATE FUNCTION f_{format}() RETURNS INT RETURN 1 + UNIX_TIMESTAMP()"
    ));
}

/// Returns all that could differ, as one text.
fn content(session: &mut Session) -> String {
    session.run("SET SESSION time_zone = '+00:00'").unwrap();
    session
        .run("SET SESSION group_concat_max_len = 1000")
        .unwrap();
    session.run("USE points").unwrap();
    let mut all = Vec::new();
    for format in FORMATS {
        let rows = session.rows(&format!("SELECT * FROM m_{format} ORDER BY id"));
        for row in rows.unwrap() {
            let cells: Vec<&str> = (0..6).map(|n| row.at(n).unwrap_or("NULL")).collect();
            all.push(format!("{format}: {}", cells.join(" ")));
        }
    }
    for sql in [
        "SELECT CONCAT(table_name, ' ', engine, ' ', table_collation) FROM \
         information_schema.tables WHERE table_schema = 'points' ORDER BY 1",
        "SELECT CONCAT(schema_name, ' ', default_collation_name) FROM information_schema.schemata \
         WHERE schema_name = 'of_the_server'",
        "SELECT CONCAT(routine_name, ' ', routine_definition) FROM information_schema.routines \
         WHERE routine_schema = 'points' ORDER BY 1",
    ] {
        let rows = session.rows(sql).unwrap();
        all.extend(
            rows.iter()
                .map(|row| row.at(0).unwrap_or("NULL").to_owned()),
        );
    }
    all.join("\n")
}

fn case(server: TestServer) {
    let fs = LoopFs::xfs(3 << 30);
    let mut args = SMALL.to_vec();
    args.extend(SETTINGS);
    let mysql_8 = server.id == "mysql-8.0.15" || server.id == "mysql-9";
    if server.id == "mysql-9" {
        args.retain(|arg| !arg.starts_with("--innodb-log-file-size"));
        args.push("--innodb-redo-log-capacity=64M");
    }
    if mysql_8 {
        args.push("--explicit-defaults-for-timestamp=OFF");
    }
    let mut launch = server.prepare(&fs.join("data"), &args);
    launch.time_zone = Some(ZONE.to_owned());
    let mut site = Site::of(server, fs, launch, 10);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut session = site.running().session().unwrap();
    session.run("CREATE DATABASE points").unwrap();
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    session.run("USE points").unwrap();
    FORMATS
        .iter()
        .for_each(|format| round(&mut session, format));
    let end = mark(&mut session);
    let expected = content(&mut session);
    assert!(expected.contains("MyISAM"), "{expected}");
    let archived = archive(&evenkeel, &site, &[]);
    assert_eq!(archived.code, Some(0), "{archived:?}");
    site.kill();
    let target = site.fs.join("restored");
    let ended = restore_to(&evenkeel, &site, &target, &end.moved(0));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut launch = site.launch.clone();
    launch.datadir = target;
    let restored = site.server.run(&launch);
    assert_eq!(content(&mut restored.session().unwrap()), expected);
}

#[test]
fn on_mariadb_10_11() {
    case(mariadb_10_11());
}

#[test]
fn on_mariadb_11_8() {
    case(mariadb_11_8());
}

#[test]
fn on_mysql_5_7_22() {
    case(mysql_5_7_22());
}

#[test]
fn on_mysql_8_0_15() {
    case(mysql_8_0_15());
}

#[test]
fn on_mysql_9() {
    case(mysql_9());
}
