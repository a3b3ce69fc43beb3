//! `evenkeel`, built with its fail points: `EVENKEEL_KILL_AT=name` makes it kill itself there with
//! SIGKILL, as a power cut would; with `name#3`, at the third time. With `EVENKEEL_KILL_ALL=1`, the
//! processes that it started are killed first, as when a whole control group is.

use rustix::process::{Pid, Signal, getpid, kill_process};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};

fn main() -> ExitCode {
    let _scenario = fail::FailScenario::setup();
    if let Ok(spec) = std::env::var("EVENKEEL_KILL_AT") {
        let (name, times) = spec.split_once('#').unwrap_or((&spec, "1"));
        let left = AtomicU32::new(times.parse().expect("a number after #"));
        fail::cfg_callback(name, move || {
            if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                if std::env::var_os("EVENKEEL_KILL_ALL").is_some() {
                    kill_children();
                }
                kill_process(getpid(), Signal::KILL).expect("kill itself");
            }
        })
        .expect("a fail point");
    }
    evenkeel_cli::run()
}

fn kill_children() {
    for thread in std::fs::read_dir("/proc/self/task").expect("threads") {
        let children = thread.expect("a thread").path().join("children");
        // A thread that has ended meanwhile has none.
        let children = std::fs::read_to_string(children).unwrap_or_default();
        for child in children.split_whitespace() {
            let child = Pid::from_raw(child.parse().expect("a number")).expect("a process");
            kill_process(child, Signal::KILL).expect("kill a child");
        }
    }
}
