//! How much is read ahead of the workers.
//!
//! What is ordered waits in the device's queue, and a commit of the server waits behind it; what was read waits
//! in memory. So it is bytes that are limited, and to what device and workers need to be kept busy, not more.

use super::pieces::CHUNK;
use super::plan::LEAF_BLOCKS;
use evenkeel_op::{Cancel, Result};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Bytes that keep a device busy.
const LEAST: u64 = 8 << 20;
/// Bytes of memory that may wait for workers, however many there are: with usual pages, 32 of them have a leaf.
const MOST: u64 = 128 << 20;
/// How often a wait looks whether the run has failed.
const LOOK: Duration = Duration::from_millis(20);

/// Counts ordered bytes that nobody has stored yet.
#[derive(Debug)]
pub(in crate::backup) struct Ahead {
    limit: u64,
    bytes: Mutex<u64>,
    less: Condvar,
}

impl Ahead {
    /// Makes one for so many workers, each of which stores a leaf of pages at a time. With a rate (0: none) no more
    /// than half a second's worth is on its way, so that a rest begins soon.
    pub(in crate::backup) fn of(workers: usize, page_size: u32, bytes_per_s: u64) -> Self {
        let leaf = LEAF_BLOCKS * u64::from(page_size);
        let limit = leaf.saturating_mul(workers as u64).clamp(LEAST, MOST);
        let limit = match bytes_per_s {
            0 => limit,
            rate => limit.min((rate / 2).max(CHUNK)),
        };
        Self::new(limit)
    }

    /// Makes one with a limit in bytes.
    pub(in crate::backup) fn new(limit: u64) -> Self {
        Self {
            limit,
            bytes: Mutex::default(),
            less: Condvar::new(),
        }
    }

    /// Waits until there is room for `bytes`, or for anything at all when nothing is ordered.
    pub(in crate::backup) fn order(
        &self,
        bytes: u64,
        failed: &Cancel,
        cancel: &Cancel,
    ) -> Result<()> {
        let mut ahead = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        while *ahead > 0 && *ahead + bytes > self.limit {
            failed.check()?;
            cancel.check()?;
            let waited = self.less.wait_timeout(ahead, LOOK);
            ahead = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *ahead += bytes;
        Ok(())
    }

    /// Bytes that were ordered have been stored.
    pub(in crate::backup) fn stored(&self, bytes: u64) {
        let mut ahead = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        *ahead = ahead.saturating_sub(bytes);
        self.less.notify_all();
    }

    /// Waits until everything that was ordered has been stored.
    pub(in crate::backup) fn wait_until_stored(
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
    fn waits_for_what_was_ordered_to_be_stored() {
        let (ahead, never) = (Ahead::new(100), Cancel::new());
        // More than the limit, because nothing else is on its way.
        ahead.order(200, &never, &never).unwrap();
        let failed = Cancel::new();
        failed.cancel(2);
        // Full: only the failure ends the wait.
        ahead.order(1, &failed, &never).unwrap_err();
        ahead.stored(200);
        ahead.order(99, &failed, &never).unwrap();
        ahead.order(1, &failed, &never).unwrap();
        ahead.order(1, &failed, &never).unwrap_err();
        ahead.wait_until_stored(&failed, &never).unwrap_err();
        ahead.stored(100);
        ahead.wait_until_stored(&failed, &never).unwrap();
    }

    #[test]
    fn every_worker_has_a_leaf_and_a_low_rate_has_little_on_its_way() {
        let limit = |workers, page, rate| Ahead::of(workers, page, rate).limit;
        assert_eq!(limit(1, 16 << 10, 0), LEAST);
        assert_eq!(limit(8, 16 << 10, 0), 32 << 20);
        assert_eq!(limit(4, 64 << 10, 0), 64 << 20);
        assert_eq!(limit(256, 16 << 10, 0), MOST);
        assert_eq!(limit(8, 16 << 10, 4 << 20), 2 << 20);
        assert_eq!(limit(8, 16 << 10, 1000), CHUNK);
    }
}
