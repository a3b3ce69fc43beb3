//! Does a signal sent to cron reach the command, and how the command ended reach the caller?

mod wait;

use std::process::{Command, Stdio};
use wait::{Tied, signal, until};

/// Starts cron on a script that says it is ready, sends the signal, and returns cron's exit code.
fn after_signal(name: &str, trap: &str) -> Option<i32> {
    let dir = tempfile::tempdir().unwrap();
    let ready = dir.path().join("ready");
    let script = format!(
        "{trap}\ntouch {}; while :; do sleep 0.01; done",
        ready.display()
    );
    let mut cron = Tied::start(
        Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args(["cron", "--", "sh", "-c", &script])
            .stdout(Stdio::null()),
    );
    until("the command to be ready", || ready.exists());
    signal(name, cron.id());
    cron.wait().unwrap().code()
}

#[test]
fn the_command_decides_what_a_signal_means() {
    assert_eq!(after_signal("TERM", "trap 'exit 9' TERM"), Some(9));
    assert_eq!(after_signal("INT", "trap 'exit 8' INT"), Some(8));
    assert_eq!(after_signal("USR1", "trap 'exit 7' USR1"), Some(7));
}

#[test]
fn a_command_that_dies_of_it_counts_as_killed() {
    assert_eq!(after_signal("TERM", ""), Some(143));
    assert_eq!(after_signal("HUP", ""), Some(129));
}
