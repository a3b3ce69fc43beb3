//! HAProxy's agent check: one line. What it does not say, HAProxy keeps: so each line says everything. `drain` and
//! `maint` are undone by `ready` only, `down` by `up` only; a word and `#` without a blank between them are ignored;
//! a line without its end, too. (HAProxy 3.2, measured.)

use crate::board::{Board, Shown};
use crate::machine::HealthState;

/// How a server's load becomes its weight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weighing {
    /// With so many running threads, it has the least weight; `None` for no weighing.
    pub full_load: Option<u64>,
}

/// Weight, in percent, below which no server that is up is put.
const LEAST_PERCENT: u64 = 10;
/// The longest reason: HAProxy keeps a line of 1 KiB.
const REASON_CHARS: usize = 200;

/// Returns the line for a server, by its name. One that is not known is down: HAProxy would keep what it had.
#[must_use]
pub fn agent_line(board: &Board, name: &str, weighing: Weighing) -> String {
    match board.find(name) {
        Some(server) => line(&board.shown(server), weighing),
        None => "down #there is no such server here; use agent-send\n".to_owned(),
    }
}

fn line(shown: &Shown, weighing: Weighing) -> String {
    match shown.state {
        HealthState::Up => format!("up ready {}%\n", percent(shown.threads_running, weighing)),
        HealthState::Draining => "up drain\n".to_owned(),
        HealthState::Maintenance => "maint\n".to_owned(),
        HealthState::Down | HealthState::Starting => {
            // HAProxy ends a reason at such a character.
            let why = shown.why();
            let plain = |c: char| if c.is_control() || c == '#' { ' ' } else { c };
            let why: String = why.chars().take(REASON_CHARS).map(plain).collect();
            format!("down #{}\n", why.trim())
        }
    }
}

fn percent(running: Option<u64>, weighing: Weighing) -> u64 {
    let (Some(full), Some(running)) = (weighing.full_load, running) else {
        return 100;
    };
    // One of them is ours.
    let busy = running.saturating_sub(1).min(full);
    let spent = busy.saturating_mul(100 - LEAST_PERCENT) / full.max(1);
    100 - spent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weight_falls_with_load_and_never_to_nothing() {
        let weighing = Weighing {
            full_load: Some(21),
        };
        let of = |running| percent(running, weighing);
        assert_eq!([of(None), of(Some(0)), of(Some(1))], [100; 3]);
        assert!((10..100).contains(&of(Some(10))));
        assert_eq!([of(Some(22)), of(Some(u64::MAX))], [10; 2]);
        assert_eq!(percent(Some(500), Weighing::default()), 100);
        assert_eq!(percent(Some(5), Weighing { full_load: Some(0) }), 100);
    }
}
