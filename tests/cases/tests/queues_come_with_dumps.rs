//! Does a server that was given a dump of queues start again after a crash?

use evenkeel_cases::queues::verbs::numbers;
use evenkeel_cases::queues::{Host, QueueSite};

#[test]
fn on_mariadb_10_11() {
    it_starts_after_a_dump(Host::MariaDb10);
}

#[test]
fn on_mariadb_11_8() {
    it_starts_after_a_dump(Host::MariaDb11);
}

#[test]
fn on_mysql_9() {
    it_starts_after_a_dump(Host::MySql9);
}

/// What mysqldump and mariadb-dump write for a table, and what else is said without a change of the table.
fn it_starts_after_a_dump(host: Host) {
    let mut site = QueueSite::start_on(host, &["--log-bin=binlog", "--server-id=1"]);
    let mut session = site.session();
    for sql in [
        "CREATE TABLE jobs (id INT NOT NULL) ENGINE=QUEUE",
        "LOCK TABLES jobs WRITE",
        "/*!40000 ALTER TABLE jobs DISABLE KEYS */",
        "INSERT INTO jobs VALUES (1), (2)",
        "/*!40000 ALTER TABLE jobs ENABLE KEYS */",
        "UNLOCK TABLES",
    ] {
        session.run(sql).unwrap();
    }
    drop(session);
    site = site.again(|running| running.kill());
    let mut session = site.session();
    assert_eq!(numbers(&mut session, "SELECT id FROM jobs"), [1, 2]);
    for sql in [
        "SET autocommit = 0",
        "ALTER TABLE jobs FORCE",
        "ALTER TABLE jobs DISABLE KEYS",
        "ALTER TABLE jobs ENABLE KEYS",
    ] {
        session.run(sql).unwrap();
    }
    drop(session);
    site = site.again(|running| running.kill());
    let mut session = site.session();
    assert_eq!(numbers(&mut session, "SELECT id FROM jobs"), [1, 2]);
}
