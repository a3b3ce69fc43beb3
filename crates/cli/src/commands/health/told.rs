//! What `health run` says, on threads of its own: whoever does not read keeps nobody from being checked.

use crate::show::answers::HealthChange;
use crate::show::{Stream, Ui};
use evenkeel_health::aside::Aside;
use evenkeel_health::daemon::Told;
use evenkeel_health::machine::HealthState;
use evenkeel_op::{Error, Event, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// What may wait to be read: some minutes of a fleet's worst day.
const WAITING: usize = 1000;
/// In the end, how long readers are waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Says it.
pub(super) struct Teller {
    changes: Aside<String>,
    talk: Aside<Event>,
    /// Nobody reads standard output any more.
    is_closed: Arc<AtomicBool>,
    /// Changes that could not be written.
    failed: Arc<AtomicU64>,
    is_json: bool,
    is_quiet: bool,
    /// It was said that changes are left out.
    is_warned: bool,
}

impl Teller {
    pub(super) fn start(ui: &Ui) -> Result<Self> {
        let is_closed = Arc::new(AtomicBool::new(false));
        let failed = Arc::new(AtomicU64::new(0));
        let (closed, failures) = (is_closed.clone(), failed.clone());
        let changes = Aside::start("changes", WAITING, move |line: String| {
            if closed.load(Ordering::Relaxed) {
                return;
            }
            match Stream.show(&line) {
                Ok(true) => {}
                Ok(false) => closed.store(true, Ordering::Relaxed),
                Err(_) => {
                    failures.fetch_add(1, Ordering::Relaxed);
                }
            }
        })?;
        let talk = ui.talk();
        Ok(Self {
            changes,
            talk: Aside::start("talk", WAITING, move |event| talk.event(event))?,
            is_closed,
            failed,
            is_json: ui.is_json(),
            is_quiet: ui.is_quiet(),
            is_warned: false,
        })
    }

    pub(super) fn note(&mut self, text: String) {
        self.say(Event::Note(text));
    }

    pub(super) fn warn(&mut self, text: String) {
        self.say(Event::Warning(text));
    }

    fn warn_of(&mut self, error: &Error) {
        let mut text = error.chain();
        for hint in error.hints() {
            text.push_str(&format!("\nhint: {hint}"));
        }
        self.warn(text);
    }

    fn say(&mut self, event: Event) {
        if self.talk.hand(event) {
            let dropped = self.talk.dropped();
            if dropped > 0 {
                let text = format!("{dropped} messages were left out: nobody read them in time");
                // One more that does not fit is counted like them.
                self.talk.hand(Event::Warning(text));
            }
        }
    }

    pub(super) fn tell(&mut self, told: &Told<'_>) {
        match told {
            // Before anything is proven there is nothing to tell.
            Told::Changed(shown) if shown.state == HealthState::Starting => {}
            Told::Changed(shown) => self.change(&HealthChange::new(shown)),
            Told::ActionFailed(server, why) => self.warn(format!("{server}: {why}")),
            Told::NotKept(error) => self.warn_of(error),
            Told::KeptAgain => self.note("the state is written again".to_owned()),
            Told::Ready => self.note("every server has been checked".to_owned()),
        }
    }

    fn change(&mut self, change: &HealthChange<'_>) {
        // Warnings go to standard error, also when nobody reads the changes.
        if self.is_closed.load(Ordering::Relaxed) {
            return;
        }
        let line = match self.is_json {
            true => change.json_line(),
            false if self.is_quiet => return,
            false => change.text_line(),
        };
        let is_taken = self.changes.hand(line);
        if is_taken {
            let lost = self.changes.dropped() + self.failed.swap(0, Ordering::Relaxed);
            if lost > 0 {
                self.is_warned = false;
                self.warn(format!("{lost} changes were left out of standard output"));
            }
        } else if !self.is_warned {
            self.is_warned = true;
            self.warn("nobody reads standard output: changes are left out".to_owned());
        }
    }

    /// Waits a moment for everything to be read. Nobody is waited for who does not read at all.
    ///
    /// # Errors
    ///
    /// `Failed` if changes are missing on standard output.
    pub(super) fn finish(mut self, ui: &Ui) -> Result<()> {
        let left = match self.is_closed.load(Ordering::Relaxed) {
            // Whoever closed it wants no more.
            true => 0,
            false => self.changes.finish(LAST_WORDS) + self.failed.swap(0, Ordering::Relaxed),
        };
        let outcome = match left {
            0 => Ok(()),
            _ => Err(Error::failed(format!(
                "{left} changes are missing on standard output: they could not be written in time"
            ))),
        };
        if let Err(error) = &outcome {
            ui.spare_output();
            let text = error.chain();
            let _ = self.talk.hand(Event::Warning(text));
        }
        if self.talk.finish(LAST_WORDS) > 0 {
            ui.mute();
        }
        outcome
    }
}
