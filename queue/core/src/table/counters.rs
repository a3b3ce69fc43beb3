//! What has happened to a table since it was opened, as numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, many: u64) {
        self.0.fetch_add(many, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Numbers that are counted without the table's lock.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) at_once: Counter,
    pub(crate) later: Counter,
    pub(crate) timed_out: Counter,
    pub(crate) back_by_abort: Counter,
    pub(crate) back_by_close: Counter,
    pub(crate) groups: Counter,
    pub(crate) requests: Counter,
    pub(crate) syncs: Counter,
}
