//! Typed progress events: the only way a working thread and whoever shows its progress meet.

use serde::{Deserialize, Serialize};

/// What a phase counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Files.
    Files,
    /// InnoDB pages or repository blocks.
    Blocks,
    /// Anything else that is counted one by one.
    Items,
}

/// Something worth showing happened.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Event {
    /// A phase began. `total` is in `unit`, when known beforehand.
    PhaseStarted {
        /// A few words, lower case: "reading changed blocks".
        name: String,
        /// How much there is to do, when known.
        total: Option<u64>,
        /// What `total` and `Advanced::by` count.
        unit: Unit,
    },
    /// The current phase got `by` units further.
    Advanced {
        /// Units done since the last event.
        by: u64,
    },
    /// The current phase ended.
    PhaseEnded,
    /// Of work that follows something: all that there was at this time is done.
    CaughtUp {
        /// Seconds since 1970.
        unix_s: f64,
    },
    /// Something the user may want to know.
    Note(String),
    /// Something the user should look at; the operation continues.
    Warning(String),
}

/// Receives events. Called from many threads, often: implementations must be cheap.
pub trait Progress: Send + Sync {
    /// Takes one event.
    fn event(&self, event: Event);

    /// Starts a phase.
    fn phase(&self, name: &str, total: Option<u64>, unit: Unit) {
        self.event(Event::PhaseStarted {
            name: name.to_owned(),
            total,
            unit,
        });
    }

    /// Advances the phase.
    fn advance(&self, by: u64) {
        self.event(Event::Advanced { by });
    }

    /// Ends the phase.
    fn end(&self) {
        self.event(Event::PhaseEnded);
    }

    /// Says something worth knowing.
    fn note(&self, text: String) {
        self.event(Event::Note(text));
    }

    /// Says something worth looking at.
    fn warn(&self, text: String) {
        self.event(Event::Warning(text));
    }
}

/// Drops every event.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn event(&self, _event: Event) {}
}
