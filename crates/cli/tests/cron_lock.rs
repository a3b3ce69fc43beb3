//! Does cron's lock file let one run in at a time, and live until its last holder has ended?

mod wait;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use wait::{Tied, signal, until};

fn cron(lock: &Path, options: &[&str], script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command
        .args(["cron", "--lock"])
        .arg(lock)
        .args(options)
        .args(["--", "sh", "-c", script]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn code(command: &mut Command) -> Option<i32> {
    command.status().unwrap().code()
}

/// Starts a run that holds the lock until its standard input is closed.
fn holder(lock: &Path, mark: &Path) -> Tied {
    let script = format!("touch {}; read line", mark.display());
    let child = Tied::start(cron(lock, &[], &script).stdin(Stdio::piped()));
    until("the holder to start", || mark.exists());
    child
}

#[test]
fn a_held_lock_is_busy_and_a_free_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let (lock, ran) = (dir.path().join("lock"), dir.path().join("ran"));
    let script = format!("touch {}", ran.display());
    let mut first = holder(&lock, &dir.path().join("mark"));
    assert_eq!(code(&mut cron(&lock, &[], &script)), Some(11));
    assert_eq!(code(&mut cron(&lock, &["--wait=50ms"], &script)), Some(11));
    assert_eq!(code(&mut cron(&lock, &["--busy-ok"], &script)), Some(0));
    assert!(!ran.exists());
    drop(first.stdin.take());
    first.wait().unwrap();
    assert_eq!(code(&mut cron(&lock, &[], &script)), Some(0));
    assert!(ran.exists());
}

#[test]
fn a_run_that_waits_gets_its_turn() {
    let dir = tempfile::tempdir().unwrap();
    let lock = dir.path().join("lock");
    let mut first = holder(&lock, &dir.path().join("mark"));
    let mut second = Tied::start(&mut cron(&lock, &["--wait"], "true"));
    drop(first.stdin.take());
    assert_eq!(second.wait().unwrap().code(), Some(0));
}

#[test]
fn a_run_that_waits_can_be_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let (lock, ran) = (dir.path().join("lock"), dir.path().join("ran"));
    let _first = holder(&lock, &dir.path().join("mark"));
    let script = format!("touch {}", ran.display());
    let mut second = Tied::start(&mut cron(&lock, &["--wait"], &script));
    // It waits once it has the lock file open; signals are received well before that.
    let fds = format!("/proc/{}/fd", second.id());
    until("the second run to wait", || {
        fs::read_dir(&fds).is_ok_and(|fds| {
            fds.flatten()
                .any(|fd| fs::read_link(fd.path()).is_ok_and(|to| to == lock))
        })
    });
    signal("TERM", second.id());
    assert_eq!(second.wait().unwrap().code(), Some(143));
    assert!(!ran.exists());
}

#[test]
fn what_the_command_leaves_behind_still_holds_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    let (lock, pid) = (dir.path().join("lock"), dir.path().join("pid"));
    let script = format!("sleep 600 >/dev/null 2>&1 & echo $! > {}", pid.display());
    assert_eq!(code(&mut cron(&lock, &[], &script)), Some(0));
    let left: u32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    let busy = code(&mut cron(&lock, &[], "true"));
    signal("KILL", left);
    assert_eq!(busy, Some(11));
    until("the lock to be free", || {
        code(&mut cron(&lock, &[], "true")) == Some(0)
    });
}

#[test]
fn many_runs_take_turns() {
    let dir = tempfile::tempdir().unwrap();
    let (lock, count) = (dir.path().join("lock"), dir.path().join("count"));
    fs::write(&count, "0\n").unwrap();
    // Read, linger, write: runs that overlap lose an increment.
    let script = format!(
        "read n < {0}; sleep 0.02; echo $((n + 1)) > {0}",
        count.display()
    );
    let runs: Vec<Tied> = (0..8)
        .map(|_| Tied::start(&mut cron(&lock, &["--wait=50s"], &script)))
        .collect();
    for mut run in runs {
        assert_eq!(run.wait().unwrap().code(), Some(0));
    }
    assert_eq!(fs::read_to_string(&count).unwrap(), "8\n");
}

#[test]
fn a_lock_file_that_cannot_be_made_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(
        code(&mut cron(&dir.path().join("no/lock"), &[], "true")),
        Some(1)
    );
}
