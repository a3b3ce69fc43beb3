//! `evenkeel`, built with its fail points: `EVENKEEL_KILL_AT=name` makes it kill itself there with
//! SIGKILL, as a power cut would; with `name#3`, at the third time.

use rustix::process::{Signal, getpid, kill_process};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};

fn main() -> ExitCode {
    let _scenario = fail::FailScenario::setup();
    if let Ok(spec) = std::env::var("EVENKEEL_KILL_AT") {
        let (name, times) = spec.split_once('#').unwrap_or((&spec, "1"));
        let left = AtomicU32::new(times.parse().expect("a number after #"));
        fail::cfg_callback(name, move || {
            if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                kill_process(getpid(), Signal::KILL).expect("kill itself");
            }
        })
        .expect("a fail point");
    }
    evenkeel_cli::run()
}
