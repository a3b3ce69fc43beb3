//! Progress that somebody besides the user hears of.

use evenkeel_op::{Event, Progress};
use std::sync::{Arc, OnceLock};

type Ear = Box<dyn Fn(&Event) + Send + Sync>;

/// Hands events to whoever shows them, and to one who listens.
pub(in crate::show) struct Overheard {
    shown: Arc<dyn Progress>,
    ear: OnceLock<Ear>,
}

impl Overheard {
    pub(in crate::show) fn by(shown: Arc<dyn Progress>) -> Self {
        let ear = OnceLock::new();
        Self { shown, ear }
    }

    /// Has `ear` hear of each event; only the first does.
    pub(in crate::show) fn listen(&self, ear: Ear) {
        let _ = self.ear.set(ear);
    }
}

impl Progress for Overheard {
    fn event(&self, event: Event) {
        if let Some(ear) = self.ear.get() {
            ear(&event);
        }
        self.shown.event(event);
    }
}
