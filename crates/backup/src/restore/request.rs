//! What is asked of a restore, and what it answers.

use crate::point::{PointReport, Replay};
use evenkeel_op::paths::absolute;
use evenkeel_repository::Location;
use evenkeel_server::replication::Seeding;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What to restore, and where to.
#[derive(Debug, Clone)]
pub struct RestoreRequest {
    /// The repository.
    pub repository: Location,
    /// The generation; the newest when not given.
    pub generation: Option<u32>,
    /// Becomes the data directory; must not exist or be empty.
    pub target: PathBuf,
    /// Where roots outside the data directory go, by root id. Others go beside the target, as
    /// `TARGET-ID`.
    pub map_roots: BTreeMap<String, PathBuf>,
    /// Threads that write.
    pub workers: usize,
    /// Owner and group of everything, instead of what they were.
    pub owner: Option<(u32, u32)>,
    /// The hot-copy tool that prepares what it copied, where it is not one of the usual names.
    pub engine_tool: Option<PathBuf>,
    /// The point in time to continue to; the generation must be the one that it was found for.
    pub replay: Option<Replay>,
}

impl RestoreRequest {
    /// Makes a request with the usual settings.
    #[must_use]
    pub fn new(repository: impl Into<Location>, generation: Option<u32>, target: &Path) -> Self {
        Self {
            repository: repository.into(),
            generation,
            target: absolute(target),
            map_roots: BTreeMap::new(),
            workers: crate::default_workers(),
            owner: None,
            engine_tool: None,
            replay: None,
        }
    }
}

/// What a restore came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RestoreReport {
    /// The generation.
    pub generation: u32,
    /// What it is a backup of: host and data directory, or volumes.
    pub source: String,
    /// The data directory.
    pub target: PathBuf,
    /// Files written.
    pub files: u64,
    /// Sum of their sizes.
    pub bytes_logical: u64,
    /// Bytes written; holes are left out.
    pub bytes_written: u64,
    /// Wall-clock time.
    pub seconds: f64,
    /// Where each root is now.
    pub roots: BTreeMap<String, PathBuf>,
    /// Options that a server needs to start on it.
    pub start_options: Vec<String>,
    /// How it becomes a replica; none when that is not known, and after a replay.
    pub replica: Option<Seeding>,
    /// Which point in time it was brought to, if to any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<PointReport>,
}
