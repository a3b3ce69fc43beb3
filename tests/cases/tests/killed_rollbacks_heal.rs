//! Is one of the two states whole whenever a save, a rollback or a drop is killed, does no server start
//! on half of one, and does the next command clean up everything?

use evenkeel_cases::Site;
use evenkeel_cases::baselines::{Rolled, make_subvolume};
use evenkeel_cases::failpoints::{
    BASELINE_DROP, BASELINE_SAVE, ROLLBACK_AFTER, ROLLBACK_BEFORE, ROLLBACK_BESIDE,
    ROLLBACK_INSIDE, ROLLBACK_PATCH,
};
use evenkeel_cases::program::{Ended, killed_at, run};
use evenkeel_testkit::effort::{Part, share};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{BankState, LoopFs, TestServer};
use std::fs;

const GIB: u64 = 1 << 30;

fn of(site: Site) -> Rolled {
    Rolled::new(site, env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

fn start(server: TestServer, fs: LoopFs) -> Rolled {
    if fs.kind() == "btrfs" {
        make_subvolume(&fs.join("data"));
    }
    of(Site::start(server, fs, 200, &[]))
}

/// On a filesystem that is the data directory.
fn mounted(server: TestServer, fs: LoopFs) -> Rolled {
    let launch = server.prepare(fs.path(), &evenkeel_cases::SMALL);
    of(Site::of(server, fs, launch, 200))
}

#[track_caller]
fn killed(command: std::process::Command, point: &str) {
    let ended = run(killed_at(command, point));
    assert_eq!(
        ended.signal,
        Some(9),
        "{point} was never reached: {ended:?}"
    );
}

/// Says what the next command does: the same one again, or a look at a server that runs.
fn next(rolled: &Rolled) -> Ended {
    match rolled.answers() {
        true => run(rolled.command(&["save", "probe", "--replace"])),
        false => run(rolled.command_stopped(&["rollback", "one", "--execute"])),
    }
}

/// Kills a rollback at each point, and has the next command clean it up.
fn at_each(
    rolled: &Rolled,
    before: &[&str],
    after: &[&str],
    part: Part,
    guarded: fn(&str) -> bool,
) {
    let saved = rolled.bank();
    for point in share("kills of a rollback", &[before, after].concat(), part) {
        println!("killed at {point}");
        rolled.work(5);
        let later = rolled.bank();
        killed(rolled.command(&["rollback", "one", "--execute"]), point);
        if guarded(point) {
            rolled.assert_refused(point);
        }
        let was_running = rolled.answers();
        let again = next(rolled);
        // Given up: what was asked for then starts the server again, and says so.
        let given_up = before.contains(&point) && !was_running;
        assert_eq!(
            again.code,
            Some(if given_up { 14 } else { 0 }),
            "{point}: {again:?}"
        );
        let expected = if before.contains(&point) {
            &later
        } else {
            &saved
        };
        assert_is(rolled, expected, point);
        rolled.assert_tidy(point);
        rolled.done(&["rollback", "one", "--execute"]);
        assert_is(rolled, &saved, point);
    }
}

#[track_caller]
fn assert_is(rolled: &Rolled, expected: &BankState, point: &str) {
    assert_eq!(&rolled.bank(), expected, "{point}");
}

fn beside(server: TestServer, fs: LoopFs, part: Part) {
    let rolled = start(server, fs);
    rolled.work(10);
    rolled.done(&["save", "one"]);
    let after = [&ROLLBACK_BESIDE[..], &ROLLBACK_AFTER].concat();
    at_each(&rolled, &ROLLBACK_BEFORE, &after, part, |_| false);
}

fn inside(server: TestServer, part: Part) {
    let rolled = mounted(server, LoopFs::xfs(2 * GIB));
    rolled.work(10);
    rolled.done(&["save", "one"]);
    let after = [&ROLLBACK_INSIDE[..], &ROLLBACK_AFTER].concat();
    at_each(&rolled, &ROLLBACK_BEFORE, &after, part, |point| {
        point.starts_with("baseline::inside")
    });
}

fn patched(server: TestServer, part: Part) {
    let mut rolled = start(server, LoopFs::ext4(GIB));
    rolled.work(10);
    rolled.stop();
    rolled.done_stopped(&["save", "one"]);
    rolled.start();
    let before = ["baseline::rollback::begun", "baseline::rollback::stopped"];
    let saved = rolled.bank();
    let all = [&before[..], &ROLLBACK_PATCH, &ROLLBACK_AFTER].concat();
    for point in share("kills of a rollback", &all, part) {
        println!("killed at {point}");
        rolled.work(5);
        let later = rolled.bank();
        killed(rolled.command(&["rollback", "one", "--execute"]), point);
        if point.starts_with("baseline::patch") {
            rolled.assert_refused(point);
        }
        let again = match rolled.answers() {
            true => run(rolled.command(&["drop", "one"])),
            false => run(rolled.command_stopped(&["rollback", "one", "--execute"])),
        };
        assert!(matches!(again.code, Some(0 | 14)), "{point}: {again:?}");
        let expected = if before.contains(&point) {
            &later
        } else {
            &saved
        };
        assert_is(&rolled, expected, point);
        rolled.done(&["rollback", "one", "--execute"]);
        assert_is(&rolled, &saved, point);
        rolled.assert_tidy(point);
    }
}

// Four servers share the points of a rollback beside the data directory; two each share the others.

#[test]
fn of_mariadb_on_xfs() {
    beside(mariadb_10_11(), LoopFs::xfs(2 * GIB), Part::new(0, 4));
}

#[test]
fn of_mariadb_on_btrfs() {
    beside(mariadb_10_11(), LoopFs::btrfs(2 * GIB), Part::new(1, 4));
}

#[test]
fn of_mysql57_on_xfs() {
    beside(mysql_5_7_22(), LoopFs::xfs(2 * GIB), Part::new(2, 4));
}

#[test]
fn of_mysql8_on_btrfs() {
    beside(mysql_8_0_15(), LoopFs::btrfs(2 * GIB), Part::new(3, 4));
}

#[test]
fn of_mariadb_in_a_mount_point() {
    inside(mariadb_10_11(), Part::new(0, 2));
}

#[test]
fn of_mysql8_in_a_mount_point() {
    inside(mysql_8_0_15(), Part::new(1, 2));
}

#[test]
fn of_mariadb_where_nothing_clones() {
    patched(mariadb_10_11(), Part::new(0, 2));
}

#[test]
fn of_mysql57_where_nothing_clones() {
    patched(mysql_5_7_22(), Part::new(1, 2));
}

#[test]
fn saves_and_drops() {
    let rolled = start(mariadb_10_11(), LoopFs::btrfs(2 * GIB));
    rolled.done(&["save", "one"]);
    for point in BASELINE_SAVE {
        let state = rolled.bank();
        killed(rolled.command(&["save", "one", "--replace"]), point);
        rolled.done(&["save", "two", "--replace"]);
        rolled.assert_tidy(point);
        rolled.done(&["rollback", "one", "--execute"]);
        assert_is(&rolled, &state, point);
        rolled.work(5);
        rolled.done(&["save", "one", "--replace"]);
    }
    for point in BASELINE_DROP {
        killed(rolled.command(&["drop", "one", "--execute"]), point);
        rolled.done(&["drop", "two", "--execute"]);
        rolled.assert_tidy(point);
        assert_eq!(rolled.list_stopped()["baselines"], serde_json::json!([]));
    }
}

#[test]
fn a_full_disk_leaves_the_server_as_it_was() {
    let mut rolled = start(mariadb_10_11(), LoopFs::ext4(400 << 20));
    rolled.work(10);
    let state = rolled.bank();
    rolled.stop();
    let fill = |bytes: usize| fs::write(rolled.site.fs.join("fill"), vec![1; bytes]);
    let room = rustix::fs::statvfs(rolled.site.fs.path()).unwrap();
    let free = room.f_bavail * room.f_frsize;
    fill(free as usize - (4 << 20)).unwrap();
    let full = run(rolled.command_stopped(&["save"]));
    assert_eq!(full.code, Some(1), "{full:?}");
    rolled.assert_tidy("a save without room");
    assert_eq!(rolled.list_stopped()["baselines"], serde_json::json!([]));
    fs::remove_file(rolled.site.fs.join("fill")).unwrap();
    rolled.start();
    assert_is(&rolled, &state, "a save without room");
}
