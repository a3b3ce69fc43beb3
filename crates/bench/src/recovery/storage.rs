//! What the server's files seem to lie on: storage that takes its time, or what is there.

use super::run_directory::RunDirectory;
use evenkeel_mount::{Delay, Delayed, Mounted};
use evenkeel_op::{ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a server that was killed may hold the filesystem: the kernel ends its reads first.
const RELEASE: Duration = Duration::from_secs(20);
/// How often it is tried.
const TRY: Duration = Duration::from_millis(20);

/// Where the data directory is seen. Dropped, it is taken away.
#[derive(Debug)]
pub(super) struct Storage {
    path: PathBuf,
    slow: Option<Delayed>,
}

/// Reads that reached it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Reached {
    /// Those of tables.
    pub(super) of_tables: u64,
    /// Others.
    pub(super) others: u64,
    /// Bytes of all.
    pub(super) bytes: u64,
}

impl Storage {
    /// Shows a directory behind a delay; as it is, when there is none.
    pub(super) fn of(directory: &Path, latency: Duration, slow: &Path) -> Result<Self> {
        if latency.is_zero() {
            return Ok(Self {
                path: directory.to_owned(),
                slow: None,
            });
        }
        let delay = Delay {
            read: latency,
            write: latency,
        };
        Ok(Self {
            slow: Some(Mounted::delayed(directory, delay, slow)?),
            path: slow.to_owned(),
        })
    }

    /// Returns where the data directory should be read and written.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what has reached it; nothing where nobody counts. `is_table` is asked about paths
    /// below the directory.
    pub(super) fn reached(&self, is_table: &dyn Fn(&Path) -> bool) -> Option<Reached> {
        let mut all = Reached::default();
        for (path, reads) in self.slow.as_ref()?.reads_by_file() {
            match is_table(&path) {
                true => all.of_tables += reads.requests,
                false => all.others += reads.requests,
            }
            all.bytes += reads.bytes;
        }
        Some(all)
    }

    /// Takes it away once nobody holds it.
    pub(super) fn take_away(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let Some(slow) = self.slow.take() else {
            return Ok(());
        };
        let until = Instant::now() + RELEASE;
        loop {
            match slow.unmount() {
                Err(error) if error.kind() == ErrorKind::Busy && Instant::now() < until => {
                    std::thread::sleep(TRY);
                }
                // Joined only when it is gone: it would wait forever.
                Err(error) => return Err(error),
                Ok(()) => return slow.join(),
            }
        }
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // Told by `take_away`; here something else has failed already.
        let _ = self.end();
    }
}

/// Tries whether slow storage can be emulated here at all.
pub(super) fn probe(run_directory: &RunDirectory) -> Result<()> {
    let run = run_directory.run_dir();
    Storage::of(&run, Duration::from_micros(1), &run_directory.slow())?.take_away()
}
