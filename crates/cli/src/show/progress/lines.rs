//! Progress for a log file.

use super::Shown;
use super::phase::{self, Phase};
use crate::show::log::{Level, Log};
use evenkeel_op::{Event, Progress};
use std::io::Write;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How often a phase that continues says how far it is.
const EVERY: Duration = Duration::from_secs(30);

/// Writes a line when a phase starts, every thirty seconds while it lasts, and for what is worth
/// knowing.
#[derive(Debug)]
pub(in crate::show) struct Lines<W> {
    state: Mutex<LinesState<W>>,
}

#[derive(Debug)]
struct LinesState<W> {
    out: W,
    log: Log,
    /// Nothing is said unless somebody asks.
    is_quiet: bool,
    phase: Option<Phase>,
    next_line: Instant,
}

impl<W: Write + Send> Lines<W> {
    pub(in crate::show) fn new(out: W, log: Log) -> Self {
        let state = LinesState {
            out,
            log,
            is_quiet: false,
            phase: None,
            next_line: Instant::now(),
        };
        Self {
            state: Mutex::new(state),
        }
    }

    /// Says nothing of its own accord.
    pub(in crate::show) fn only_asked(out: W, log: Log) -> Self {
        let lines = Self::new(out, log);
        lines.state().is_quiet = true;
        lines
    }

    fn state(&self) -> MutexGuard<'_, LinesState<W>> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn at(&self, event: Event, now: Instant) {
        let mut state = self.state();
        let level = match event {
            Event::Warning(_) => Level::Warning,
            _ => Level::Info,
        };
        if let Some(line) = state.take(event, now)
            && !state.is_quiet
        {
            state.say(level, &line);
        }
    }
}

impl<W: Write> LinesState<W> {
    /// Takes an event, and returns the line that it makes due.
    fn take(&mut self, event: Event, now: Instant) -> Option<String> {
        match event {
            Event::PhaseStarted { name, total, unit } => {
                self.next_line = now + EVERY;
                let phase = self.phase.insert(Phase::new(name, total, unit, now));
                Some(phase.first_line())
            }
            Event::Advanced { by } => {
                let phase = self.phase.as_mut()?;
                phase.advance(by);
                if now < self.next_line {
                    return None;
                }
                self.next_line = now + EVERY;
                Some(phase.line(now))
            }
            Event::PhaseEnded => {
                self.phase = None;
                None
            }
            Event::CaughtUp { .. } => None,
            Event::Note(text) | Event::Warning(text) => Some(text),
        }
    }

    fn say(&mut self, level: Level, text: &str) {
        let line = self.log.line(level, text);
        // Nobody reads standard error: nothing to be done about it.
        let _ = self.out.write_all(line.as_bytes());
    }
}

impl<W: Write + Send> Shown for Lines<W> {
    fn tell(&self) {
        let mut state = self.state();
        let line = phase::asked(state.phase.as_ref(), Instant::now());
        state.say(Level::Info, &line);
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
    use evenkeel_op::Unit;

    fn seen(lines: &Lines<Vec<u8>>) -> String {
        String::from_utf8(lines.state.lock().unwrap().out.clone()).unwrap()
    }

    #[test]
    fn a_line_at_the_start_and_every_thirty_seconds() {
        let lines = Lines::new(Vec::new(), Log::default());
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
    fn who_asks_is_reported_even_where_nothing_else_is_said() {
        let lines = Lines::only_asked(Vec::new(), Log::default());
        lines.tell();
        lines.phase("reading", None, Unit::Files);
        lines.event(Event::Advanced { by: 1 });
        lines.tell();
        let seen = seen(&lines);
        let reported: Vec<&str> = seen.lines().collect();
        assert_eq!(reported.len(), 2, "{seen}");
        assert!(reported[0].starts_with("evenkeel: working"), "{seen}");
        assert!(
            reported[1].starts_with("evenkeel: reading: 1 file, "),
            "{seen}"
        );
    }

    #[test]
    fn warnings_are_marked() {
        let lines = Lines::new(Vec::new(), Log::default());
        lines.event(Event::Warning("old snapshot removed".into()));
        assert_eq!(seen(&lines), "evenkeel: warning: old snapshot removed\n");
    }
}
