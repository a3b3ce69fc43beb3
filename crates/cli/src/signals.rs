//! Signals: a request to stop, or something to hand on to the command we run.
//!
//! One thread receives them all. While a command runs under us (`lock`, `cron`) it decides what a
//! signal means, so signals are handed on and nothing else happens. Otherwise the first SIGINT,
//! SIGTERM or SIGHUP asks every loop to stop and clean up, and a second one ends the process on the
//! spot.

use evenkeel_op::Cancel;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::low_level::siginfo::Cause;
use std::sync::{Arc, Mutex, MutexGuard};

/// What arrives here.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    cancel: Cancel,
    child: Arc<Mutex<Option<Pid>>>,
    handle: Option<signal_hook::iterator::Handle>,
}

/// Starts receiving signals. Those that our caller ignores (`nohup`) stay ignored.
#[must_use]
pub fn watch() -> Signals {
    let wanted = [SIGINT, SIGTERM, SIGHUP]
        .into_iter()
        .filter(|signal| !is_ignored(*signal));
    let mut signals = Signals::default();
    let Ok(mut arriving) = SignalsInfo::<WithOrigin>::new(wanted) else {
        // Without a receiver the system's defaults apply: SIGINT and SIGTERM end us. The server
        // and the filesystem stay as clean as after any crash.
        return signals;
    };
    signals.handle = Some(arriving.handle());
    let receiver = signals.clone();
    std::thread::spawn(move || {
        for origin in &mut arriving {
            receiver.receive(origin.signal, origin.cause == Cause::Kernel);
        }
    });
    signals
}

impl Signals {
    /// Returns the request to stop, for whoever runs loops.
    #[must_use]
    pub fn cancel(&self) -> &Cancel {
        &self.cancel
    }

    /// Hands signals on to a child until the guard is dropped. The child must not be reaped before.
    pub fn hand_on(&self, child: Pid) -> HandOn<'_> {
        if let Some(handle) = &self.handle {
            for signal in [SIGQUIT, SIGUSR1, SIGUSR2] {
                if !is_ignored(signal) {
                    // A signal that cannot be received keeps its default meaning.
                    let _ = handle.add_signal(signal);
                }
            }
        }
        *self.child() = Some(child);
        // One that came between the start of the child and now is handed on late, not lost.
        if let Err(stopped) = self.cancel.check() {
            let terminated = stopped.kind() == evenkeel_op::ErrorKind::Terminated;
            send(child, if terminated { SIGTERM } else { SIGINT });
        }
        HandOn { signals: self }
    }

    fn child(&self) -> MutexGuard<'_, Option<Pid>> {
        self.child.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn receive(&self, signal: i32, from_terminal: bool) {
        let child = self.child();
        match *child {
            // The terminal sends Ctrl-C to the whole foreground group: the child has it already.
            Some(_) if from_terminal => {}
            Some(child) => send(child, signal),
            None if self.cancel.is_cancelled() => std::process::exit(128 + signal),
            None => self
                .cancel
                .cancel(if signal == SIGINT { SIGINT } else { SIGTERM }),
        }
    }
}

/// While this lives, signals go to the child.
#[derive(Debug)]
pub struct HandOn<'a> {
    signals: &'a Signals,
}

impl Drop for HandOn<'_> {
    fn drop(&mut self) {
        *self.signals.child() = None;
    }
}

fn send(child: Pid, signal: i32) {
    if let Some(signal) = Signal::from_named_raw(signal) {
        // A child that has just ended cannot receive; nothing is lost by that.
        let _ = kill_process(child, signal);
    }
}

/// Returns whether whoever started us wants this signal ignored.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_child_a_signal_asks_to_stop() {
        let signals = Signals::default();
        signals.receive(SIGHUP, false);
        let kind = signals.cancel().check().unwrap_err().kind();
        assert_eq!(kind, evenkeel_op::ErrorKind::Terminated);
    }

    #[test]
    fn with_a_child_it_does_not() {
        let signals = Signals::default();
        let guard = signals.hand_on(rustix::process::getpid());
        signals.receive(SIGINT, true);
        assert!(!signals.cancel().is_cancelled());
        drop(guard);
        signals.receive(SIGINT, true);
        assert!(signals.cancel().is_cancelled());
    }

    #[test]
    fn ignored_signals_are_recognised() {
        // Rust's runtime ignores SIGPIPE (13) in every program; nobody ignores SIGWINCH (28).
        assert!(is_ignored(13));
        assert!(!is_ignored(28));
    }
}
