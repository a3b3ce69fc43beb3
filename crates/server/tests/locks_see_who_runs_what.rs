//! Does a lock wait for what clients and events run, and for no thread of replication?

use evenkeel_op::{Cancel, ErrorKind, Silent};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;
use evenkeel_server::lock::{Limits, LockChoice, Locker, LongQueries, QueryKind};
use evenkeel_testkit::servers::newer_servers;
use evenkeel_testkit::{Scratch, servers, until};
use std::time::Duration;

/// What runs for a second is long, and is not waited for.
fn limits(kill: &[QueryKind]) -> Limits {
    Limits {
        deadline: Duration::from_secs(60),
        hold: Duration::from_secs(60),
        long_queries: LongQueries {
            threshold: Duration::from_secs(1),
            wait: Duration::ZERO,
            kill: kill.to_vec(),
        },
    }
}

/// Waits until a thread that `is` it has been in the list for two seconds.
fn until_long(observer: &mut Session, is: impl Fn(&str, &str, &str) -> bool) {
    until("the thread is in the list, and old", || {
        let list = observer.rows("SHOW FULL PROCESSLIST").unwrap();
        list.iter().any(|row| {
            let text = |name| row.get(name).unwrap_or_default();
            let seconds = text("Time").parse::<u64>().unwrap_or(0);
            is(text("User"), text("State"), text("Info")) && seconds >= 2
        })
    });
}

/// MySQL 8 lists it as a query that never ends.
#[test]
fn an_idle_sql_thread_is_no_long_query() {
    for server in servers().into_iter().chain(newer_servers()) {
        let scratch = Scratch::new();
        let args = ["--server-id=7", "--log-bin=b", "--relay-log=r"];
        let running = server.start(&scratch.join("data"), &args);
        let mut session = running.session().unwrap();
        let abilities = Abilities::probe(&mut session).unwrap();
        // Nothing is there to replicate from.
        let (change, start, threads) = match abilities.change_replication_source {
            true => (
                "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=1, SOURCE_USER='x'",
                "START REPLICA",
                "SHOW REPLICA STATUS",
            ),
            false => (
                "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=1, MASTER_USER='x'",
                "START SLAVE",
                "SHOW SLAVE STATUS",
            ),
        };
        session.run(change).unwrap();
        session.run(start).unwrap();
        until_long(&mut session, |user, state, _| {
            user == "system user" && state.contains("has read all relay log")
        });
        let cancel = Cancel::new();
        let options = running.connect_options();
        let kill = limits(&[QueryKind::Select, QueryKind::Update]);
        for wanted in [limits(&[]), kill] {
            let mut locker = Locker::open(&options, wanted, &Silent, &cancel).unwrap();
            locker
                .take(&LockChoice::GlobalRead)
                .unwrap_or_else(|e| panic!("{}: {}", server.name, e.chain()));
            locker.release().unwrap();
        }
        // It was not killed, either.
        let status = session.one(threads).unwrap().unwrap();
        let sql_thread = status
            .get("Replica_SQL_Running")
            .or(status.get("Slave_SQL_Running"));
        assert_eq!(sql_thread, Some("Yes"), "{}", server.name);
    }
}

#[test]
fn events_run_queries_too() {
    for server in servers() {
        let scratch = Scratch::new();
        let running = server.start(&scratch.join("data"), &["--event-scheduler=ON"]);
        let mut session = running.session().unwrap();
        session.run("CREATE DATABASE shop").unwrap();
        session
            .run("CREATE TABLE shop.t AS SELECT 1 AS id")
            .unwrap();
        session
            .run("CREATE EVENT shop.e ON SCHEDULE AT NOW() DO SELECT SLEEP(600) FROM shop.t")
            .unwrap();
        until_long(&mut session, |_, _, text| text.contains("SLEEP(600)"));
        let cancel = Cancel::new();
        let options = running.connect_options();
        let mut locker = Locker::open(&options, limits(&[]), &Silent, &cancel).unwrap();
        let error = locker.take(&LockChoice::GlobalRead).unwrap_err();
        let name = server.name;
        assert_eq!(error.kind(), ErrorKind::LockTimeout, "{name}");
        let told = error.to_string();
        assert!(told.contains("SLEEP(600)"), "{name}: {told}");
        assert!(told.contains(" of root "), "{name}: {told}");

        let kill = limits(&[QueryKind::Select]);
        let mut locker = Locker::open(&options, kill, &Silent, &cancel).unwrap();
        locker.take(&LockChoice::GlobalRead).unwrap();
        locker.release().unwrap();
    }
}
