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

    /// Takes a step. Returns whether it went beyond the total: what a server counts is a guess.
    pub(super) fn advance(&mut self, by: u64) -> bool {
        let before = self.is_beyond();
        self.done = self.done.saturating_add(by);
        !before && self.is_beyond()
    }

    /// Returns what it counts.
    pub(super) fn unit(&self) -> Unit {
        self.unit
    }

    /// What should be done.
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
        let far = Far {
            done: self.done,
            total: self.total,
            per_second,
        };
        format!("{}: {}", self.name, far.shown(self.unit))
    }

    fn is_beyond(&self) -> bool {
        self.total.is_some_and(|total| self.done > total)
    }
}

/// How far something is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Far {
    pub(super) done: u64,
    pub(super) total: Option<u64>,
    pub(super) per_second: f64,
}

impl Far {
    /// What is done of what, how fast, and how long the rest may take. Beyond the total, nobody knows.
    pub(super) fn shown(self, unit: Unit) -> String {
        let done = amount(self.done, unit);
        let speed = rate(self.per_second, unit);
        let Some(total) = self.total else {
            return format!("{done}, {speed}");
        };
        let shown = amount(total, unit);
        if self.done > total {
            return format!("{done}, where {shown} were expected, {speed}");
        }
        let left = (total - self.done) as f64 / self.per_second.max(1e-9);
        let left = units::duration(Duration::from_secs_f64(left.min(1e9)));
        format!("{done} of {shown}, {speed}, {left} left")
    }
}

/// Returns a rate with no more digits than anybody reads.
fn rate(per_second: f64, unit: Unit) -> String {
    match unit {
        Unit::Items if per_second < 10.0 => format!("{per_second:.1}/s"),
        Unit::Items => {
            // Three digits, and zeros.
            let size = 10_f64.powf((per_second.log10().floor() - 2.0).max(0.0));
            format!("{}/s", (per_second / size).round() * size)
        }
        _ => format!("{}/s", amount(per_second as u64, unit)),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(total: Option<u64>, done: u64, ms: u64, unit: Unit) -> String {
        let begun = Instant::now();
        let mut phase = Phase::new("dumping rows".to_owned(), total, unit, begun);
        phase.advance(done);
        phase.line(begun + Duration::from_millis(ms))
    }

    #[test]
    fn nothing_is_said_to_be_left_of_more_than_there_was() {
        for (total, done, said) in [
            (Some(400), 200, "200 of 400, 100/s, 2.0 s left"),
            (Some(400), 400, "400 of 400, 200/s, 0.0 ms left"),
            (Some(400), 500, "500, where 400 were expected, 250/s"),
            (Some(0), 3, "3, where 0 were expected, 1.5/s"),
            (None, 500, "500, 250/s"),
        ] {
            let line = line(total, done, 2000, Unit::Items);
            assert_eq!(line, format!("dumping rows: {said}"));
        }
    }

    #[test]
    fn rates_are_rounded() {
        for (done, ms, said) in [
            (777_509, 1000, "778000/s"),
            (1_234_567, 1777, "695000/s"),
            (7, 9000, "0.8/s"),
            (99_951, 100_000, "1000/s"),
            (123, 1000, "123/s"),
        ] {
            let line = line(None, done, ms, Unit::Items);
            assert!(line.ends_with(said), "{line}: {said}");
        }
        assert!(line(None, 3_000_000, 1000, Unit::Bytes).ends_with(", 2.9 MiB/s"));
    }
}
