//! The watchdog of a stopped applier: this program once more, started by itself and by nobody else.

use evenkeel_server::replication::{Program, watch};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The one word that asks for it. It is no command: it is of no use to a person.
const WORD: &str = "watch-applier";

/// Returns how to start the watchdog: the very program that runs, also when its file was replaced.
pub(super) fn program() -> Program {
    Program {
        path: "/proc/self/exe".into(),
        args: vec![WORD.into()],
    }
}

/// Is the watchdog if the words ask for it, and returns its exit code then.
#[must_use]
pub fn asked_for(words: &[OsString]) -> Option<ExitCode> {
    if words.len() != 2 || words[1] != WORD {
        return None;
    }
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        // Whoever ends a whole group means the backup; the watchdog goes when the applier runs.
        let _ = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
    }
    Some(ExitCode::from(watch(std::io::stdin(), std::io::stdout())))
}
