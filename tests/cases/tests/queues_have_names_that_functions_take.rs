//! Is every queue called so that the functions can be told of it?

use evenkeel_cases::queues::verbs::{Queues, numbers};
use evenkeel_cases::queues::{Host, QueueSite};
use evenkeel_server::connect::Session;
use evenkeel_testkit::servers::SERVER_DEADLINE;
use std::fs;

/// What gives, or would give, a queue a name that they cannot take.
const REFUSED: [&str; 11] = [
    "CREATE TABLE `a:b` (id INT) ENGINE=QUEUE",
    "CREATE TABLE `a:b` LIKE jobs",
    "RENAME TABLE jobs TO `a:b`",
    "RENAME TABLE jobs TO good, mails TO `a:b`",
    "RENAME TABLE jobs TO `d.x`.jobs",
    "ALTER TABLE jobs RENAME TO `a:b`",
    "ALTER TABLE jobs RENAME TO `a:b`, ADD COLUMN more INT",
    "ALTER TABLE `i:i` ENGINE=QUEUE",
    "ALTER TABLE jobs RENAME TO `d:y`.jobs, ADD COLUMN more INT",
    "CREATE TABLE `d.x`.t (id INT) ENGINE=QUEUE",
    "CREATE TABLE `d:y`.t (id INT) ENGINE=QUEUE",
];

fn tables(session: &mut Session) -> Vec<String> {
    let rows = session.rows("SHOW TABLES").unwrap();
    rows.iter()
        .map(|row| row.at(0).unwrap().to_owned())
        .collect()
}

/// Files of queues that lie in the database's directory.
fn anchors(site: &QueueSite) -> Vec<String> {
    let entries = fs::read_dir(site.launch.datadir.join("shop")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut found: Vec<_> = names.filter(|name| name.ends_with(".QUE")).collect();
    found.sort();
    found
}

fn case(host: Host) -> QueueSite {
    let site = QueueSite::start_on(host, &[]);
    let mut session = site.session();
    for sql in [
        "CREATE DATABASE `d.x`",
        "CREATE DATABASE `d:y`",
        "CREATE TABLE `i:i` (id INT NOT NULL) ENGINE=InnoDB",
        "INSERT INTO `i:i` VALUES (8)",
        "CREATE TABLE jobs (id INT NOT NULL) ENGINE=QUEUE",
        "INSERT INTO jobs VALUES (1), (2)",
        "CREATE TABLE mails (id INT NOT NULL) ENGINE=QUEUE",
        "INSERT INTO mails VALUES (3)",
    ] {
        session.run(sql).unwrap();
    }
    // What the server takes back leaves no name to be had.
    for sql in REFUSED.iter().chain(&REFUSED) {
        let why = session.run(sql).expect_err(sql).chain();
        assert!(why.contains("a queue has no colon"), "{sql}: {why}");
        assert_eq!(tables(&mut session), ["i:i", "jobs", "mails"], "{sql}");
        assert_eq!(anchors(&site), ["jobs.QUE", "mails.QUE"], "{sql}");
        for (table, rows) in [("jobs", &[1, 2][..]), ("mails", &[3]), ("`i:i`", &[8])] {
            let sql = format!("SELECT id FROM {table}");
            assert_eq!(numbers(&mut session, &sql), rows, "{sql}");
        }
    }
    // Dots are no matter, but in the name of the database.
    session.run("RENAME TABLE mails TO `a.b`").unwrap();
    assert_eq!(site.wait(&mut session, &["shop.a.b"], 0.0), Ok(Some(1)));
    site.end(&mut session).unwrap();
    for database in ["`d.x`", "`d:y`"] {
        session.run(&format!("DROP DATABASE {database}")).unwrap();
    }
    site
}

/// A queue of an earlier version, which could be called anything.
fn of_an_earlier_version(site: QueueSite) {
    let shop = site.launch.datadir.join("shop");
    let site = site.again(|running| {
        running.stop(SERVER_DEADLINE).unwrap();
        for end in ["QUE", "frm"] {
            let (from, to) = (format!("jobs.{end}"), format!("a@003ab.{end}"));
            fs::rename(shop.join(from), shop.join(to)).unwrap();
        }
    });
    let mut session = site.session();
    assert_eq!(numbers(&mut session, "SELECT id FROM `a:b`"), [1, 2]);
    session
        .run("ALTER TABLE `a:b` ADD COLUMN more INT NOT NULL DEFAULT 4")
        .unwrap();
    session.run("INSERT INTO `a:b` VALUES (3, 4)").unwrap();
    // It keeps its name where the other rename fails.
    let both = "RENAME TABLE `a:b` TO good, nothing TO other";
    session.run(both).unwrap_err();
    assert_eq!(numbers(&mut session, "SELECT id FROM `a:b`"), [1, 2, 3]);
    session.run("RENAME TABLE `a:b` TO good").unwrap();
    assert_eq!(
        site.wait(&mut session, &["good:more = 4"], 0.0),
        Ok(Some(1))
    );
    assert_eq!(numbers(&mut session, "SELECT id FROM good"), [1]);
    site.abort(&mut session).unwrap();
    session.run("RENAME TABLE good TO `a:b`").unwrap();
    session.run("DROP TABLE `a:b`").unwrap();
    assert_eq!(anchors(&site), ["a@002eb.QUE"]);
}

#[test]
fn on_mariadb_10_11() {
    of_an_earlier_version(case(Host::MariaDb10));
}

#[test]
fn on_mariadb_11_8() {
    of_an_earlier_version(case(Host::MariaDb11));
}

#[test]
fn on_mysql_9() {
    case(Host::MySql9);
}
