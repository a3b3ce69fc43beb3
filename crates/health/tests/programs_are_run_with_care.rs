//! Is the operator's program run once for each state, with facts, for a limited time, as another user, and again when
//! it failed?

use evenkeel_health::action::{Action, Actor};
use evenkeel_health::board::{Board, Shown};
use evenkeel_health::machine::{HealthState, Remembered, Rules};
use evenkeel_health::probe::Observed;
use evenkeel_health::reason::{Cause, Reason};
use evenkeel_testkit::{Scratch, until};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const RULES: Rules = Rules {
    fall: 1,
    rise: 1,
    min_down: Duration::ZERO,
    hold: Duration::ZERO,
    hold_max: Duration::ZERO,
    flaps_max: 0,
    flap_window: Duration::ZERO,
    stale: Duration::from_secs(3600),
};

/// It does not have to stop.
static NEVER: AtomicBool = AtomicBool::new(false);

fn script(room: &Scratch, body: &str) -> PathBuf {
    let path = room.join("action");
    std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path
}

fn action(program: PathBuf, account: Option<(u32, u32)>) -> Action {
    Action {
        program,
        account,
        timeout: Duration::from_secs(20),
    }
}

fn down() -> Shown {
    let board = Board::new([("db1".to_owned(), Remembered::default())], RULES);
    let reason = Reason::new(Cause::Hung, "$(touch /tmp/x); `id`");
    board.probed(0, Observed::failed(reason, Duration::ZERO));
    board.shown(0)
}

fn up() -> Shown {
    let board = Board::new([("db1".to_owned(), Remembered::default())], RULES);
    board.probed(0, Observed::default());
    board.shown(0)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn it_knows_the_facts_and_is_nobody() {
    let room = Scratch::new();
    let seen = room.join("seen");
    std::fs::write(&seen, "").unwrap();
    std::fs::set_permissions(&seen, PermissionsExt::from_mode(0o666)).unwrap();
    let body = format!("{{ env; id -u; id -G; }} >> {}", seen.display());
    let action = action(script(&room, &body), Some((65534, 65534)));
    action.run(&down(), Some(HealthState::Up), &NEVER).unwrap();
    let seen = read(&seen);
    for line in [
        "EVENKEEL_SERVER=db1",
        "EVENKEEL_STATE=down",
        "EVENKEEL_BEFORE=up",
        "EVENKEEL_CAUSE=hung",
        "EVENKEEL_REASON=hung: $(touch /tmp/x); `id`",
        "65534",
    ] {
        assert!(seen.lines().any(|one| one == line), "{line}: {seen}");
    }
    // Nothing of our own environment, and none of our groups.
    assert!(!seen.contains("CARGO"), "{seen}");
    assert_eq!(
        seen.lines().filter(|line| *line == "65534").count(),
        2,
        "{seen}"
    );
}

#[test]
fn one_that_does_not_end_is_killed_with_all_that_it_started() {
    let room = Scratch::new();
    let pid = room.join("pid");
    let body = format!("sleep 1000 & echo $! > {}; sleep 1000", pid.display());
    let mut action = action(script(&room, &body), None);
    action.timeout = Duration::from_millis(500);
    let why = action.run(&down(), None, &NEVER).unwrap_err();
    assert!(why.contains("was killed"), "{why}");
    let child = read(&pid);
    let status = PathBuf::from(format!("/proc/{}/stat", child.trim()));
    until("its child is gone", || {
        let status = read(&status);
        status.is_empty() || status.contains(") Z ")
    });
}

#[test]
fn it_runs_once_for_a_state_and_again_when_it_failed() {
    let room = Scratch::new();
    let (log, good) = (room.join("log"), room.join("good"));
    let body = format!(
        "echo $EVENKEEL_STATE >> {}; test -e {}",
        log.display(),
        good.display()
    );
    let mut actor = Actor::new(action(script(&room, &body), None), 1);
    let mut failed = None;
    until("it fails", || {
        failed = actor.step(0, down, HealthState::Down);
        failed.is_some()
    });
    assert!(failed.unwrap().contains("exit status: 1"));
    std::fs::write(&good, "").unwrap();
    until("it was run again", || {
        assert_eq!(actor.step(0, down, HealthState::Down), None);
        read(&log).lines().count() == 2
    });
    // What is not proven yet is nothing to act on.
    for state in [HealthState::Down, HealthState::Starting, HealthState::Down] {
        for _ in 0..20 {
            assert_eq!(actor.step(0, down, state), None);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    assert_eq!(read(&log), "down\ndown\n");
}

#[test]
fn what_failed_may_have_been_done_and_is_undone() {
    let room = Scratch::new();
    let log = room.join("log");
    // What takes an address away, and fails behind that.
    let body = format!(
        "echo $EVENKEEL_BEFORE-$EVENKEEL_STATE >> {}; test $EVENKEEL_STATE = up",
        log.display()
    );
    let mut actor = Actor::new(action(script(&room, &body), None), 1);
    until("it ran for up", || {
        assert_eq!(actor.step(0, up, HealthState::Up), None);
        read(&log) == "-up\n"
    });
    until("it fails for down", || {
        actor.step(0, down, HealthState::Down).is_some()
    });
    // At once: what failed is another state's.
    let mut rounds = 0;
    until("it ran for up again", || {
        rounds += 1;
        assert_eq!(actor.step(0, up, HealthState::Up), None);
        read(&log) == "-up\nup-down\nup-up\n"
    });
    assert!(rounds < 800, "it waited for its turn to try down again");
}

#[test]
fn what_runs_in_the_end_is_not_left_behind() {
    let room = Scratch::new();
    let (log, done) = (room.join("log"), room.join("done"));
    let body = format!(
        "test $EVENKEEL_SERVER = db1 && echo $$ > {} || exit 0; sleep 1000; touch {}",
        log.display(),
        done.display()
    );
    let mut actor = Actor::new(action(script(&room, &body), None), 1);
    until("it runs", || {
        assert_eq!(actor.step(0, down, HealthState::Down), None);
        !read(&log).is_empty()
    });
    let failed = actor.end();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert!(failed[0].1.contains("the prober ends"), "{failed:?}");
    let status = read(&PathBuf::from(format!("/proc/{}/stat", read(&log).trim())));
    assert!(status.is_empty() || status.contains(") Z "), "{status}");
    assert!(!done.exists());
}
