//! One read, and what is notified of its end.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The most that one job reads: a large file is read in several places at once.
pub(super) const JOB_BYTES: u64 = 1 << 20;
/// How much is asked for at a time.
pub(super) const READ_BYTES: usize = 128 << 10;

/// A range of a file that should be read once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Job {
    /// The file.
    pub(super) path: Arc<PathBuf>,
    /// The first byte.
    pub(super) start: u64,
    /// How many bytes; fewer are there where the file ends earlier.
    pub(super) length: u64,
}

/// Cuts a range into jobs.
pub(super) fn jobs(
    path: &Arc<PathBuf>,
    start: u64,
    length: u64,
) -> impl Iterator<Item = Job> + use<> {
    let path = Arc::clone(path);
    let end = start + length;
    (start..end)
        .step_by(JOB_BYTES as usize)
        .map(move |start| Job {
            path: Arc::clone(&path),
            start,
            length: JOB_BYTES.min(end - start),
        })
}

/// Is notified of each job's end, and says whether to continue.
pub(super) trait Sink {
    /// Takes how many bytes were read, or why not. `depth` is how many reads may be under way.
    fn done(&mut self, job: usize, outcome: io::Result<u64>, depth: usize);

    /// Whether the time is up, or somebody wants to stop.
    fn is_over(&self) -> bool;
}
