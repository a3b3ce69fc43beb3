//! The end of a task that takes hours: when a signal says so, or when its time is over.

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Whether somebody said to stop.
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// From now on the signals that end a program are only noted, so that it can clean up.
    pub(crate) fn on_signals() -> Result<Self> {
        let reported = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&reported))?;
        }
        Ok(Self(reported))
    }

    pub(crate) fn is_reported(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits for a command's end; when told to stop, hands that on, so that tests clean up.
    pub(crate) fn wait(&self, mut command: Command) -> Result<Option<i32>> {
        let mut child = command.spawn().context("failed to run cargo")?;
        let mut handed_on = false;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status.code());
            }
            if self.is_reported() && !handed_on {
                handed_on = true;
                if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
                    let _ = kill_process(pid, Signal::TERM);
                }
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// After which time nothing more is begun.
pub(crate) struct Limit(Option<Instant>);

impl Limit {
    /// Counts from now; without minutes it never comes.
    pub(crate) fn after(minutes: Option<u64>) -> Self {
        let length = minutes.map(|minutes| Duration::from_secs(minutes.saturating_mul(60)));
        Self(length.and_then(|length| Instant::now().checked_add(length)))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_limit_ends() {
        assert!(Limit::after(Some(0)).is_over());
        assert!(!Limit::after(Some(60)).is_over());
        assert!(!Limit::after(Some(u64::MAX)).is_over());
        assert!(!Limit::after(None).is_over());
    }

    #[test]
    fn who_was_told_to_stop_does_not_wait_for_the_end() {
        let stop = Stop(Arc::new(AtomicBool::new(true)));
        let mut command = Command::new("sleep");
        command.arg("600");
        // Ended by the signal: there is no exit code.
        assert_eq!(stop.wait(command).unwrap(), None);
    }

    #[test]
    fn the_exit_code_is_the_commands() {
        let stop = Stop(Arc::default());
        let mut command = Command::new("sh");
        command.args(["-c", "exit 7"]);
        assert_eq!(stop.wait(command).unwrap(), Some(7));
    }
}
