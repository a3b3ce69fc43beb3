//! What does cron log, and what does it print?

use std::fs;
use std::process::{Command, Output};

fn cron(options: &[&str], script: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .arg("cron")
        .args(options)
        .args(["--", "sh", "-c", script])
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_command_that_succeeds_is_silent() {
    let output = cron(&[], "echo out; echo err >&2");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("", ""));
}

#[test]
fn a_command_that_fails_is_printed_in_order_and_its_code_passed_on() {
    let output = cron(&[], "echo one; echo two >&2; echo three; exit 37");
    assert_eq!(output.status.code(), Some(37));
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    assert!(
        lines[0].contains(" starting: sh -c 'echo one;"),
        "{}",
        lines[0]
    );
    assert_eq!(
        lines[1..],
        ["one", "two", "three", "command exited with code:37"]
    );
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn being_killed_is_a_failure() {
    let output = cron(&[], "kill -9 $$");
    assert_eq!(output.status.code(), Some(137));
    assert!(text(&output.stdout).ends_with("command died with signal:9\n"));
}

#[test]
fn print_always_prints_success_too() {
    let output = cron(&["--print-always"], "echo out");
    assert!(text(&output.stdout).ends_with("out\ncommand exited with code:0\n"));
}

#[test]
fn the_log_grows_and_only_this_run_is_printed() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let path = log.to_str().unwrap();
    assert_eq!(cron(&["--log", path], "echo first").status.code(), Some(0));
    let second = cron(&["--log", path, "--timestamps"], "printf 'second'; exit 1");
    assert!(!text(&second.stdout).contains("first"));
    let whole = fs::read_to_string(&log).unwrap();
    assert!(whole.ends_with(text(&second.stdout)));
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!(
        (lines[0], lines[4]),
        ("-".repeat(78).as_str(), "-".repeat(78).as_str())
    );
    assert_eq!(lines[2], "first");
    // [2026-11-21 03:00:01+09:00] second
    assert!(
        lines[6].starts_with("[20") && lines[6].ends_with("] second"),
        "{}",
        lines[6]
    );
    assert!(
        lines[7].ends_with("] command exited with code:1"),
        "{}",
        lines[7]
    );
}

#[test]
fn any_bytes_arrive_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let script = r"printf '\000\377\n\376'; exit 1";
    let output = cron(&["--log", log.to_str().unwrap()], script);
    let bytes = b"\0\xff\n\xfe\ncommand exited with code:1\n";
    assert!(output.stdout.ends_with(bytes));
    assert!(fs::read(&log).unwrap().ends_with(bytes));
}

#[test]
fn a_command_that_cannot_start_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let output = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(["cron", "--log"])
        .arg(&log)
        .args(["--", "/nonexistent/program"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.starts_with("evenkeel: failed to start '/nonexistent/program': "),
        "{said}"
    );
    assert!(
        fs::read_to_string(&log)
            .unwrap()
            .contains("command failed to start")
    );
}

#[test]
fn a_log_that_cannot_be_written_fails_the_run_but_not_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("mark");
    let script = format!("echo out; touch {}", mark.display());
    let output = cron(&["--log", "/dev/full"], &script);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("the log of this run is not complete"));
    assert!(mark.exists());
}
