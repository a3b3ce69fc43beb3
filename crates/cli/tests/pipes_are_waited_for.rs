//! Does a signal end the wait for a pipe that nothing writes to, whichever option names it?

use evenkeel_testkit::{Scratch, until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const LOG: &str = "# Time: 2026-11-28T08:00:00.000000Z\n# User@Host: app[app] @ web1 [10.0.0.7]  Id:     7\n\
     # Query_time: 0.010000  Lock_time: 0.000100 Rows_sent: 2  Rows_examined: 9\n\
     SET timestamp=1795853835;\nSELECT 1;\n";

fn room() -> Scratch {
    let room = Scratch::new();
    fs::write(room.path().join("slow.log"), LOG).unwrap();
    let made = Command::new("mkfifo")
        .arg(room.path().join("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    room
}

fn begin(room: &Path, words: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_evenkeel"))
        .args(words)
        .current_dir(room)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Whether the process takes signals itself.
fn is_listening(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    caught.is_some_and(|bits| bits >> 14 & 1 == 1)
}

fn ended(mut child: Child) -> Output {
    let mut is_over = false;
    for _ in 0..1000 {
        is_over = child.try_wait().unwrap().is_some();
        if is_over {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    if !is_over {
        child.kill().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(is_over, "it waited on: {said}");
    output
}

#[test]
fn a_signal_ends_the_wait() {
    let room = room();
    for words in [
        &["digest", "pipe"][..],
        &["digest", "slow.log", "--compare", "pipe"],
        &["digest", "slow.log", "--identity", "pipe"],
        &["capture", "--pcap", "pipe"],
        &["replay", "pipe", "--read-only", "-h", "127.0.0.1"],
        &["replay", "slow.log", "--read-only", "--compare", "pipe"],
        &["import", "pipe"],
        &["url", "stats", "pipe"],
        &["url", "stats", "slow.log", "--table", "pipe"],
        &["bench", "compare", "pipe", "slow.log"],
        &["fleet", "pipe", "--", "generations"],
        &["qps", "--fleet", "pipe"],
        &["generations", "nowhere", "--identity", "pipe"],
        &["verify", "nowhere", "--passphrase-file", "pipe"],
    ] {
        let child = begin(room.path(), words);
        until("it takes signals", || is_listening(child.id()));
        let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let output = ended(child);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(143), "{words:?}: {said}");
    }
}

#[test]
fn who_writes_may_come_later() {
    let room = room();
    let child = begin(room.path(), &["digest", "pipe", "--json"]);
    until("it takes signals", || is_listening(child.id()));
    // Opening waits for who reads.
    fs::write(room.path().join("pipe"), LOG).unwrap();
    let piped: serde_json::Value = serde_json::from_slice(&ended(child).stdout).unwrap();
    let child = begin(room.path(), &["digest", "slow.log", "--json"]);
    let read: serde_json::Value = serde_json::from_slice(&ended(child).stdout).unwrap();
    assert_eq!(piped["total"], read["total"]);
    assert_eq!(piped["classes"], read["classes"]);
}
