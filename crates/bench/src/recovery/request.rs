//! What is asked of a measurement.

use evenkeel_server::launch::Binary;
use std::path::PathBuf;
use std::time::Duration;

/// Where all of it happens.
#[derive(Debug, Clone)]
pub enum WorkLocation {
    /// In a new directory below this one, which is removed at the end.
    Below(PathBuf),
    /// In this directory, where crashed data directories stay for the next run.
    Kept(PathBuf),
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct RecoveryRequest {
    /// Each of these servers,
    pub servers: Vec<Binary>,
    /// with each of these numbers of tables.
    pub tables: Vec<usize>,
    /// How many of a hundred tables have changes in the redo log that are not in their files.
    pub changed_percent: f64,
    /// How long a read of the data directory takes, and a write that is waited for; none: the
    /// storage as it is.
    pub latency: Duration,
    /// Starts of each kind.
    pub repeat: usize,
    /// Decides the order of starts.
    pub seed: u64,
    /// Where.
    pub place: WorkLocation,
}
