//! Does a lock that was not held throughout fail, whatever else succeeded?

use evenkeel_op::{Cancel, ErrorKind, Silent};
use evenkeel_server::lock::{Limits, LockChoice, Locker};
use evenkeel_testkit::{Scratch, servers, until};
use std::time::Duration;

fn limits(hold: Duration) -> Limits {
    Limits {
        hold,
        ..Limits::default()
    }
}

#[test]
fn a_killed_connection_fails_the_release() {
    for server in servers() {
        let scratch = Scratch::new();
        let running = server.start(&scratch.join("data"), &[]);
        let cancel = Cancel::new();
        let options = running.connect_options();
        let mut other = running.session().unwrap();
        for choice in [LockChoice::Auto, LockChoice::GlobalRead] {
            let mut locker = Locker::open(&options, Limits::default(), &Silent, &cancel).unwrap();
            locker.take(&choice).unwrap();
            let id = locker.session().id();
            other.run(&format!("KILL {id}")).unwrap();
            until("the connection is gone", || {
                let list = other.rows("SHOW FULL PROCESSLIST").unwrap();
                !list
                    .iter()
                    .any(|row| row.get("Id") == Some(&id.to_string()))
            });
            let error = locker.release().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Failed, "{}", server.name);
            assert!(error.to_string().contains("the lock was lost"), "{error}");
            other.run("CREATE DATABASE free").unwrap();
            other.run("DROP DATABASE free").unwrap();
        }
    }
}

#[test]
fn a_restarted_server_fails_the_release() {
    for server in servers() {
        let scratch = Scratch::new();
        let launch = server.prepare(&scratch.join("data"), &[]);
        let running = server.run(&launch);
        let cancel = Cancel::new();
        let options = running.connect_options();
        let mut locker = Locker::open(&options, Limits::default(), &Silent, &cancel).unwrap();
        locker.take(&LockChoice::Auto).unwrap();
        running.kill();
        let _again = server.run(&launch);
        let error = locker.release().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Failed, "{}", server.name);
        assert!(error.to_string().contains("the lock was lost"), "{error}");
    }
}

#[test]
fn the_watchdog_ends_a_lock_that_is_held_too_long() {
    for server in servers() {
        let scratch = Scratch::new();
        let running = server.start(&scratch.join("data"), &[]);
        let cancel = Cancel::new();
        let options = running.connect_options();
        let mut other = running.session().unwrap();
        other.run("CREATE DATABASE shop").unwrap();
        other
            .run("CREATE TABLE shop.t (id INT) ENGINE=InnoDB")
            .unwrap();
        let short = limits(Duration::from_millis(300));
        let mut locker = Locker::open(&options, short, &Silent, &cancel).unwrap();
        locker.take(&LockChoice::Auto).unwrap();
        // Blocked, and free again although nobody released anything.
        other.run("INSERT INTO shop.t VALUES (1)").unwrap();
        let error = locker.release().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Failed, "{}", server.name);
        assert!(error.to_string().contains("the lock was lost"), "{error}");
        assert!(error.to_string().contains("watchdog"), "{error}");
    }
}

#[test]
fn a_dropped_locker_leaves_nothing_locked() {
    for server in servers() {
        let scratch = Scratch::new();
        let running = server.start(&scratch.join("data"), &[]);
        let cancel = Cancel::new();
        let options = running.connect_options();
        let mut locker = Locker::open(&options, Limits::default(), &Silent, &cancel).unwrap();
        locker.take(&LockChoice::Auto).unwrap();
        drop(locker);
        let mut other = running.session().unwrap();
        other.run("CREATE DATABASE free").unwrap();
    }
}

#[test]
fn a_release_in_time_says_how_long_it_was() {
    let server = evenkeel_testkit::servers::mariadb_10_11();
    let scratch = Scratch::new();
    let running = server.start(&scratch.join("data"), &[]);
    let cancel = Cancel::new();
    let mut locker = Locker::open(
        &running.connect_options(),
        Limits::default(),
        &Silent,
        &cancel,
    )
    .unwrap();
    assert!(locker.block_ddl().unwrap());
    let pause = Duration::from_millis(50);
    std::thread::sleep(pause);
    locker.stop_commits().unwrap();
    let held = locker.release().unwrap();
    assert!(held.lock >= held.writes_stopped + pause, "{held:?}");
}
