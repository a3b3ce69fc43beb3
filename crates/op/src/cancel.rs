//! Cancellation: one flag that every long loop looks at.

use crate::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// A shared request to stop. Clones see the same request.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    // 0 = continue, otherwise the signal number. Signal handlers only ever store here.
    signal: Arc<AtomicI32>,
}

impl Cancel {
    /// Makes a token that nobody has cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks every holder to stop, as signal number `signal` would (2 = SIGINT, 15 = SIGTERM).
    pub fn cancel(&self, signal: i32) {
        self.signal.store(signal, Ordering::SeqCst);
    }

    /// Returns whether a stop was asked for.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.signal.load(Ordering::Relaxed) != 0
    }

    /// Returns an `Interrupted` or `Terminated` error once a stop was asked for.
    pub fn check(&self) -> Result<()> {
        match self.signal.load(Ordering::Relaxed) {
            0 => Ok(()),
            15 => Err(Error::new(ErrorKind::Terminated, "terminated by a signal")),
            _ => Err(Error::new(ErrorKind::Interrupted, "interrupted")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_decides_the_kind() {
        let cancel = Cancel::new();
        assert!(cancel.check().is_ok());
        cancel.clone().cancel(15);
        assert_eq!(cancel.check().unwrap_err().kind(), ErrorKind::Terminated);
        cancel.cancel(2);
        assert_eq!(cancel.check().unwrap_err().kind(), ErrorKind::Interrupted);
    }
}
