//! What every part of a copy has at hand.

use super::request::CopyTo;
use crate::catalog::Catalog;
use crate::repository::Repository;
use evenkeel_op::rate::RateLimit;
use evenkeel_op::{Cancel, Progress, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What every part of a copy has at hand.
pub(super) struct Run<'r> {
    pub(super) how: &'r CopyTo,
    pub(super) rate: RateLimit,
    pub(super) sent: AtomicU64,
    pub(super) objects: AtomicU64,
    pub(super) progress: &'r dyn Progress,
    pub(super) cancel: &'r Cancel,
}

impl Run<'_> {
    /// Waits for the turn of so many bytes, and counts them.
    pub(super) fn pace(&self, bytes: u64) -> Result<()> {
        self.rate.pace(bytes, || self.cancel.is_cancelled());
        self.progress.advance(bytes);
        self.cancel.check()
    }

    pub(super) fn sent(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The two repositories.
pub(super) struct Sides<'r> {
    pub(super) from: &'r Repository,
    pub(super) source: Arc<Catalog>,
    pub(super) to: Repository,
}
