//! Does a backup that cannot get its lock give up in time without a pile-up, and does one that lost
//! its lock fail although it has everything?

use evenkeel_backup::backup::SnapshotChoice;
use evenkeel_cases::leftovers::names_in;
use evenkeel_cases::program::{Ended, Evenkeel};
use evenkeel_cases::{Site, back_up};
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{LoopFs, TestServer, until};
use std::process::Stdio;

const GIB: u64 = 1 << 30;

/// What stands in a lock's way, in a session of its own.
struct Obstacle {
    /// Statements that are through at once.
    first: &'static [&'static str],
    /// One that runs until it is killed.
    runs: Option<&'static str>,
}

const IDLE_LOCK: Obstacle = Obstacle {
    first: &["LOCK TABLES bank.ledger2 WRITE"],
    runs: None,
};
const LONG_QUERY: Obstacle = Obstacle {
    first: &[],
    runs: Some("SELECT COUNT(*), SLEEP(600) FROM bank.ledger2"),
};

/// Backs up while the obstacle is there, and meanwhile looks that the bank's clients get through.
fn case(server: TestServer, flags: &[&str], obstacle: &Obstacle) {
    let site = Site::start(server, LoopFs::xfs(4 * GIB), 200, &[]);
    let mut session = site.running().session().unwrap();
    session
        .run("CREATE TABLE bank.ledger2 (id INT PRIMARY KEY)")
        .unwrap();
    session.run("INSERT INTO bank.ledger2 VALUES (1)").unwrap();
    let mut blocker = site.running().session().unwrap();
    for sql in obstacle.first {
        blocker.run(sql).unwrap();
    }
    let id = blocker.id();
    let runs = obstacle.runs.map(str::to_owned);
    let is_there = format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id={id}");
    let blocking = std::thread::spawn(move || {
        if let Some(sql) = runs {
            let _ = blocker.run(&sql);
        }
        blocker
    });
    until("the obstacle is there", || {
        session.value(&is_there).unwrap().as_deref() == Some("1")
    });
    if obstacle.runs.is_some() {
        let busy = format!("{is_there} AND info LIKE '%SLEEP%'");
        until("it runs", || {
            session.value(&busy).unwrap().as_deref() == Some("1")
        });
    }

    let traffic = site.traffic(2);
    traffic.wait_for(10);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut command = evenkeel.backup(&site, &["--lock-deadline=6s", "--long-query-wait=2s"]);
    command
        .args(flags)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // No pile-up: others get through again and again while it tries.
    let mut rounds = 0;
    while child.try_wait().unwrap().is_none() {
        traffic.wait_for(3);
        rounds += 1;
    }
    let ended = Ended::of(&child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(15), "{}: {ended:?}", site.server.name);
    assert!(rounds > 1, "the clients got through {rounds} times only");
    traffic.assert_undisturbed();
    assert_eq!(names_in(&site.repository().join("generations")), [""; 0]);

    let _ = session.run(&format!("KILL {id}"));
    drop(blocking.join());
    site.assert_clean("after giving up");
    assert_eq!(
        evenkeel_cases::program::run(evenkeel.backup(&site, flags)).generation(),
        1
    );
}

#[test]
fn a_global_lock_behind_an_idle_table_lock() {
    for server in [mysql_8_0_15(), mysql_5_7_22()] {
        case(server, &["--lock=ftwrl"], &IDLE_LOCK);
    }
}

#[test]
fn a_global_lock_behind_a_long_query() {
    for server in [mysql_8_0_15(), mysql_5_7_22()] {
        case(
            server,
            &["--lock=ftwrl", "--long-query-threshold=0s"],
            &LONG_QUERY,
        );
    }
}

#[test]
fn stages_behind_an_idle_table_lock() {
    case(mariadb_10_11(), &[], &IDLE_LOCK);
}

/// Kills every connection but `own`, the lock's among them.
fn kill_others(options: &ConnectOptions) {
    let mut session = Session::open(options).unwrap();
    let own = session.id();
    let all = "SELECT id FROM information_schema.processlist WHERE user = 'root'";
    for row in session.rows(all).unwrap() {
        let id: u64 = row.at(0).unwrap().parse().unwrap();
        if id != own {
            // It may have ended by itself.
            let _ = session.run(&format!("KILL {id}"));
        }
    }
}

/// One test for all: fail points belong to the whole process.
#[test]
fn a_lost_lock() {
    let scenario = fail::FailScenario::setup();
    for server in [mariadb_10_11(), mysql_8_0_15()] {
        let site = Site::start(server, LoopFs::xfs(4 * GIB), 200, &[]);
        let options = site.running().connect_options();
        for point in [
            "backup::freeze::ddl_blocked",
            "backup::freeze::taken",
            "backup::freeze::before_release",
        ] {
            let reported = format!("{} at {point}", site.server.name);
            let options = options.clone();
            fail::cfg_callback(point, move || kill_others(&options)).unwrap();
            let error = back_up(&site.request(SnapshotChoice::Reflink)).expect_err(&reported);
            fail::remove(point);
            println!("{reported}: {}", error.chain());
            assert_eq!(
                names_in(&site.repository().join("generations")),
                [""; 0],
                "{reported}"
            );
            site.assert_clean(&reported);
        }
        let done = back_up(&site.request(SnapshotChoice::Reflink)).unwrap();
        assert!(done.report.generation >= 1);
    }
    scenario.teardown();
}
