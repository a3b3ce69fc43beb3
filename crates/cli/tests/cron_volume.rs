//! Is cron's memory bounded whatever the command writes?

mod wait;

use std::fs;
use std::process::{Command, Stdio};
use wait::{Tied, until};

fn peak_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_line_of_200_mb_passes_through_a_small_process() {
    let dir = tempfile::tempdir().unwrap();
    let (log, mark) = (dir.path().join("log"), dir.path().join("mark"));
    let script = format!(
        "head -c 200000000 /dev/zero; touch {}; read line || true",
        mark.display()
    );
    let mut cron = Tied::start(
        Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args(["cron", "--timestamps", "--log"])
            .arg(&log)
            .args(["--", "sh", "-c", &script])
            .stdin(Stdio::piped()),
    );
    until("the command to have written", || mark.exists());
    let peak = peak_kib(cron.id());
    drop(cron.stdin.take());
    assert_eq!(cron.wait().unwrap().code(), Some(0));
    assert!(fs::metadata(&log).unwrap().len() > 200_000_000);
    assert!(peak < 32 << 10, "the process grew to {peak} KiB");
}
