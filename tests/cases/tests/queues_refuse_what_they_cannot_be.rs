//! Is what a queue cannot be refused, and is the way out that the error names one?

use evenkeel_cases::queues::verbs::numbers;
use evenkeel_cases::queues::{Host, QueueSite};
use evenkeel_server::connect::Session;

fn is_refused(session: &mut Session, sql: &str, because: &str) {
    let why = session.run(sql).expect_err(sql).chain();
    assert!(why.contains(because), "{sql}: {why}");
}

/// What CREATE TABLE and ALTER TABLE may ask for in vain.
fn options(host: Host, session: &mut Session) {
    for place in ["DATA", "INDEX"] {
        let sql = format!("CREATE TABLE t (id INT) ENGINE=QUEUE {place} DIRECTORY='/tmp'");
        is_refused(session, &sql, "leave out DATA DIRECTORY");
    }
    if host != Host::MySql9 {
        let sql = "CREATE TABLE t (id INT) ENGINE=QUEUE WITH SYSTEM VERSIONING";
        is_refused(session, sql, "leave out WITH SYSTEM VERSIONING");
        let sql = "ALTER TABLE jobs ADD SYSTEM VERSIONING";
        is_refused(session, sql, "leave out WITH SYSTEM VERSIONING");
    }
    assert_eq!(numbers(session, "SELECT id FROM jobs"), [1, 2]);
}

/// The steps that the error names.
fn another_engine(site: &QueueSite, session: &mut Session) {
    let words = [
        "Stop them, CREATE TABLE the other one",
        "INSERT INTO it SELECT * FROM the queue",
        "then DROP TABLE the queue",
    ];
    for because in words {
        is_refused(session, "ALTER TABLE jobs ENGINE=InnoDB", because);
    }
    let mut other = site.session();
    for sql in [
        "CREATE TABLE plain (id INT NOT NULL PRIMARY KEY) ENGINE=InnoDB",
        "INSERT INTO plain SELECT * FROM jobs",
        "DROP TABLE jobs",
    ] {
        other.run(sql).unwrap();
    }
    assert_eq!(numbers(session, "SELECT id FROM plain"), [1, 2]);
}

fn case(host: Host) {
    let site = QueueSite::start_on(host, &[]);
    let mut session = site.session();
    for sql in [
        "CREATE TABLE jobs (id INT NOT NULL) ENGINE=QUEUE",
        "INSERT INTO jobs VALUES (1), (2)",
    ] {
        session.run(sql).unwrap();
    }
    options(host, &mut session);
    for call in ["queue_end()", "queue_abort()", "queue_rowid()"] {
        let because = format!("this connection owns no row: call queue_wait() before {call}");
        is_refused(&mut session, &format!("SELECT {call}"), &because);
    }
    another_engine(&site, &mut session);
}

#[test]
fn on_mariadb_10_11() {
    case(Host::MariaDb10);
}

#[test]
fn on_mariadb_11_8() {
    case(Host::MariaDb11);
}

#[test]
fn on_mysql_9() {
    case(Host::MySql9);
}
