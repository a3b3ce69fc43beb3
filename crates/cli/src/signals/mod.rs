//! Signals: a request to stop, or something to hand on to the command we run.
//!
//! One thread receives them all. While a command runs under us (`lock`, `cron`) it decides what a
//! signal means, so signals are handed on and nothing else happens. Otherwise the first SIGINT,
//! SIGTERM or SIGHUP asks every loop to stop and clean up, and a second one ends the process on the
//! spot; SIGUSR1 asks how far the run is.

mod asked;

use asked::Asked;
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
    meaning: Arc<Mutex<Meaning>>,
    asked: Asked,
    handle: Option<signal_hook::iterator::Handle>,
}

/// What a signal means just now.
#[derive(Debug, Default)]
enum Meaning {
    /// A request to stop.
    #[default]
    Stop,
    /// Something for a command that is about to start.
    Keep(Vec<i32>),
    /// Something for this one.
    HandOn(Pid),
    /// A request to stop for us and for this one.
    Shared(Pid),
}

/// Starts receiving signals. Those that our caller ignores (`nohup`) stay ignored.
#[must_use]
pub fn watch() -> Signals {
    let wanted = [SIGINT, SIGTERM, SIGHUP, SIGUSR1]
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

    /// Says what SIGUSR1 does from now on: it asks how far the run is.
    pub fn when_asked(&self, tell: impl Fn() + Send + Sync + 'static) {
        self.asked.answer_by(tell);
    }

    /// Has signals stop our own work and a command that is about to start beside it, until the guard is dropped: see
    /// [`HandOn::to`]. What asked us to stop before does not stop the command: it may be run to tell of that.
    pub fn share(&self) -> HandOn<'_> {
        *self.meaning() = Meaning::Keep(Vec::new());
        HandOn {
            signals: self,
            shares: true,
        }
    }

    /// Keeps signals for a command that is about to start, until the guard is dropped: see [`HandOn::to`].
    pub fn hand_on(&self) -> HandOn<'_> {
        *self.meaning() = Meaning::Keep(Vec::new());
        if let Some(handle) = &self.handle {
            for signal in [SIGQUIT, SIGUSR2] {
                if !is_ignored(signal) {
                    // A signal that cannot be received keeps its default meaning.
                    let _ = handle.add_signal(signal);
                }
            }
        }
        HandOn {
            signals: self,
            shares: false,
        }
    }

    fn meaning(&self) -> MutexGuard<'_, Meaning> {
        self.meaning.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn receive(&self, signal: i32, from_terminal: bool) {
        match &mut *self.meaning() {
            // The terminal sends Ctrl-C to the whole foreground group: the child has it already.
            Meaning::HandOn(_) if from_terminal => {}
            Meaning::HandOn(child) => send(*child, signal),
            Meaning::Shared(child) => self.stop_both(*child, signal, from_terminal),
            Meaning::Keep(early) => early.push(signal),
            Meaning::Stop if signal == SIGUSR1 => self.asked.answer(),
            Meaning::Stop if self.cancel.is_cancelled() => std::process::exit(128 + signal),
            Meaning::Stop => self.stop(signal),
        }
    }

    fn stop(&self, signal: i32) {
        self.cancel
            .cancel(if signal == SIGINT { SIGINT } else { SIGTERM });
    }

    /// One that asks how far the run is is for us: the command would die of it.
    fn stop_both(&self, child: Pid, signal: i32, from_terminal: bool) {
        if signal == SIGUSR1 {
            return self.asked.answer();
        }
        self.stop(signal);
        if !from_terminal {
            send(child, signal);
        }
    }
}

/// While this lives, signals are the command's.
#[derive(Debug)]
pub struct HandOn<'a> {
    signals: &'a Signals,
    /// They are ours as well.
    shares: bool,
}

impl HandOn<'_> {
    /// Hands them on to the command, which has been started: those that came meanwhile at once. It must not be
    /// reaped while the guard lives.
    pub fn to(&self, child: Pid) {
        let meaning = match self.shares {
            true => Meaning::Shared(child),
            false => Meaning::HandOn(child),
        };
        let kept = std::mem::replace(&mut *self.signals.meaning(), meaning);
        if let Meaning::Keep(early) = kept {
            early.into_iter().for_each(|signal| match self.shares {
                true => self.signals.stop_both(child, signal, false),
                false => send(child, signal),
            });
        }
        if self.shares {
            return;
        }
        // One that came before that is handed on late, not lost.
        if let Err(stopped) = self.signals.cancel.check() {
            let terminated = stopped.kind() == evenkeel_op::ErrorKind::Terminated;
            send(child, if terminated { SIGTERM } else { SIGINT });
        }
    }
}

impl Drop for HandOn<'_> {
    fn drop(&mut self) {
        *self.signals.meaning() = Meaning::Stop;
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
    fn one_that_asks_is_answered_and_stops_nothing() {
        let signals = Signals::default();
        signals.receive(SIGUSR1, false);
        let (tell, reported) = std::sync::mpsc::channel();
        signals.when_asked(move || tell.send(()).unwrap());
        signals.receive(SIGUSR1, false);
        assert_eq!(reported.try_iter().count(), 1);
        assert!(!signals.cancel().is_cancelled());
    }

    #[test]
    fn beside_a_command_it_stops_both_and_a_question_is_ours() {
        let signals = Signals::default();
        let (tell, reported) = std::sync::mpsc::channel();
        signals.when_asked(move || tell.send(()).unwrap());
        // That somebody stopped us is what the command is run for.
        signals.receive(SIGTERM, false);
        let run = |signal| {
            let mut child = std::process::Command::new("sleep")
                .arg("1000")
                .spawn()
                .unwrap();
            let guard = signals.share();
            guard.to(Pid::from_child(&child));
            signals.receive(SIGUSR1, false);
            assert!(child.try_wait().unwrap().is_none(), "it was stopped");
            signals.receive(signal, false);
            use std::os::unix::process::ExitStatusExt;
            assert_eq!(child.wait().unwrap().signal(), Some(signal));
        };
        run(SIGTERM);
        assert_eq!(reported.try_iter().count(), 1);
        run(SIGINT);
        let kind = signals.cancel().check().unwrap_err().kind();
        assert_eq!(kind, evenkeel_op::ErrorKind::Interrupted);
    }

    #[test]
    fn with_a_child_it_does_not() {
        let signals = Signals::default();
        let guard = signals.hand_on();
        guard.to(rustix::process::getpid());
        signals.receive(SIGINT, true);
        assert!(!signals.cancel().is_cancelled());
        drop(guard);
        signals.receive(SIGINT, true);
        assert!(signals.cancel().is_cancelled());
    }

    #[test]
    fn one_that_comes_before_the_command_runs_is_the_commands() {
        let signals = Signals::default();
        let guard = signals.hand_on();
        signals.receive(SIGTERM, false);
        assert!(!signals.cancel().is_cancelled());
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        guard.to(Pid::from_child(&child));
        let ended = child.wait().unwrap();
        let signal = std::os::unix::process::ExitStatusExt::signal(&ended);
        assert_eq!(signal, Some(SIGTERM));
    }

    #[test]
    fn ignored_signals_are_recognised() {
        // Rust's runtime ignores SIGPIPE (13) in every program; nobody ignores SIGWINCH (28).
        assert!(is_ignored(13));
        assert!(!is_ignored(28));
    }
}
