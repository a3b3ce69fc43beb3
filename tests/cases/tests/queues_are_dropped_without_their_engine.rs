//! Is a queue that was dropped while its engine was not there gone when that is back, and no other?

use evenkeel_cases::queues::verbs::numbers;
use evenkeel_cases::queues::{Host, QueueSite};
use evenkeel_server::connect::Session;
use evenkeel_testkit::servers::SERVER_DEADLINE;
use std::fs;

fn begin(host: Host) -> QueueSite {
    let site = QueueSite::start_on(host, &[]);
    let mut session = site.session();
    for sql in [
        "CREATE DATABASE other",
        "CREATE TABLE gone (id INT NOT NULL) ENGINE=QUEUE",
        "INSERT INTO gone VALUES (7)",
        "CREATE TABLE mails (id INT NOT NULL) ENGINE=QUEUE",
        "INSERT INTO mails VALUES (1), (2), (3)",
        "CREATE TABLE other.jobs (id INT NOT NULL) ENGINE=QUEUE",
        "INSERT INTO other.jobs VALUES (4), (5)",
    ] {
        session.run(sql).unwrap();
    }
    drop(session);
    site.take_out();
    site
}

fn count_rows(site: &QueueSite) -> usize {
    fs::read_dir(site.rows()).unwrap().count()
}

fn jobs_are_there(session: &mut Session) {
    assert_eq!(numbers(session, "SELECT id FROM other.jobs"), [4, 5]);
}

fn a_database_goes(site: &QueueSite, session: &mut Session, left: usize) {
    session.run("DROP DATABASE shop").unwrap();
    assert!(!site.launch.datadir.join("shop").exists());
    assert_eq!(count_rows(site), left);
    jobs_are_there(session);
}

/// The table was dropped, then its database when the engine is back.
fn a_table(host: Host) {
    let site = begin(host);
    let mut session = site.running.session().unwrap();
    session.run("DROP TABLE shop.gone").unwrap();
    site.put_in(&mut session);
    jobs_are_there(&mut session);
    assert_eq!(
        numbers(&mut session, "SELECT id FROM shop.mails"),
        [1, 2, 3]
    );
    a_database_goes(&site, &mut session, 1);
}

/// The database was dropped, which the server says it could not do; it has dropped the tables.
fn a_database(host: Host) {
    let site = begin(host);
    let mut session = site.running.session().unwrap();
    let why = session.run("DROP DATABASE shop").unwrap_err().chain();
    assert!(why.contains("1010"), "{why}");
    site.put_in(&mut session);
    a_database_goes(&site, &mut session, 1);
}

/// The database stays; the error log names the queue, and the rows go as it says.
fn rows_go(host: Host) {
    let site = begin(host);
    let mut session = site.running.session().unwrap();
    session.run("DROP TABLE shop.gone").unwrap();
    site.put_in(&mut session);
    assert_eq!(count_rows(&site), 3);
    let log = fs::read_to_string(site.running.log_path()).unwrap();
    let said = "shop/gone.QUE: dropped while the engine was not loaded?";
    assert!(log.contains(said), "{log}");
    session
        .run("CREATE TABLE shop.gone (id INT) ENGINE=QUEUE")
        .unwrap();
    assert!(numbers(&mut session, "SELECT id FROM shop.gone").is_empty());
    session.run("DROP TABLE shop.gone").unwrap();
    assert_eq!(count_rows(&site), 2);
    drop(session);
    let site = site.again(|running| running.stop(SERVER_DEADLINE).unwrap());
    let mut session = site.session();
    assert_eq!(numbers(&mut session, "SELECT id FROM mails"), [1, 2, 3]);
    jobs_are_there(&mut session);
    // What the server has lost since goes with its database.
    session.run("FLUSH TABLES").unwrap();
    fs::remove_file(site.launch.datadir.join("shop/mails.frm")).unwrap();
    a_database_goes(&site, &mut session, 1);
}

#[test]
fn a_table_on_mariadb_10_11() {
    a_table(Host::MariaDb10);
}

#[test]
fn a_table_on_mariadb_11_8() {
    a_table(Host::MariaDb11);
}

#[test]
fn a_database_on_mariadb_10_11() {
    a_database(Host::MariaDb10);
}

#[test]
fn a_database_on_mariadb_11_8() {
    a_database(Host::MariaDb11);
}

#[test]
fn rows_are_removed_on_mariadb_10_11() {
    rows_go(Host::MariaDb10);
}

#[test]
fn rows_are_removed_on_mariadb_11_8() {
    rows_go(Host::MariaDb11);
}

/// MySQL drops nothing whose engine is not there.
#[test]
fn nothing_is_lost_on_mysql_9() {
    let site = begin(Host::MySql9);
    let mut session = site.running.session().unwrap();
    for (sql, code) in [
        ("DROP TABLE shop.gone", "1286"),
        ("DROP DATABASE shop", "1010"),
    ] {
        let why = session.run(sql).unwrap_err().chain();
        assert!(why.contains(code), "{sql}: {why}");
    }
    site.put_in(&mut session);
    assert_eq!(
        numbers(&mut session, "SELECT id FROM shop.mails"),
        [1, 2, 3]
    );
    a_database_goes(&site, &mut session, 1);
}
