//! A bar with rate and time left.

use super::Shown;
use super::phase::{self, Far, Phase};
use crate::show::failure::without_controls;
use evenkeel_op::{Event, Progress, Unit};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Shows one bar, for the current phase, on standard error.
#[derive(Debug, Default)]
pub(in crate::show) struct Bars {
    bar: Mutex<Option<ProgressBar>>,
    phase: Mutex<Option<Phase>>,
}

/// Returns what a bar looks like; without a total it is none.
fn style(total: Option<u64>, unit: Unit) -> ProgressStyle {
    let template = match total {
        Some(_) => "{msg:24} {bar:30} {far}",
        None => "{spinner} {msg:22} {far}, for {elapsed}",
    };
    let far = move |state: &ProgressState, to: &mut dyn std::fmt::Write| {
        let far = Far {
            done: state.pos(),
            total,
            per_second: state.per_sec(),
        };
        // Nobody reads it if that fails.
        let _ = to.write_str(&far.shown(unit));
    };
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("far", far)
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
                bar.set_style(style(total, unit));
                bar.set_message(name.clone());
                *self.phase() = Some(Phase::new(name, total, unit, Instant::now()));
                bar.enable_steady_tick(Duration::from_millis(200));
                if let Some(old) = self.bar().replace(bar) {
                    old.finish_and_clear();
                }
            }
            Event::Advanced { by } => {
                let goes_beyond = match &mut *self.phase() {
                    Some(phase) => phase.advance(by).then(|| phase.unit()),
                    None => None,
                };
                if let Some(bar) = &*self.bar() {
                    bar.inc(by);
                    if let Some(unit) = goes_beyond {
                        bar.set_style(style(None, unit));
                    }
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
            Event::Warning(text) => {
                let text = without_controls(&text);
                self.say(&format!("evenkeel: warning: {text}"));
            }
        }
    }
}

impl Shown for Bars {
    fn tell(&self) {
        let line = phase::asked(self.phase().as_ref(), Instant::now());
        self.say(&format!("evenkeel: {line}"));
    }
}
