//! Progress that somebody besides the user hears of.

use evenkeel_op::{Event, Progress};
use std::sync::{Arc, Mutex, OnceLock};

/// So many warnings are remembered.
const WARNINGS_MAX: usize = 20;

type Ear = Box<dyn Fn(&Event) + Send + Sync>;

/// Hands events to whoever shows them, and to one who listens.
pub(in crate::show) struct Overheard {
    shown: Arc<dyn Progress>,
    ear: OnceLock<Ear>,
    /// The first of what the user should look at.
    warnings: Mutex<Vec<String>>,
}

impl Overheard {
    pub(in crate::show) fn by(shown: Arc<dyn Progress>) -> Self {
        Self {
            shown,
            ear: OnceLock::new(),
            warnings: Mutex::default(),
        }
    }

    /// Returns what the user should look at.
    pub(in crate::show) fn warnings(&self) -> Vec<String> {
        self.warnings
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .clone()
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
        if let Event::Warning(text) = &event {
            let mut warnings = self.warnings.lock().unwrap_or_else(|e| e.into_inner());
            if warnings.len() < WARNINGS_MAX {
                warnings.push(text.clone());
            }
        }
        self.shown.event(event);
    }
}
