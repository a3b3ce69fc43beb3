//! Does a server say how long a queue's oldest row has waited and which connections own rows, whatever comes between?

use evenkeel_cases::queues::verbs::Queues;
use evenkeel_cases::queues::{Host, QueueSite};
use evenkeel_server::connect::Session;
use evenkeel_testkit::until;
use std::time::Instant;

fn oldest(site: &QueueSite, session: &mut Session) -> u64 {
    site.stat(session, "t", "oldest_row_seconds")
}

fn id_of(session: &mut Session) -> u64 {
    let id = session.value("SELECT CONNECTION_ID()").unwrap();
    id.and_then(|id| id.parse().ok()).expect("a number")
}

/// The connections that own rows, and how many.
fn owners(site: &QueueSite, session: &mut Session) -> Vec<(u64, u64)> {
    let stats = site.stats(session, "t").unwrap().expect("a queue");
    let line = |line: &str| {
        let (connection, rows) = line.strip_prefix("rows_owned_by_")?.split_once(": ")?;
        Some((connection.parse().unwrap(), rows.parse().unwrap()))
    };
    let owners: Vec<(u64, u64)> = stats.lines().filter_map(line).collect();
    let count = format!("\nowners: {}\n", owners.len());
    assert!(stats.contains(&count), "{stats}");
    owners
}

fn on(host: Host) {
    let mut site = QueueSite::start_on(host, &[]);
    let mut session = site.open("told");
    site.create(&mut session, "t", "id INT").unwrap();
    assert_eq!(oldest(&site, &mut session), 0, "there is none");
    assert_eq!(owners(&site, &mut session), []);
    session.run("INSERT INTO t VALUES (1)").unwrap();
    until("it has waited", || oldest(&site, &mut session) >= 2);
    let behind = Instant::now();
    session.run("INSERT INTO t VALUES (2), (3), (4)").unwrap();
    whose_rows_are(&site, &mut session);
    let before = oldest(&site, &mut session);
    assert!(before >= 2);
    assert_eq!(site.compact(&mut session, "t"), Ok(Some(1)));
    assert!(oldest(&site, &mut session) >= before, "compacted");
    if host != Host::MySql9 {
        site.alter(&mut session, "t", "ADD COLUMN what INT")
            .unwrap();
        assert!(oldest(&site, &mut session) >= before, "altered");
    }
    site = site.again(|running| running.kill());
    let mut session = site.open("told");
    assert!(oldest(&site, &mut session) >= before, "killed");
    assert_eq!(site.wait(&mut session, &["t"], 0.0), Ok(Some(1)));
    assert!(oldest(&site, &mut session) >= before, "it is owned");
    site.end(&mut session).unwrap();
    let next = oldest(&site, &mut session);
    // Times are told in whole seconds.
    assert!(
        next <= behind.elapsed().as_secs() + 1,
        "{next}: the first one's"
    );
}

fn whose_rows_are(site: &QueueSite, session: &mut Session) {
    let (mut one, mut other) = (site.open("told"), site.open("told"));
    assert_eq!(site.wait_n(&mut one, "t", 2, 0.0), Ok(Some(1)));
    assert_eq!(site.wait(&mut other, &["t"], 0.0), Ok(Some(1)));
    let mut owned = vec![(id_of(&mut one), 2), (id_of(&mut other), 1)];
    owned.sort_unstable();
    assert_eq!(owners(site, session), owned);
    site.abort(&mut one).unwrap();
    assert_eq!(owners(site, session), [(id_of(&mut other), 1)]);
    drop(other);
    until("its row is back", || owners(site, session).is_empty());
}

#[test]
fn mariadb_10_11() {
    on(Host::MariaDb10);
}

#[test]
fn mariadb_11_8() {
    on(Host::MariaDb11);
}

#[test]
fn mysql_9_7() {
    on(Host::MySql9);
}
