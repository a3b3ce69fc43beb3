//! Do schemas and tables come back that are called like files which servers, or evenkeel, treat specially?

use evenkeel_backup::backup::SnapshotChoice;
use evenkeel_cases::{Site, back_up};
use evenkeel_server::connect::Session;
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{LoopFs, TestServer};
use std::path::Path;

/// What files and directories at the top of a data directory are called, with and without their ends.
const NAMES: [&str; 26] = [
    "core",
    "core.77",
    "ibtmp1",
    "ibdata1",
    "ib_logfile0",
    "ib_logfile_imports",
    "ib_buffer_pool",
    "ib_12.log",
    "#ib_redo1",
    "#ib_redo1_tmp",
    "#innodb_temp",
    "#innodb_redo",
    "lost+found",
    "undo001",
    "undo_001",
    "aria_log",
    "aria_log_control",
    "aria_log.00000001",
    "binlog",
    "binlog.~rec~",
    "db1.pid",
    "db1.err",
    "x.lower-test",
    ".nfs0001",
    ".evenkeel-0",
    "xb_doublewrite",
];

fn tables(session: &mut Session) -> Vec<String> {
    let rows = session
        .rows(
            "SELECT CONCAT(table_schema, ' / ', table_name) FROM information_schema.tables \
             WHERE table_schema NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema') \
             ORDER BY 1",
        )
        .unwrap();
    rows.iter()
        .map(|row| row.at(0).unwrap().to_owned())
        .collect()
}

/// Schemas and tables of these names. Where a file of the server is already, it makes no schema.
fn pairs(datadir: &Path) -> Vec<(&'static str, &'static str)> {
    let schemas = NAMES.iter().filter(|name| !datadir.join(name).exists());
    let schemas = schemas.map(|name| (*name, "t"));
    schemas.chain(NAMES.map(|name| ("named", name))).collect()
}

/// Makes a schema, unless the server does not allow its name.
fn make_schema(session: &mut Session, schema: &str) -> bool {
    match session.run(&format!("CREATE DATABASE `{schema}`")) {
        Ok(()) => true,
        Err(why) if why.chain().contains("Incorrect database name") => false,
        Err(why) => panic!("{schema}: {}", why.chain()),
    }
}

fn case(server: TestServer) {
    let mut site = Site::start(server, LoopFs::xfs(4 << 30), 50, &[]);
    let mut session = site.running().session().unwrap();
    session.run("CREATE DATABASE named").unwrap();
    let mut made = Vec::new();
    for (schema, table) in pairs(&site.launch.datadir) {
        if schema != "named" && !make_schema(&mut session, schema) {
            continue;
        }
        let place = format!("`{schema}`.`{table}`");
        for sql in [
            format!("CREATE TABLE {place} (what VARCHAR(40) PRIMARY KEY) ENGINE=InnoDB"),
            format!("INSERT INTO {place} VALUES ('{schema}/{table}')"),
        ] {
            let done = session.run(&sql);
            done.unwrap_or_else(|why| panic!("{sql}: {}", why.chain()));
        }
        made.push((schema, table));
    }
    assert!(made.contains(&("core", "t")), "{made:?}");
    let expected = tables(&mut session);
    let done = back_up(&site.request(SnapshotChoice::Reflink)).expect("a backup");
    drop(session);
    site.kill();
    let restored = site.restore(Some(done.report.generation), "restored");
    let mut launch = site.launch.clone();
    launch.datadir = restored.expect("a restore").target;
    let running = site.server.run(&launch);
    let mut session = running.session().unwrap();
    assert_eq!(tables(&mut session), expected, "{}", site.server.name);
    // Each table holds its name, and so tells whether it is the right one.
    for (schema, table) in &made {
        let sql = format!("SELECT what FROM `{schema}`.`{table}`");
        let found = session.value(&sql);
        let found = found.unwrap_or_else(|why| panic!("{sql}: {}", why.chain()));
        assert_eq!(found, Some(format!("{schema}/{table}")), "{sql}");
    }
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
fn on_mysql_8_0_15() {
    case(mysql_8_0_15());
}

#[test]
fn on_mysql_5_7_22() {
    case(mysql_5_7_22());
}

#[test]
fn on_mysql_9() {
    case(mysql_9());
}
