//! Progress for a log file.

use evenkeel_op::{Event, Progress, Unit, units};
use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often a phase that goes on says how far it is.
const EVERY: Duration = Duration::from_secs(30);

/// Writes a line when a phase starts, every thirty seconds while it lasts, and for what is worth
/// knowing.
#[derive(Debug)]
pub(in crate::show) struct Lines<W> {
    state: Mutex<State<W>>,
}

#[derive(Debug)]
struct State<W> {
    out: W,
    phase: Option<Phase>,
}

#[derive(Debug)]
struct Phase {
    name: String,
    total: Option<u64>,
    unit: Unit,
    done: u64,
    begun: Instant,
    next_line: Instant,
}

impl<W: Write + Send> Lines<W> {
    pub(in crate::show) fn new(out: W) -> Self {
        Self {
            state: Mutex::new(State { out, phase: None }),
        }
    }

    fn at(&self, event: Event, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(|e| e.into_inner());
        let line = match event {
            Event::PhaseStarted { name, total, unit } => {
                let line = match total {
                    Some(total) => format!("{name}, {}", amount(total, unit)),
                    None => name.clone(),
                };
                let next_line = now + EVERY;
                state.phase = Some(Phase {
                    name,
                    total,
                    unit,
                    done: 0,
                    begun: now,
                    next_line,
                });
                Some(line)
            }
            Event::Advanced { by } => state
                .phase
                .as_mut()
                .and_then(|phase| phase.advance(by, now)),
            Event::PhaseEnded => {
                state.phase = None;
                None
            }
            Event::Note(text) => Some(text),
            Event::Warning(text) => Some(format!("warning: {text}")),
        };
        if let Some(line) = line {
            // Nobody reads standard error: nothing to be done about it.
            let _ = writeln!(state.out, "evenkeel: {line}");
        }
    }
}

impl Phase {
    fn advance(&mut self, by: u64, now: Instant) -> Option<String> {
        self.done = self.done.saturating_add(by);
        if now < self.next_line {
            return None;
        }
        self.next_line = now + EVERY;
        let seconds = now.duration_since(self.begun).as_secs_f64();
        let per_second = self.done as f64 / seconds.max(0.001);
        let mut line = format!("{}: {}", self.name, amount(self.done, self.unit));
        if let Some(total) = self.total {
            line.push_str(&format!(" of {}", amount(total, self.unit)));
        }
        line.push_str(&format!(", {}/s", amount(per_second as u64, self.unit)));
        if let Some(left) = self.total.map(|total| total.saturating_sub(self.done))
            && per_second > 0.0
        {
            let left = Duration::from_secs_f64((left as f64 / per_second).min(1e9));
            line.push_str(&format!(", {} left", units::duration(left)));
        }
        Some(line)
    }
}

fn amount(count: u64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => units::bytes(count),
        Unit::Files => format!("{count} files"),
        Unit::Blocks => format!("{count} blocks"),
        Unit::Items => format!("{count}"),
    }
}

impl<W: Write + Send> Progress for Lines<W> {
    fn event(&self, event: Event) {
        self.at(event, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(lines: &Lines<Vec<u8>>) -> String {
        String::from_utf8(lines.state.lock().unwrap().out.clone()).unwrap()
    }

    #[test]
    fn a_line_at_the_start_and_every_thirty_seconds() {
        let lines = Lines::new(Vec::new());
        let start = Instant::now();
        let phase = Event::PhaseStarted {
            name: "reading".into(),
            total: Some(4 << 20),
            unit: Unit::Bytes,
        };
        lines.at(phase, start);
        lines.at(
            Event::Advanced { by: 1 << 20 },
            start + Duration::from_secs(29),
        );
        lines.at(
            Event::Advanced { by: 1 << 20 },
            start + Duration::from_secs(32),
        );
        lines.at(Event::Advanced { by: 1 }, start + Duration::from_secs(61));
        lines.at(Event::PhaseEnded, start + Duration::from_secs(62));
        lines.at(Event::Advanced { by: 1 }, start + Duration::from_secs(99));
        let expected = "evenkeel: reading, 4.0 MiB\n\
             evenkeel: reading: 2.0 MiB of 4.0 MiB, 64.0 KiB/s, 32.0 s left\n";
        assert_eq!(seen(&lines), expected);
    }

    #[test]
    fn warnings_are_marked() {
        let lines = Lines::new(Vec::new());
        lines.event(Event::Warning("old snapshot removed".into()));
        assert_eq!(seen(&lines), "evenkeel: warning: old snapshot removed\n");
    }
}
