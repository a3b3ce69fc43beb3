//! A bar with rate and time left.

use super::Shown;
use super::phase::{self, Phase};
use evenkeel_op::{Event, Progress, Unit};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Shows one bar, for the current phase, on standard error.
#[derive(Debug, Default)]
pub(in crate::show) struct Bars {
    bar: Mutex<Option<ProgressBar>>,
    phase: Mutex<Option<Phase>>,
}

fn template(total: Option<u64>, unit: Unit) -> &'static str {
    match (total.is_some(), unit) {
        (true, Unit::Bytes) => {
            "{msg:24} {bar:30} {binary_bytes:>10} of {binary_total_bytes}  {binary_bytes_per_sec}  {eta} left"
        }
        (true, _) => "{msg:24} {bar:30} {human_pos:>10} of {human_len}  {per_sec}  {eta} left",
        (false, Unit::Bytes) => {
            "{spinner} {msg:22} {binary_bytes}  {binary_bytes_per_sec}  {elapsed}"
        }
        (false, _) => "{spinner} {msg:22} {human_pos}  {elapsed}",
    }
}

impl Bars {
    fn bar(&self) -> MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn phase(&self) -> MutexGuard<'_, Option<Phase>> {
        self.phase.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn say(&self, line: &str) {
        match &*self.bar() {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }
}

impl Progress for Bars {
    fn event(&self, event: Event) {
        match event {
            Event::PhaseStarted { name, total, unit } => {
                let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
                if let Ok(style) = ProgressStyle::with_template(template(total, unit)) {
                    bar.set_style(style);
                }
                bar.set_message(name.clone());
                *self.phase() = Some(Phase::new(name, total, unit, Instant::now()));
                bar.enable_steady_tick(Duration::from_millis(200));
                if let Some(old) = self.bar().replace(bar) {
                    old.finish_and_clear();
                }
            }
            Event::Advanced { by } => {
                if let Some(bar) = &*self.bar() {
                    bar.inc(by);
                }
                if let Some(phase) = &mut *self.phase() {
                    phase.advance(by);
                }
            }
            Event::PhaseEnded => {
                *self.phase() = None;
                if let Some(bar) = self.bar().take() {
                    bar.finish_and_clear();
                }
            }
            Event::CaughtUp { .. } => {}
            Event::Note(text) => self.say(&format!("evenkeel: {text}")),
            Event::Warning(text) => self.say(&format!("evenkeel: warning: {text}")),
        }
    }
}

impl Shown for Bars {
    fn tell(&self) {
        let line = phase::asked(self.phase().as_ref(), Instant::now());
        self.say(&format!("evenkeel: {line}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_one() {
        for total in [None, Some(1)] {
            for unit in [Unit::Bytes, Unit::Files, Unit::Blocks, Unit::Items] {
                assert!(ProgressStyle::with_template(template(total, unit)).is_ok());
            }
        }
    }
}
