//! A directory behind a slow disk: what is read from it arrives after a delay.
//!
//! ```text
//!  read, direct write, fsync ──► done at once ──► Queue ── when it is due ──► answer
//! ```
//!
//! The kernel keeps what it read, as of any disk: a read that arrives here is one that its page
//! cache could not answer, or a direct one. They are counted.

mod queue;

use crate::scratch::{Overlay, Writable};
use crate::session::Mounted;
use evenkeel_op::{Context, Result};
use fuser::{MountOption, OpenFlags};
use queue::Queue;
use rustix::fs::OFlags;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Threads that answer the kernel: one may have to wait for the real disk below.
const THREADS: usize = 8;

/// How long a slow disk takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delay {
    /// For a read that reaches it.
    pub read: Duration,
    /// For a write that its caller waits for until it is on the disk: a direct or synchronous one,
    /// or an fsync. Others are done when the page cache has them.
    pub write: Duration,
}

/// Reads that reached a disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reads {
    /// How many.
    pub requests: u64,
    /// Bytes they asked for and got.
    pub bytes: u64,
}

/// A directory that is shown elsewhere with a [`Delay`], until it is unmounted.
pub struct Delayed {
    mounted: Mounted,
    overlay: Arc<Overlay>,
    slow: Arc<Slow>,
}

/// What makes a filesystem a slow one.
pub(crate) struct Slow {
    delay: Delay,
    queue: Queue,
    /// By the file's number.
    counts: Mutex<HashMap<u64, Reads>>,
}

impl Slow {
    fn start(delay: Delay) -> Result<Self> {
        Ok(Self {
            delay,
            queue: Queue::start().context(|| "failed to start a thread".to_owned())?,
            counts: Mutex::default(),
        })
    }

    /// Answers a read of a file that has arrived at `asked` and has brought so many bytes.
    pub(crate) fn read(
        &self,
        (number, bytes): (u64, usize),
        asked: Instant,
        answer: impl FnOnce() + Send + 'static,
    ) {
        let mut counts = held(&self.counts);
        let reads = counts.entry(number).or_default();
        reads.requests += 1;
        reads.bytes += bytes as u64;
        drop(counts);
        self.queue.answer(asked, self.delay.read, answer);
    }

    /// Answers a write, to a file that was opened with these flags.
    pub(crate) fn write(
        &self,
        flags: OpenFlags,
        asked: Instant,
        answer: impl FnOnce() + Send + 'static,
    ) {
        let waits = (OFlags::DIRECT | OFlags::SYNC | OFlags::DSYNC).bits();
        match flags.0 as u32 & waits {
            0 => answer(),
            _ => self.sync(asked, answer),
        }
    }

    /// Answers an fsync.
    pub(crate) fn sync(&self, asked: Instant, answer: impl FnOnce() + Send + 'static) {
        self.queue.answer(asked, self.delay.write, answer);
    }
}

impl std::fmt::Debug for Delayed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut f = f.debug_struct("Delayed");
        f.field("mounted", &self.mounted).finish_non_exhaustive()
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Numbers: a thread that panicked left none half-written.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mounted {
    /// Shows `directory` at `mountpoint`, for reading and writing, as if it lay on a slow disk.
    /// Nobody else may write below `directory` meanwhile.
    pub fn delayed(directory: &Path, delay: Delay, mountpoint: &Path) -> Result<Delayed> {
        let overlay = Overlay::plain(directory)?;
        let slow = Arc::new(Slow::start(delay)?);
        let filesystem = Writable::slow(Arc::clone(&overlay), Arc::clone(&slow));
        Ok(Delayed {
            mounted: Self::mount(filesystem, mountpoint, MountOption::RW, THREADS)?,
            overlay,
            slow,
        })
    }
}

impl Delayed {
    /// Returns the reads that have reached the disk.
    #[must_use]
    pub fn reads(&self) -> Reads {
        let mut all = Reads::default();
        for reads in held(&self.slow.counts).values() {
            all.requests += reads.requests;
            all.bytes += reads.bytes;
        }
        all
    }

    /// Returns those of one file, by its path below the directory.
    #[must_use]
    pub fn reads_of(&self, path: &Path) -> Reads {
        let found = self.reads_by_file().get(path).copied();
        found.unwrap_or_default()
    }

    /// Returns those of each file that was read and still has a name, by its path below the
    /// directory.
    #[must_use]
    pub fn reads_by_file(&self) -> BTreeMap<PathBuf, Reads> {
        let counts = held(&self.slow.counts).clone();
        let counts = counts.into_iter();
        counts
            .filter_map(|(number, reads)| Some((self.overlay.name(number)?, reads)))
            .collect()
    }

    /// Returns how many answers have waited side by side for their time, at most.
    #[must_use]
    pub fn most_waiting(&self) -> usize {
        self.slow.queue.most()
    }

    /// Unmounts it; see [`Mounted::unmount`]. What the kernel kept of it is gone then.
    pub fn unmount(&self) -> Result<()> {
        self.mounted.unmount()
    }

    /// Waits until everything that was asked is answered, after it was unmounted.
    pub fn join(self) -> Result<()> {
        self.mounted.join()
    }
}
