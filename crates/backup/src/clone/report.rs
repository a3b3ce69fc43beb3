//! What a clone answers.

use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::replication::{Seeding, SourceCoordinates};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a clone came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CloneReport {
    /// Whose files they are: host and data directory.
    pub source: String,
    /// The server's version.
    pub server_version: Option<String>,
    /// The data directory.
    pub target: PathBuf,
    /// Files of the image.
    pub files: u64,
    /// Sum of their sizes.
    pub bytes_logical: u64,
    /// Bytes that were sent of them, as they crossed.
    pub bytes_sent: u64,
    /// Blocks of 64 KiB that were sent.
    pub blocks_sent: u64,
    /// Blocks that were there already: of an interrupted run, or of `--like`.
    pub blocks_reused: u64,
    /// Whether an interrupted run was taken up.
    pub taken_up: bool,
    /// InnoDB pages that were checked as they were read.
    pub pages_checked: u64,
    /// Pages that failed the check, and that crash recovery restores.
    pub pages_torn: u64,
    /// Wall-clock time.
    pub seconds: f64,
    /// How long the applier of a replica stood.
    pub applier_ms: f64,
    /// Where the image is in the binary log of the server that was cloned.
    pub coordinates: Coordinates,
    /// Where it is in the binary logs of that server's sources.
    pub source_coordinates: Vec<SourceCoordinates>,
    /// Where each root is now.
    pub roots: BTreeMap<String, PathBuf>,
    /// Options that a server needs to start on it.
    pub start_options: Vec<String>,
    /// How it becomes a replica; none when that is not known.
    pub replica: Option<Seeding>,
}
