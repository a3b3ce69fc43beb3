//! Does `capture` show what a server writes into its logs, as it writes it, and what it remembers?

mod served;

use evenkeel_testkit::servers::{TestServer, mariadb_10_11, mysql_8_0_15};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use served::Served;
use std::fs::{self, File};
use std::process::{Child, Output};

const LOGGED: [&str; 6] = [
    "--slow-query-log=ON",
    "--long-query-time=0",
    "--slow-query-log-file=slow.log",
    "--general-log=ON",
    "--general-log-file=general.log",
    "--log-output=FILE",
];

fn capture(served: &Served, words: &[&str]) -> Output {
    served.command("capture", words).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Starts a capture that writes a document a line into a file.
fn begin(served: &Served, words: &[&str]) -> Child {
    let shown = File::create(served.room().join("shown")).unwrap();
    let errors = File::create(served.room().join("errors")).unwrap();
    let mut command = served.command("capture", &[words, &["--format=json"]].concat());
    command.stdout(shown).stderr(errors).spawn().unwrap()
}

fn is_shown(served: &Served, text: &str) -> bool {
    let shown = fs::read_to_string(served.room().join("shown")).unwrap();
    shown.contains(text)
}

fn wait_for(served: &Served, text: &str) {
    evenkeel_testkit::until(text, || is_shown(served, text));
}

/// An entry of a slow log ends where the next begins; servers write it after they answered.
fn wait_for_entry(served: &Served, text: &str) {
    evenkeel_testkit::until(text, || {
        run(served, "SELECT 'more'");
        is_shown(served, text)
    });
}

fn end(served: &Served, mut child: Child) -> (Vec<Value>, String) {
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::TERM).unwrap();
    let code = child.wait().unwrap().code();
    let read = |name: &str| fs::read_to_string(served.room().join(name)).unwrap();
    let errors = read("errors");
    assert_eq!(code, Some(143), "{errors}");
    let shown = read("shown");
    let lines = shown
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    (lines.collect(), errors)
}

fn run(served: &Served, sql: &str) {
    served.running.session().unwrap().run(sql).unwrap();
}

fn is_followed(server: &TestServer, log: &str, flush: &str) {
    let served = Served::new(server, &LOGGED, "root");
    run(&served, "SELECT 'before'");
    let path = format!("data/{log}");
    let child = begin(&served, &["--log", &path, "--follow"]);
    let has_begun = || {
        fs::read_to_string(served.room().join("errors"))
            .unwrap()
            .contains("following")
    };
    evenkeel_testkit::until("it follows", has_begun);
    run(&served, "SELECT 'first'");
    run(&served, "SELECT 'next'");
    wait_for_entry(&served, "'first'");
    let old = served.room().join(format!("{path}.1"));
    fs::rename(served.room().join(&path), old).unwrap();
    // Still into the old file.
    run(&served, "SELECT 'renamed'");
    run(&served, flush);
    run(&served, "SELECT 'rotated'");
    run(&served, "SELECT 'last'");
    wait_for_entry(&served, "'rotated'");
    let (shown, errors) = end(&served, child);
    let count = |text: &str| {
        let texts = shown.iter().filter_map(|one| one["sql"].as_str());
        texts.filter(|sql| sql.contains(text)).count()
    };
    let counts = ["before", "first", "next", "renamed", "rotated", "last"].map(count);
    assert_eq!(counts, [0, 1, 1, 1, 1, 1], "{shown:?}");
    assert!(errors.contains("nothing is missing"), "{errors}");
}

#[test]
fn a_log_that_is_cut_says_so() {
    let served = Served::new(&mariadb_10_11(), &LOGGED, "root");
    run(&served, "SELECT 'before'");
    let child = begin(&served, &["--log=data/general.log", "--follow", "--for=1h"]);
    let has_begun = || {
        let said = fs::read_to_string(served.room().join("errors")).unwrap();
        said.contains("following")
    };
    evenkeel_testkit::until("it follows", has_begun);
    run(&served, "SELECT 'first'");
    wait_for(&served, "'first'");
    // Longer than before at the next look: nothing but its bytes tells.
    let log = served.room().join("data/general.log");
    let old = fs::read(&log).unwrap();
    let line = "2026-11-29T01:00:00.000000Z\t    99 Query\tSELECT 'fresh'\n";
    fs::write(&log, line.repeat(2 + old.len() / line.len())).unwrap();
    wait_for(&served, "'fresh'");
    evenkeel_testkit::until("another one ends the last", || {
        run(&served, "SELECT 'end'");
        is_shown(&served, "'end'")
    });
    let (shown, errors) = end(&served, child);
    let fresh = |one: &&Value| one["sql"] == "SELECT 'fresh'";
    let count = shown.iter().filter(fresh).count();
    assert_eq!(count, 2 + old.len() / line.len(), "{errors}");
    assert!(errors.contains("the log was cut 1 time"), "{errors}");
}

#[test]
fn a_slow_log_of_mariadb() {
    is_followed(&mariadb_10_11(), "slow.log", "FLUSH SLOW LOGS");
}

#[test]
fn a_general_log_of_mysql() {
    is_followed(&mysql_8_0_15(), "general.log", "FLUSH GENERAL LOGS");
}

#[test]
fn logs_are_as_good_as_their_captures() {
    let served = Served::new(&mariadb_10_11(), &LOGGED, "root");
    run(&served, "CREATE DATABASE shop");
    run(&served, "CREATE TABLE shop.orders (id INT)");
    run(&served, "INSERT INTO shop.orders VALUES (1), (2)");
    run(&served, "SELECT * FROM shop.orders");
    run(&served, "CREATE USER ann IDENTIFIED BY 'Hush'");
    run(&served, "SET PASSWORD FOR ann = PASSWORD('Hush')");
    for log in ["slow.log", "general.log"] {
        let path = format!("data/{log}");
        let shown = capture(&served, &["--log", &path]);
        assert_eq!(shown.status.code(), Some(0), "{}", said(&shown));
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(
            text.contains("CREATE USER ann") && !text.contains("Hush"),
            "{text}"
        );
        assert!(!text.contains("no answer"), "{text}");
        let kept = capture(&served, &["--log", &path, "--directory", log]);
        assert_eq!(kept.status.code(), Some(0), "{}", said(&kept));
        let digest = |of: &str| {
            let words = [of, "--json", "--match=shop.orders"];
            let output = served.command("digest", &words).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", said(&output));
            let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
            answer["classes"].clone()
        };
        assert_eq!(digest(log).as_array().unwrap().len(), 3);
        assert_eq!(digest(&path), digest(log), "{log}");
    }
    // What is not known of a log is not known of its capture.
    for option in ["--min-latency=1ms", "--format=slowlog"] {
        let general = ["--log=data/general.log", option];
        assert_eq!(capture(&served, &general).status.code(), Some(2));
    }
    let words = ["--log=data/general.log", "--directory=slow.log", "--append"];
    let mixed = capture(&served, &words);
    assert_eq!(mixed.status.code(), Some(0), "{}", said(&mixed));
    let words = ["slow.log", "--read-only", "--defaults-file=client.cnf"];
    let replay = served.command("replay", &words).output().unwrap();
    assert_eq!(replay.status.code(), Some(2), "{}", said(&replay));
    let wanted = "captures of slow-log and of general-log";
    assert!(said(&replay).contains(wanted), "{}", said(&replay));
}

#[test]
fn what_cannot_be_meant_is_refused() {
    let served = Served::new(&mariadb_10_11(), &LOGGED, "root");
    let pipe = served.room().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, pipe, rustix::fs::Mode::RWXU).unwrap();
    for (words, wanted) in [
        (&["--log=data/slow.log", "--for=1s"][..], "--follow"),
        (
            &["--log=-", "--follow"],
            "standard input cannot be followed",
        ),
        (&["--log=data/ibdata1"], "neither a slow query log"),
        (&["--log=data/gone.log"], "gone.log"),
        (&["--log=data"], "data"),
        (&["--log=data", "--follow"], "data"),
        (&["--log=pipe", "--follow"], "pipe is no file"),
        (
            &["--server=./socket", "--defaults-file=client.cnf"],
            "performance_schema is off",
        ),
    ] {
        let output = capture(&served, words);
        assert!(!output.status.success(), "{words:?}");
        assert!(
            said(&output).contains(wanted),
            "{words:?}: {}",
            said(&output)
        );
    }
}

#[test]
fn what_a_server_remembers() {
    let on = [
        "--performance-schema=ON",
        "--performance-schema-consumer-events-statements-history-long=ON",
    ];
    let served = Served::new(&mysql_8_0_15(), &on, "root");
    let words = [
        "--server=./socket",
        "--defaults-file=client.cnf",
        "--interval=50ms",
    ];
    let child = begin(&served, &words);
    let mut session = served.running.session().unwrap();
    let mut number = 0;
    evenkeel_testkit::until("it is shown", || {
        number += 1;
        session
            .run(&format!("SELECT 'remembered', {number}"))
            .unwrap();
        is_shown(&served, "remembered")
    });
    session.run("SELECT 'last' FROM gone.tables").unwrap_err();
    wait_for(&served, "'last'");
    let (shown, errors) = end(&served, child);
    let text = |one: &Value| one["sql"].as_str().unwrap_or_default().to_owned();
    let last = shown
        .iter()
        .find(|one| text(one).contains("'last'"))
        .unwrap();
    assert_eq!(
        (last["error"].as_u64(), last["user"].as_str()),
        (Some(1049), Some("root")),
        "{last}"
    );
    assert!(last["latency_us"].is_number(), "{last}");
    assert!(
        errors.contains("in performance_schema; nothing is missing"),
        "{errors}"
    );
}
