//! When rounds of a replay cannot begin or do not end, does the server run, is it said what its data directory has,
//! and does the next run work?

use evenkeel_cases::played::Played;
use evenkeel_cases::program::{Ended, killed_at, run};
use evenkeel_server::connect::Session;
use evenkeel_testkit::servers::{SERVER_DEADLINE, mariadb_10_11};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Stdio;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");
const VARIABLE: &str = "innodb_flush_log_at_trx_commit";

fn hints(ended: &Ended) -> String {
    ended.answer["hints"].to_string()
}

#[test]
fn what_cannot_begin_changes_nothing() {
    let played = Played::new(mariadb_10_11(), PROGRAM);
    let after = played.state();
    let words = ["--allow-writes", "--rounds=2"];
    let refused = |more: &[&str], code, says: &str, hint: &str| {
        let ended = run(played.replay(&[&words[..], more].concat()));
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.message().contains(says), "{ended:?}");
        assert!(hints(&ended).contains(hint), "{ended:?}");
        assert_eq!(played.state(), after);
    };
    let before = ["--baseline=before", "--execute"];
    refused(
        &[],
        2,
        "would find what the round before",
        "--baseline NAME",
    );
    for baseline in [
        &["--baseline=other"][..],
        &["--baseline=other", "--execute"],
    ] {
        refused(baseline, 14, "there is no baseline 'other'", "before");
    }
    let set = |setting| [&before[..], &[setting]].concat();
    refused(&set("--set=nothing=1"), 1, "nothing", "global variable");
    refused(&set("--set=datadir=x"), 1, "datadir", "--against");
    let unreachable = set("--against=./no.sock");
    refused(
        &unreachable,
        13,
        "no.sock",
        "this is about the server of variant B",
    );
    let other = played.rolled.session();
    refused(&before, 14, "another session is connected", "nobody uses");
    drop(other);
}

#[test]
fn equal_variants_are_refused_when_it_is_known() {
    let played = Played::new(mariadb_10_11(), PROGRAM);
    let same = format!("--set={VARIABLE}=2");
    let ended = played.rounds(&["--rounds=1", &same, "--execute"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let said = hints(&ended);
    assert!(
        said.contains("round 1, variant B; the server runs"),
        "{said}"
    );
    assert!(said.contains("baseline before"), "{said}");
}

/// Interrupted while B is played: the server runs, without B's variable.
#[test]
fn interrupted() {
    let played = Played::new(mariadb_10_11(), PROGRAM);
    let set = format!("--set={VARIABLE}=0");
    let words = ["--allow-writes", "--baseline=before", "--execute", &set];
    // The capture lasts some milliseconds: B has to be played for longer than it takes to ask.
    let play = || {
        let mut command = played.replay(&[&words[..], &["--rounds=1", "--speed=0.004"]].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut child = play();
    let until = Instant::now() + SERVER_DEADLINE;
    // It may be stopped between two questions.
    let options = played.rolled.site.running().connect_options();
    let sql = format!("SELECT @@GLOBAL.{VARIABLE}");
    let value = || Session::open(&options).and_then(|mut session| session.value(&sql));
    let is_b = || value().is_ok_and(|value| value.as_deref() == Some("0"));
    while !is_b() {
        assert!(Instant::now() < until, "B is not played");
        std::thread::sleep(Duration::from_millis(50));
        // Whoever asks is another session, beside which nothing is rolled back.
        if child.try_wait().unwrap().is_some() {
            let ended = Ended::of(&child.wait_with_output().unwrap());
            assert_eq!(ended.code, Some(14), "{ended:?}");
            child = play();
        }
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = Ended::of(&child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(130), "{ended:?}");
    let said = hints(&ended);
    assert!(
        said.contains("round 1, variant B; the server runs"),
        "{said}"
    );
    assert_eq!(played.global(VARIABLE), "2");
    played.rolled.assert_tidy("interrupted");
    works(&played);
}

/// Rounds that are killed: the next command finishes the rollback or gives it up, and rounds work again.
#[test]
fn killed() {
    let played = Played::new(mariadb_10_11(), PROGRAM);
    for point in [
        "baseline::rollback::begun#2",
        "baseline::rollback::stopped#2",
        "baseline::swap::in_place#2",
        "baseline::tidied#2",
    ] {
        let words = ["--allow-writes", "--baseline=before", "--execute"];
        let command = played.replay(&[&words[..], &["--rounds=2", "--speed=max"]].concat());
        let ended = run(killed_at(command, point));
        assert_eq!(ended.signal, Some(9), "{point}: {ended:?}");
        if !played.rolled.answers() {
            let ended = played.rounds(&["--rounds=1", "--execute"]);
            assert_eq!(ended.code, Some(13), "{point}: {ended:?}");
            let said = hints(&ended);
            assert!(
                said.contains("baseline rollback before --datadir"),
                "{said}"
            );
            let again = ["rollback", "before", "--execute"];
            let ended = run(played.rolled.command_stopped(&again));
            // Given up: the server was started again, and that is said.
            assert!(matches!(ended.code, Some(0 | 14)), "{point}: {ended:?}");
        }
        works(&played);
        played.rolled.assert_tidy(point);
    }
}

#[test]
fn a_server_that_does_not_start() {
    let mut played = Played::new(mariadb_10_11(), PROGRAM);
    let stop = format!("kill {}", played.rolled.servers()[0]);
    let words = [
        "--rounds=1",
        "--execute",
        "--start-with=true",
        "--start-deadline=1s",
    ];
    let ended = played.rounds(&[&words[..], &["--stop-with", &stop]].concat());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.message().contains("did not answer"), "{ended:?}");
    let said = hints(&ended);
    assert!(said.contains("the server does not answer yet"), "{said}");
    assert!(said.contains("the server is stopped"), "{said}");
    assert!(
        said.contains("baseline rollback before --datadir /"),
        "{said}"
    );
    played.rolled.start();
    works(&played);
}

#[track_caller]
fn works(played: &Played) {
    let ended = played.rounds(&["--rounds=1", "--execute"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
