//! Do the functions of queues keep to what the server was told: read only, locked, names without case?

use evenkeel_cases::queues::{Host, QueueSite};
use evenkeel_server::connect::Session;
use evenkeel_testkit::until;
use std::thread;

fn number(session: &mut Session, what: &str) -> i64 {
    let value = session.value(&format!("SELECT {what}")).unwrap();
    value.unwrap().parse().unwrap()
}

fn refused(session: &mut Session, sql: &str, because: &str) {
    let why = session.rows(sql).unwrap_err().chain();
    assert!(why.contains(because), "{sql}: {why}");
}

fn worker(site: &QueueSite) -> Session {
    let mut options = site.running.connect_options();
    options.user = Some("worker".to_owned());
    Session::open(&options).unwrap()
}

fn read_only(site: &QueueSite) {
    let (mut session, mut worker) = (site.session(), worker(site));
    assert_eq!(number(&mut worker, "queue_wait('shop.mails', 0)"), 1);
    session.run("SET GLOBAL read_only = 1").unwrap();
    for call in [
        "queue_end()",
        "queue_wait('shop.mails', 0)",
        "queue_wait_n('shop.mails', 2, 0)",
        "queue_compact('shop.mails')",
    ] {
        refused(&mut worker, &format!("SELECT {call}"), "read-only");
    }
    let sql = "INSERT INTO shop.mails VALUES (9)";
    refused(&mut worker, sql, "read-only");
    assert_eq!(number(&mut worker, "queue_rowid()"), 1);
    assert_eq!(number(&mut worker, "queue_abort()"), 1);
    session.run("SET GLOBAL read_only = 0").unwrap();
    assert_eq!(number(&mut worker, "queue_wait('shop.mails', 0)"), 1);
    assert_eq!(number(&mut worker, "COUNT(*) FROM shop.mails"), 1);
    assert_eq!(number(&mut worker, "queue_abort()"), 1);
    assert_eq!(number(&mut session, "COUNT(*) FROM mails"), 3);
}

/// Consumes in another thread while the server is locked; it continues when the server does.
fn stands_still(site: &QueueSite, consumes: &'static str, left: i64) {
    let mut backup = site.session();
    let mut consumer = worker(site);
    assert_eq!(number(&mut consumer, "queue_wait('shop.mails', 0)"), 1);
    let rows =
        "SELECT SUBSTRING_INDEX(SUBSTRING_INDEX(queue_stats('mails'), 'rows: ', -1), '\\n', 1)";
    let before = backup.value(rows).unwrap();
    backup.run("FLUSH TABLES WITH READ LOCK").unwrap();
    let id = consumer.id();
    let consuming = thread::spawn(move || {
        consumer.value(&format!("SELECT {consumes}")).unwrap();
        consumer
    });
    let state = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id} AND state LIKE 'Waiting for%lock'"
    );
    until("it waits for the lock", || {
        backup.value(&state).unwrap().as_deref() == Some("1")
    });
    assert_eq!(backup.value(rows).unwrap(), before, "nothing is gone");
    backup.run("UNLOCK TABLES").unwrap();
    let mut consumer = consuming.join().unwrap();
    let _ = consumer.run("SELECT queue_abort()");
    assert_eq!(number(&mut backup, "COUNT(*) FROM mails"), left);
}

fn stand_still(site: &QueueSite) {
    stands_still(site, "queue_end()", 2);
    stands_still(site, "queue_wait('shop.mails', 0)", 1);
    // Who waits for rows holds nothing up.
    let (mut backup, mut waits) = (site.session(), worker(site));
    backup.run("TRUNCATE mails").unwrap();
    let waiting = thread::spawn(move || {
        let reported = waits.value("SELECT queue_wait('shop.mails', 600)").unwrap();
        (reported, waits)
    });
    until("it waits", || {
        let stats = backup.value("SELECT queue_stats('mails')").unwrap();
        stats.unwrap().contains("waiters: 1\n")
    });
    backup.run("FLUSH TABLES WITH READ LOCK").unwrap();
    backup.run("UNLOCK TABLES").unwrap();
    backup.run("INSERT INTO mails VALUES (5)").unwrap();
    let (reported, _waits) = waiting.join().unwrap();
    assert_eq!(reported.as_deref(), Some("1"));
    // The session that locks the server changes nothing either.
    backup.run("INSERT INTO mails VALUES (6)").unwrap();
    backup.run("FLUSH TABLES WITH READ LOCK").unwrap();
    assert_eq!(number(&mut backup, "queue_wait('mails', 0)"), 1);
    refused(&mut backup, "SELECT queue_end()", "read lock");
    backup.run("UNLOCK TABLES").unwrap();
    assert_eq!(number(&mut backup, "queue_end()"), 1);
}

fn names_without_case(site: &QueueSite) {
    let mut session = site.session();
    session.run("USE SHOP").unwrap();
    for name in ["Mails", "shop.MAILS", "SHOP.Mails"] {
        assert_eq!(number(&mut session, &format!("queue_wait('{name}', 0)")), 1);
        assert_eq!(number(&mut session, "COUNT(*) FROM MAILS"), 1, "{name}");
        assert_eq!(number(&mut session, "queue_abort()"), 1);
    }
    assert_eq!(number(&mut session, "queue_compact('Shop.Mails')"), 1);
    let mut worker = worker(site);
    assert_eq!(number(&mut worker, "queue_wait('SHOP.MAILS', 0)"), 1);
}

fn begin(host: Host, more: &[&str]) -> QueueSite {
    let site = QueueSite::start_on(host, more);
    let mut session = site.session();
    for sql in [
        "CREATE USER worker@localhost",
        "GRANT SELECT, DELETE, INSERT ON shop.* TO worker@localhost",
        "CREATE TABLE Mails (id INT NOT NULL) ENGINE=QUEUE",
    ] {
        session.run(sql).unwrap();
    }
    site
}

fn on(host: Host) {
    let site = begin(host, &[]);
    let mut session = site.session();
    session.run("RENAME TABLE Mails TO mails").unwrap();
    session
        .run("INSERT INTO mails VALUES (1), (2), (3)")
        .unwrap();
    read_only(&site);
    stand_still(&site);
    drop(site);
    let site = begin(host, &["--lower-case-table-names=1"]);
    let mut session = site.session();
    session
        .run("INSERT INTO mails VALUES (1), (2), (3)")
        .unwrap();
    names_without_case(&site);
}

#[test]
fn on_mariadb_10_11() {
    on(Host::MariaDb10);
}

#[test]
fn on_mariadb_11_8() {
    on(Host::MariaDb11);
}

#[test]
fn on_mysql_9() {
    on(Host::MySql9);
}
