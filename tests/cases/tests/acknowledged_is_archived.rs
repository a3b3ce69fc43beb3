//! Is a transaction in the archive when its client was told that it is committed, whatever is killed
//! then?

use evenkeel_backup::archive::extract;
use evenkeel_cases::Site;
use evenkeel_cases::points::{archive_command, make_table};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_repository::Location;
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_9};
use evenkeel_testkit::traffic::Random;
use evenkeel_testkit::{LoopFs, TestServer, until};
use std::collections::HashSet;
use std::fs;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

fn evenkeel() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

/// A server whose commits wait for ten minutes, and whose log has statements as they were sent.
fn start(server: TestServer) -> Site {
    let mysql = server.name.starts_with("MySQL");
    let site = Site::start(
        server,
        LoopFs::xfs(2 << 30),
        20,
        &["--binlog-format=STATEMENT"],
    );
    let mut session = site.running().session().unwrap();
    make_table(&mut session);
    let refused = run(archive_command(&evenkeel(), &site, &["--semi-sync"]));
    assert_eq!(refused.code, Some(14), "{refused:?}");
    assert!(refused.answer["hints"][0].is_string(), "{refused:?}");
    let which = match mysql {
        true => "source",
        false => "master",
    };
    if mysql {
        session
            .run("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
            .unwrap();
    }
    for setting in [
        "timeout = 600000",
        "wait_point = 'AFTER_SYNC'",
        "enabled = ON",
    ] {
        session
            .run(&format!("SET GLOBAL rpl_semi_sync_{which}_{setting}"))
            .unwrap();
    }
    site
}

fn follow(site: &Site) -> Child {
    let mut command = evenkeel().command(&["binlog", "archive", "--no-defaults", "-u", "root"]);
    command.arg("-S").arg(site.running().socket());
    // Only what is asked for is stored.
    command.args(["--semi-sync", "--rotate-seconds=1h"]);
    command.arg(site.repository());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Adds rows one after the other until the server is gone; `reported` is the last that was acknowledged.
fn client(options: &ConnectOptions, first: u32, reported: &AtomicU32) {
    let Ok(mut session) = Session::open(options) else {
        return;
    };
    for id in (first..).step_by(10) {
        if session
            .run(&format!("INSERT INTO points.n VALUES ({id})"))
            .is_err()
        {
            return;
        }
        reported.store(id, Ordering::SeqCst);
    }
}

/// The rows whose statements are in the archive.
fn archived(site: &Site) -> HashSet<u32> {
    let into = site.fs.join("extracted");
    let names = extract(&Location::from(site.repository()), None, None, &into).unwrap();
    let mut rows = HashSet::new();
    for name in names {
        let bytes = fs::read(into.join(name)).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        for statement in text.split("INSERT INTO points.n VALUES (").skip(1) {
            rows.insert(statement.split(')').next().unwrap().parse().unwrap());
        }
    }
    rows
}

fn case(server: TestServer) {
    let seed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(1, |now| now.as_nanos() as u64);
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut site = start(server);
    let options = site.running().connect_options();

    // Without the archiver, a commit waits: the server itself says so.
    let waiting = std::thread::spawn({
        let options = options.clone();
        move || {
            let mut session = Session::open(&options).unwrap();
            session.run("INSERT INTO points.n VALUES (1)").unwrap();
        }
    });
    let mut session = site.running().session().unwrap();
    until("the commit waits", || {
        let states = "SELECT COUNT(*) FROM information_schema.processlist \
                      WHERE state LIKE 'Waiting for semi-sync%'";
        session.value(states).unwrap().as_deref() == Some("1")
    });
    assert!(!waiting.is_finished());
    let mut follower = follow(&site);
    waiting.join().unwrap();

    let reported: Vec<Arc<AtomicU32>> = (2..5).map(|_| Arc::default()).collect();
    let clients: Vec<_> = (2..5)
        .zip(&reported)
        .map(|(first, reported)| {
            let (options, reported) = (options.clone(), Arc::clone(reported));
            std::thread::spawn(move || client(&options, first, &reported))
        })
        .collect();
    let enough = 100 + random.below(400);
    until("some rows were acknowledged", || {
        reported
            .iter()
            .any(|reported| reported.load(Ordering::SeqCst) > enough)
    });
    // At any moment: the server first or the archiver.
    if random.below(2) == 0 {
        follower.kill().unwrap();
        site.kill();
    } else {
        site.kill();
        follower.kill().unwrap();
    }
    follower.wait().unwrap();
    clients.into_iter().for_each(|one| one.join().unwrap());

    let rows = archived(&site);
    assert!(rows.contains(&1));
    for (first, reported) in (2..5).zip(&reported) {
        let last = reported.load(Ordering::SeqCst);
        assert!(last > 0, "client {first} did nothing");
        for id in (first..=last).step_by(10) {
            assert!(
                rows.contains(&id),
                "{id} was acknowledged, and is not archived"
            );
        }
    }
}

#[test]
fn on_mariadb_10_11() {
    case(mariadb_10_11());
}

#[test]
fn on_mysql_9() {
    case(mysql_9());
}
