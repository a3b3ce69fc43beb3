//! Does an applier stand, cleanly and where it is said, and go on afterwards whatever happens?

mod replicas;

use evenkeel_op::{Cancel, ErrorKind, Event, Progress, Silent};
use evenkeel_server::abilities::Flavour;
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::replication::{StopLimits, Stopped, ThreadState};
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::replicas::{status, wait_until_it_applies};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{By, TestServer, until, wait_until_caught_up};
use replicas::{Pair, in_parallel, limits};
use rustix::process::{Pid, Signal, kill_process};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn the_watchdog() {
    replicas::be_the_watchdog();
}

/// The watchdogs of this test that live.
fn watchdogs() -> Vec<i32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let children =
        tasks.flat_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let all: Vec<i32> = children
        .flat_map(|text| {
            let numbers = text
                .split_whitespace()
                .map(|number| number.parse().unwrap());
            numbers.collect::<Vec<_>>()
        })
        .collect();
    let is_one = |pid: &i32| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains("the_watchdog"))
    };
    all.into_iter().filter(is_one).collect()
}

fn applier(pair: &Pair) -> ThreadState {
    status(&pair.replica).channels[0].applier
}

/// Four clients, an applier with workers, and no GTIDs that would hide a gap.
fn under_load(server: TestServer) {
    let pair = Pair::start(&server, By::Position, &[], &in_parallel(&server));
    let traffic = pair.bank.start(&pair.source.connect_options(), 4).unwrap();
    for _ in 0..5 {
        traffic.wait_for(50);
        let stopped = pair.stop(&limits()).unwrap();
        let said = stopped.coordinates();
        let before = status(&pair.replica);
        traffic.wait_for(20);
        let after = status(&pair.replica);
        assert_eq!(before.channels[0].applier, ThreadState::Stopped);
        assert_eq!(before.channels[0].executed, after.channels[0].executed);
        let place = after.channels[0].executed.clone().unwrap();
        assert_eq!(said[0].binlog_file.as_ref(), Some(&place.file));
        assert_eq!(said[0].binlog_position, Some(place.position));
        // Every client's transfers are numbered without a gap.
        pair.bank
            .check(&mut pair.replica.session().unwrap())
            .unwrap();
        stopped.start().unwrap();
        wait_until_it_applies(&pair.replica);
        assert_eq!(watchdogs(), [] as [i32; 0]);
    }
    drop(traffic.stop());
    wait_until_caught_up(&pair.source, &pair.replica);
    let there = pair
        .bank
        .check(&mut pair.source.session().unwrap())
        .unwrap();
    let here = pair
        .bank
        .check(&mut pair.replica.session().unwrap())
        .unwrap();
    assert_eq!(here, there);
}

#[test]
fn under_load_it_stands_where_it_says() {
    let servers = [mariadb_10_11(), mysql_8_0_15(), mysql_5_7_22()];
    for server in draw("servers under load", &servers, 1) {
        under_load(server);
    }
}

#[test]
fn one_that_stood_before_is_left_alone() {
    let servers = [mariadb_10_11(), mysql_8_0_15()];
    for server in draw("servers whose applier stands", &servers, 1) {
        let pair = Pair::start(&server, By::Gtid, &[], &[]);
        let mut session = pair.replica.session().unwrap();
        session.run("STOP SLAVE SQL_THREAD").unwrap();
        let stopped = pair.stop(&limits()).unwrap();
        assert_eq!(watchdogs(), [] as [i32; 0]);
        assert!(stopped.coordinates()[0].binlog_file.is_some());
        stopped.start().unwrap();
        assert_eq!(applier(&pair), ThreadState::Stopped, "{}", server.name);
        // Somebody starts it meanwhile: what was done is not of one place.
        let stopped = pair.stop(&limits()).unwrap();
        session.run("START SLAVE SQL_THREAD").unwrap();
        wait_until_it_applies(&pair.replica);
        let error = stopped.start().unwrap_err();
        assert!(error.to_string().contains("ran although"), "{error}");
        assert_eq!(applier(&pair), ThreadState::Running, "{}", server.name);
    }
}

#[test]
fn it_continues_without_connections_and_without_watchdog() {
    let servers = [mysql_8_0_15(), mariadb_10_11(), mysql_5_7_22()];
    for server in draw("servers without connections", &servers, 1) {
        let pair = Pair::start(&server, By::Position, &[], &[]);
        let mut session = pair.replica.session().unwrap();

        let stopped = pair.stop(&limits()).unwrap();
        for row in session.rows("SHOW PROCESSLIST").unwrap() {
            let id: u64 = row.get("Id").unwrap().parse().unwrap();
            if row.get("User") == Some("root") && id != session.id() {
                let _ = session.run(&format!("KILL {id}"));
            }
        }
        stopped.start().unwrap();
        wait_until_it_applies(&pair.replica);

        let stopped = pair.stop(&limits()).unwrap();
        let [watchdog] = watchdogs()[..] else {
            panic!("one watchdog")
        };
        kill_process(Pid::from_raw(watchdog).unwrap(), Signal::KILL).unwrap();
        assert_eq!(applier(&pair), ThreadState::Stopped, "{}", server.name);
        stopped.start().unwrap();
        wait_until_it_applies(&pair.replica);

        let stopped = pair.stop(&limits()).unwrap();
        assert_eq!(applier(&pair), ThreadState::Stopped, "{}", server.name);
        drop(stopped);
        wait_until_it_applies(&pair.replica);
        assert_eq!(watchdogs(), [] as [i32; 0]);
    }
}

#[test]
fn the_watchdog_starts_it_when_it_stands_for_too_long() {
    let pair = Pair::start(&mysql_8_0_15(), By::Position, &[], &[]);
    let short = StopLimits {
        deadline: Duration::from_secs(5),
        hold: Duration::ZERO,
    };
    let stopped = pair.stop(&short).unwrap();
    assert_eq!(applier(&pair), ThreadState::Stopped);
    wait_until_it_applies(&pair.replica);
    let error = stopped.start().unwrap_err();
    assert!(
        error.to_string().contains("the watchdog started it"),
        "{error}"
    );
    assert_eq!(applier(&pair), ThreadState::Running);
}

/// Remembers that there was a note.
#[derive(Default)]
struct Noted(AtomicBool);

impl Progress for Noted {
    fn event(&self, event: Event) {
        if matches!(event, Event::Note(text) if text.contains("temporary tables")) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
}

#[test]
fn temporary_tables_are_waited_for_and_given_up_on() {
    let servers = [mysql_5_7_22(), mariadb_10_11(), mysql_8_0_15()];
    for server in draw("servers with temporary tables", &servers, 1) {
        let statement = ["--binlog-format=STATEMENT"];
        let pair = Pair::start(&server, By::Position, &statement, &[]);
        let mut source = pair.source.session().unwrap();
        source.run("USE bank").unwrap();
        source
            .run("CREATE TEMPORARY TABLE some (id INT) ENGINE=InnoDB")
            .unwrap();
        source.run("INSERT INTO some VALUES (1)").unwrap();
        wait_until_caught_up(&pair.source, &pair.replica);
        assert_eq!(status(&pair.replica).temporary_tables, 1, "{}", server.name);

        let short = StopLimits {
            deadline: Duration::from_millis(300),
            ..limits()
        };
        let error = pair.stop(&short).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout, "{error}");
        assert!(error.to_string().contains("temporary tables"), "{error}");
        wait_until_it_applies(&pair.replica);

        let noted = Noted::default();
        std::thread::scope(|scope| {
            let stop = scope.spawn(|| {
                Stopped::stop(
                    &pair.replica.connect_options(),
                    Some(pair.replica.pid()),
                    &replicas::watchdog(),
                    &limits(),
                    &noted,
                    &Cancel::new(),
                )
            });
            until("it waits", || noted.0.load(Ordering::SeqCst));
            source.run("DROP TEMPORARY TABLE some").unwrap();
            let stopped = stop.join().unwrap().unwrap().unwrap();
            assert_eq!(status(&pair.replica).temporary_tables, 0, "{}", server.name);
            stopped.start().unwrap();
        });
        wait_until_it_applies(&pair.replica);
    }
}

/// The stop comes about only after it was given up on; the watchdog waits for that.
#[test]
fn a_stop_that_comes_late_is_undone() {
    let servers = [mariadb_10_11(), mysql_5_7_22(), mysql_8_0_15()];
    for server in draw("servers that stop late", &servers, 1) {
        let statement = ["--binlog-format=STATEMENT"];
        let pair = Pair::start(&server, By::Position, &statement, &[]);
        let mut source = pair.source.session().unwrap();
        source
            .run("CREATE TABLE bank.slow (id INT) ENGINE=MyISAM")
            .unwrap();
        source.run("INSERT INTO bank.slow SELECT SLEEP(3)").unwrap();
        let mut session = pair.replica.session().unwrap();
        until("the replica is at it", || {
            let rows = session.rows("SHOW FULL PROCESSLIST").unwrap();
            rows.iter()
                .any(|row| row.get("Info").is_some_and(|sql| sql.contains("SLEEP(3)")))
        });
        let short = StopLimits {
            deadline: Duration::from_millis(200),
            ..limits()
        };
        let error = Stopped::stop(
            &pair.replica.connect_options(),
            Some(pair.replica.pid()),
            &replicas::watchdog(),
            &short,
            &Silent,
            &Cancel::new(),
        )
        .unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::LockTimeout,
            "{}: {error}",
            server.name
        );
        until("the watchdog is done", || watchdogs().is_empty());
        assert_eq!(applier(&pair), ThreadState::Running, "{}", server.name);
        wait_until_caught_up(&pair.source, &pair.replica);
    }
}

/// Who may not start it may not stop it, and leaves nothing behind.
#[test]
fn without_the_privilege_nothing_is_touched() {
    let servers = [mysql_5_7_22(), mysql_8_0_15(), mariadb_10_11()];
    for server in draw("servers without the privilege", &servers, 1) {
        let pair = Pair::start(&server, By::Position, &[], &[]);
        let mut session = pair.replica.session().unwrap();
        session.run("CREATE USER looker@localhost").unwrap();
        let grants = match server.binary.flavour {
            Flavour::MariaDb => "SLAVE MONITOR",
            Flavour::MySql => "REPLICATION CLIENT",
        };
        session
            .run(&format!("GRANT {grants} ON *.* TO looker@localhost"))
            .unwrap();
        let error = Stopped::stop(
            &ConnectOptions::over_socket(pair.replica.socket(), "looker"),
            Some(pair.replica.pid()),
            &replicas::watchdog(),
            &limits(),
            &Silent,
            &Cancel::new(),
        )
        .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{}: {error}", server.name);
        assert_eq!(watchdogs(), [] as [i32; 0]);
        assert_eq!(applier(&pair), ThreadState::Running, "{}", server.name);
    }
}

#[test]
fn one_that_is_to_stop_somewhere_is_left_alone() {
    let pair = Pair::start(&mysql_8_0_15(), By::Position, &[], &[]);
    let mut session = pair.replica.session().unwrap();
    session.run("STOP SLAVE SQL_THREAD").unwrap();
    session
        .run("START SLAVE SQL_THREAD UNTIL MASTER_LOG_FILE='binlog.999999', MASTER_LOG_POS=4")
        .unwrap();
    wait_until_it_applies(&pair.replica);
    let error = pair.stop(&limits()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert_eq!(applier(&pair), ThreadState::Running);
}
