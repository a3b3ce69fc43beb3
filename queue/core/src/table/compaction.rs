//! How far compaction is.

use super::file::DataFile;
use std::sync::Arc;

/// What compaction is at.
#[derive(Debug)]
pub(crate) struct Compaction {
    pub(super) generation: u32,
    pub(super) running: Option<Running>,
    /// The disk was too full to copy rows.
    pub(super) is_cramped: bool,
}

#[derive(Debug)]
pub(super) struct Running {
    /// How many of the oldest files go.
    pub(super) files: usize,
    /// The next row to look at, and the last.
    pub(super) next: u64,
    pub(super) last: u64,
    pub(super) parts: Vec<(Arc<DataFile>, u64)>,
}

impl Compaction {
    pub(crate) fn after(generation: u32) -> Self {
        Self {
            generation,
            running: None,
            is_cramped: false,
        }
    }
}
