//! How far a phase is, as a line says it.

use evenkeel_op::{Unit, units};
use std::time::{Duration, Instant};

/// What is known of the current phase.
#[derive(Debug)]
pub(super) struct Phase {
    name: String,
    total: Option<u64>,
    unit: Unit,
    done: u64,
    begun: Instant,
}

impl Phase {
    pub(super) fn new(name: String, total: Option<u64>, unit: Unit, now: Instant) -> Self {
        Self {
            name,
            total,
            unit,
            done: 0,
            begun: now,
        }
    }

    pub(super) fn advance(&mut self, by: u64) {
        self.done = self.done.saturating_add(by);
    }

    /// What is to be done.
    pub(super) fn first_line(&self) -> String {
        match self.total {
            Some(total) => format!("{}, {}", self.name, amount(total, self.unit)),
            None => self.name.clone(),
        }
    }

    /// What is done, how fast, and how long the rest may take, as far as that is known.
    pub(super) fn line(&self, now: Instant) -> String {
        let so_far = now.duration_since(self.begun);
        if self.done == 0 {
            return format!(
                "{}, for {} so far",
                self.first_line(),
                units::duration(so_far)
            );
        }
        let per_second = self.done as f64 / so_far.as_secs_f64().max(0.001);
        let mut line = format!("{}: {}", self.name, amount(self.done, self.unit));
        if let Some(total) = self.total {
            line.push_str(&format!(" of {}", amount(total, self.unit)));
        }
        line.push_str(&format!(", {}/s", amount(per_second as u64, self.unit)));
        if let Some(left) = self.total.map(|total| total.saturating_sub(self.done)) {
            let left = Duration::from_secs_f64((left as f64 / per_second).min(1e9));
            line.push_str(&format!(", {} left", units::duration(left)));
        }
        line
    }
}

/// Returns the answer to somebody who asks how far a run is.
pub(super) fn asked(phase: Option<&Phase>, now: Instant) -> String {
    match phase {
        Some(phase) => phase.line(now),
        None => "working, between two counted steps".to_owned(),
    }
}

fn amount(count: u64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => units::bytes(count),
        Unit::Files => units::count(count, "file"),
        Unit::Blocks => units::count(count, "block"),
        Unit::Items => format!("{count}"),
    }
}
