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

/// Kills until none is left: a thread may be starting one right now.
fn kill_children() {
    let me = getpid().as_raw_nonzero().get();
    loop {
        let children: Vec<Pid> = std::fs::read_dir("/proc")
            .expect("processes")
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid| is_running_child(*pid, me))
            .filter_map(Pid::from_raw)
            .collect();
        if children.is_empty() {
            return;
        }
        for child in children {
            // One that has ended meanwhile was reaped by another thread.
            let _gone = kill_process(child, Signal::KILL);
        }
    }
}

/// Returns whether `pid` has this parent and has not ended. (`/proc/PID/task/*/children` would be
/// shorter, but leaves out some while threads and processes end.)
fn is_running_child(pid: i32, parent: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name before it is in brackets and may hold anything.
    let Some((_, rest)) = stat.rsplit_once(") ") else {
        return false;
    };
    let mut fields = rest.split(' ');
    let state = fields.next();
    !matches!(state, Some("Z" | "X")) && fields.next() == Some(parent.to_string().as_str())
}
