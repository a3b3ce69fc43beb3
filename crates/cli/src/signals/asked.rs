//! What is done when somebody asks how far a run is.

use std::fmt;
use std::sync::{Arc, Mutex};

type Tell = Arc<dyn Fn() + Send + Sync>;

/// What is done; nothing, as long as nobody has said.
#[derive(Clone, Default)]
pub(super) struct Asked(Arc<Mutex<Option<Tell>>>);

impl Asked {
    /// Says what is done from now on.
    pub(super) fn answer_by(&self, tell: impl Fn() + Send + Sync + 'static) {
        *self.0.lock().unwrap_or_else(|e| e.into_inner()) = Some(Arc::new(tell));
    }

    /// Does it.
    pub(super) fn answer(&self) {
        let tell = self.0.lock().unwrap_or_else(|e| e.into_inner()).clone();
        if let Some(tell) = tell {
            tell();
        }
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asked")
    }
}
