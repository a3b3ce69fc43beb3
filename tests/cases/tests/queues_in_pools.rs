//! Does a connection that is reset, or gets another user, give back what it owns, as one that ends does?

use evenkeel_cases::queues::{Host, QueueSite};
use evenkeel_server::connect::Session;

fn ids(session: &mut Session) -> Vec<String> {
    let rows = session.rows("SELECT id FROM mails").unwrap();
    let ids = rows.iter().map(|row| row.at(0).unwrap().to_owned());
    ids.collect()
}

fn take(session: &mut Session) -> Option<String> {
    session.value("SELECT queue_wait('shop.mails', 0)").unwrap()
}

fn reset(session: &mut Session) {
    session.raw().reset().unwrap();
}

fn change_user(session: &mut Session) {
    session.raw().change_user(Default::default()).unwrap();
}

fn on(host: Host) {
    let site = QueueSite::start_on(host, &[]);
    let mut other = site.session();
    for begins_anew in [reset, change_user] {
        let sql = "CREATE TABLE mails (id INT NOT NULL) ENGINE=QUEUE";
        other.run(sql).unwrap();
        other.run("INSERT INTO mails VALUES (1), (2)").unwrap();
        let mut pooled = site.session();
        // The next wait consumes nothing, and gives the same row.
        assert_eq!(take(&mut pooled).as_deref(), Some("1"));
        assert_eq!(ids(&mut other), ["2"]);
        begins_anew(&mut pooled);
        pooled.run("USE shop").unwrap();
        assert_eq!(take(&mut pooled).as_deref(), Some("1"));
        assert_eq!(ids(&mut pooled), ["1"]);
        assert_eq!(ids(&mut other), ["2"]);
        // Whoever reads the queue sees all rows, and nobody owns one.
        begins_anew(&mut pooled);
        pooled.run("USE shop").unwrap();
        assert_eq!(ids(&mut pooled), ["1", "2"]);
        assert_eq!(ids(&mut other), ["1", "2"]);
        let why = pooled.run("SELECT queue_end()").unwrap_err().chain();
        assert!(why.contains("queue_wait() before"), "{why}");
        // What was to be said of the next INSERT is forgotten.
        pooled.run("SELECT queue_set_srcid(1, 'w', 9)").unwrap();
        begins_anew(&mut pooled);
        pooled.run("USE shop").unwrap();
        pooled.run("INSERT INTO mails VALUES (3)").unwrap();
        pooled.run("SELECT queue_set_srcid(1, 'a', 9)").unwrap();
        pooled.run("INSERT INTO mails VALUES (4)").unwrap();
        assert_eq!(ids(&mut other), ["1", "2", "3", "4"]);
        other.run("DROP TABLE mails").unwrap();
    }
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
