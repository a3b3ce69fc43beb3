//! How far reading is announced to the kernel ahead of the workers.
//!
//! What is announced waits in the device's queue, and a commit of the server waits behind it. So it
//! is bytes that are limited, and to what a device needs to be kept busy, not more.

use evenkeel_op::{Cancel, Result};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Bytes announced and not yet read.
pub(in crate::backup) const LIMIT: u64 = 8 << 20;
/// How often a wait looks whether the run has failed.
const LOOK: Duration = Duration::from_millis(20);

/// Counts announced bytes that nobody has read yet.
#[derive(Debug, Default)]
pub(in crate::backup) struct Ahead {
    bytes: Mutex<u64>,
    less: Condvar,
}

impl Ahead {
    /// Waits until there is room for `bytes`, or for anything at all when nothing is announced.
    pub(in crate::backup) fn announce(
        &self,
        bytes: u64,
        failed: &Cancel,
        cancel: &Cancel,
    ) -> Result<()> {
        let mut ahead = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        while *ahead > 0 && *ahead + bytes > LIMIT {
            failed.check()?;
            cancel.check()?;
            let waited = self.less.wait_timeout(ahead, LOOK);
            ahead = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *ahead += bytes;
        Ok(())
    }

    /// Bytes that were announced have been read.
    pub(in crate::backup) fn read(&self, bytes: u64) {
        let mut ahead = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        *ahead = ahead.saturating_sub(bytes);
        self.less.notify_all();
    }

    /// Waits until everything that was announced has been read.
    pub(in crate::backup) fn wait_until_read(
        &self,
        failed: &Cancel,
        cancel: &Cancel,
    ) -> Result<()> {
        let mut ahead = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        while *ahead > 0 {
            failed.check()?;
            cancel.check()?;
            let waited = self.less.wait_timeout(ahead, LOOK);
            ahead = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_what_was_announced_to_be_read() {
        let (ahead, never) = (Ahead::default(), Cancel::new());
        ahead.announce(2 * LIMIT, &never, &never).unwrap();
        let failed = Cancel::new();
        failed.cancel(2);
        // Full: only the failure ends the wait.
        ahead.announce(1, &failed, &never).unwrap_err();
        ahead.read(2 * LIMIT);
        ahead.announce(LIMIT - 1, &failed, &never).unwrap();
        ahead.announce(1, &failed, &never).unwrap();
        ahead.announce(1, &failed, &never).unwrap_err();
        ahead.wait_until_read(&failed, &never).unwrap_err();
        ahead.read(LIMIT);
        ahead.wait_until_read(&failed, &never).unwrap();
    }
}
