//! Does REPAIR TABLE leave a queue's rows as they are, and with those who own them?

use evenkeel_cases::queues::verbs::{Queues, numbers};
use evenkeel_cases::queues::{Host, QueueSite};

fn on(host: Host) {
    let site = QueueSite::start_on(host, &[]);
    let (mut session, mut owner) = (site.open("repaired"), site.open("repaired"));
    site.create(&mut session, "t", "id INT").unwrap();
    session.run("INSERT INTO t VALUES (1), (2), (3)").unwrap();
    assert_eq!(site.wait(&mut owner, &["t"], 0.0), Ok(Some(1)));
    session.rows("REPAIR TABLE t").unwrap();
    assert_eq!(numbers(&mut session, "SELECT id FROM t"), [2, 3]);
    assert_eq!(numbers(&mut owner, "SELECT id FROM t"), [1]);
    site.abort(&mut owner).unwrap();
    assert_eq!(numbers(&mut session, "SELECT id FROM t"), [1, 2, 3]);
    let site = site.again(|running| running.kill());
    let mut session = site.open("repaired");
    assert_eq!(numbers(&mut session, "SELECT id FROM t"), [1, 2, 3]);
}

#[test]
fn on_mariadb_10_11() {
    on(Host::MariaDb10);
}

/// It makes a copy of a table whose engine has no repair of its own.
#[test]
fn on_mariadb_11_8() {
    on(Host::MariaDb11);
}

#[test]
fn on_mysql_9() {
    on(Host::MySql9);
}
