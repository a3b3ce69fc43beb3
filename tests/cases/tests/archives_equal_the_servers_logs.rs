//! Is an archive of binary logs, made under traffic and killed at each of its steps, the server's
//! own files byte for byte?

use evenkeel_cases::Site;
use evenkeel_cases::archives::assert_equal;
use evenkeel_cases::failpoints::ARCHIVE;
use evenkeel_cases::points::{archive, archive_command};
use evenkeel_cases::program::{Ended, Evenkeel, killed_at, run};
use evenkeel_repository::Location;
use evenkeel_testkit::effort::{Part, share};
use evenkeel_testkit::servers::{SERVER_DEADLINE, mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{LoopFs, TestServer, until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Child, Stdio};

/// Follows the server until it is told to stop.
fn follow(evenkeel: &Evenkeel, site: &Site) -> Child {
    let mut command = evenkeel.command(&["binlog", "archive", "--no-defaults", "-u", "root"]);
    command
        .arg("-S")
        .arg(site.running().socket())
        .args(["--rotate-bytes=64K", "--rotate-seconds=200ms"])
        .arg(site.repository())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn stop(follower: Child) -> Ended {
    let pid = Pid::from_child(&follower);
    kill_process(pid, Signal::TERM).unwrap();
    Ended::of(&follower.wait_with_output().unwrap())
}

fn case(server: TestServer, more: &[&str]) {
    let mut site = Site::start(server, LoopFs::xfs(2 << 30), 200, more);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut session = site.running().session().unwrap();
    session.run("CREATE TABLE bank.big (t LONGTEXT)").unwrap();
    // Longer than one packet of the protocol.
    session
        .run("SET GLOBAL max_allowed_packet = 64 << 20")
        .unwrap();
    let mut long = site.running().session().unwrap();
    long.run("INSERT INTO bank.big VALUES (REPEAT('x', 17 << 20))")
        .unwrap();
    let traffic = site
        .bank
        .start(&site.running().connect_options(), 2)
        .unwrap();
    let follower = follow(&evenkeel, &site);
    for round in 0..3 {
        traffic.wait_for(50);
        session.run("FLUSH LOGS").unwrap();
        if round == 1 {
            assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
        }
    }
    let followed = stop(follower);
    assert_eq!(followed.code, Some(0), "{followed:?}");
    assert!(
        followed.answer["segments"].as_u64() > Some(2),
        "{followed:?}"
    );
    assert_equal(&site, false);

    for point in ARCHIVE {
        traffic.wait_for(20);
        let killed = run(killed_at(archive_command(&evenkeel, &site, &[]), point));
        assert_eq!(killed.signal, Some(9), "{point}: {killed:?}");
        assert_equal(&site, false);
        session.run("FLUSH LOGS").unwrap();
    }
    let _ = traffic.stop();
    // A server that stopped in order and is there again.
    let last = archive(&evenkeel, &site, &[]);
    assert_eq!(last.code, Some(0), "{last:?}");
    drop((session, long));
    site.running.take().unwrap().stop(SERVER_DEADLINE).unwrap();
    site.running = Some(site.server.run(&site.launch));
    let after = archive(&evenkeel, &site, &[]);
    assert_eq!(after.code, Some(0), "{after:?}");
    assert!(assert_equal(&site, true) >= 8);
    let again = archive(&evenkeel, &site, &[]);
    assert_eq!(again.answer["segments"], 0, "{again:?}");
}

/// One of the three servers in each run.
fn in_turn(server: TestServer, nth: usize) {
    for server in share("archived servers", &[server], Part::new(nth, 3)) {
        case(server, &[]);
    }
}

#[test]
fn of_mariadb_10_11() {
    in_turn(mariadb_10_11(), 0);
}

#[test]
fn of_mariadb_10_11_compressed() {
    case(
        mariadb_10_11(),
        &["--log-bin-compress=ON", "--binlog-checksum=NONE"],
    );
}

#[test]
fn of_mysql_8_0_15() {
    in_turn(mysql_8_0_15(), 1);
}

#[test]
fn of_mysql_5_7_22() {
    in_turn(mysql_5_7_22(), 2);
}

/// A server that is killed and comes back is found again, by the run that was following it.
#[test]
fn a_server_that_crashed_is_found_again() {
    let mut site = Site::start(mariadb_10_11(), LoopFs::xfs(2 << 30), 50, &[]);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let socket = site.fs.join("socket");
    let link = |site: &Site| {
        let _ = fs::remove_file(&socket);
        std::os::unix::fs::symlink(site.running().socket(), &socket).unwrap();
    };
    link(&site);
    let mut command = evenkeel.command(&["binlog", "archive", "--no-defaults", "-u", "root"]);
    command.arg("-S").arg(&socket).arg(site.repository());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let follower = command.spawn().unwrap();
    let archived = |site: &Site, file: &str| {
        let location = Location::from(site.repository());
        let list = evenkeel_backup::archive::list(&location);
        let to = list
            .ok()
            .and_then(|list| list.sources.first()?.timelines.last()?.to.clone());
        to.is_some_and(|to| to.file == file)
    };
    until("the first log is archived", || {
        archived(&site, "binlog.000001")
    });
    site.kill();
    site.running = Some(site.server.run(&site.launch));
    link(&site);
    until("the next log is archived", || {
        archived(&site, "binlog.000002")
    });
    let ended = stop(follower);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.answer["reconnected"].as_u64() > Some(0), "{ended:?}");
    assert_equal(&site, false);
}
