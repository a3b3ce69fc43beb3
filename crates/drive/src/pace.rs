//! When the next unit begins.

use evenkeel_op::Cancel;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How densely units follow each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Each session begins a unit as soon as its last one has ended.
    Closed,
    /// All sessions together begin so many units per second, at even distances. Latency counts from
    /// when a unit was to begin, so that a server that hangs is charged for every unit that
    /// waited meanwhile (no coordinated omission).
    Rate(f64),
}

/// How long a sleeper may be deaf to being stopped.
const DEAF: Duration = Duration::from_millis(20);

/// Sleeps until a moment; returns false when stopped before.
pub(crate) fn sleep_until(moment: Instant, stop: &Cancel) -> bool {
    loop {
        if stop.is_cancelled() {
            return false;
        }
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(DEAF));
    }
}

/// Hands out the moments at which units should begin.
#[derive(Debug)]
pub(crate) struct Schedule {
    pace: Pace,
    started: Instant,
    tickets: AtomicU64,
}

impl Schedule {
    pub(crate) fn new(pace: Pace) -> Self {
        Self {
            pace,
            started: Instant::now(),
            tickets: AtomicU64::new(0),
        }
    }

    /// Waits until the next unit may begin, and returns when it was to begin; `None` when stopped.
    pub(crate) fn next(&self, stop: &Cancel) -> Option<Instant> {
        match self.pace {
            Pace::Closed => (!stop.is_cancelled()).then(Instant::now),
            Pace::Rate(per_s) => {
                let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
                let moment = self.started + Duration::from_secs_f64(ticket as f64 / per_s);
                sleep_until(moment, stop).then_some(moment)
            }
        }
    }
}
