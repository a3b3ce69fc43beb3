//! What every way of freezing a data directory can do.

use evenkeel_op::{Error, Result};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A file of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Its name in a generation: `root/relative/path`.
    pub name: String,
    /// Where it is on this host, without symbolic links: whose it is was looked at there, and a link that is
    /// found there now is refused.
    pub path: PathBuf,
}

/// What a snapshot is atomic over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Atomicity {
    /// One point in time for everything that was written.
    Whole,
    /// One point in time for everything that was synced. What was written and not synced may be in it or
    /// not, whatever the order of the writes: a server that relies on its syncs recovers from it, one
    /// that does not sync its logs at commit has to be paused.
    Synced,
    /// Each file has a point in time of its own: needs a pause or a splice.
    PerFile,
    /// The files do not change at all.
    Stopped,
}

/// What is known of a file's difference from the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// Nothing: read everything.
    Unknown,
    /// Sorted, disjoint byte ranges that may differ; everything outside is byte-equal to the base.
    Ranges(Vec<Range<u64>>),
}

/// A way of freezing files. Calls come in the order in which they are listed here: the states of a run make sure of it.
pub(crate) trait Provider: Send + Sync {
    /// Returns `btrfs`, `reflink`, `lvm`, `copy` or `hook`.
    fn name(&self) -> &'static str;

    /// Returns what the snapshot is atomic over.
    fn atomicity(&self) -> Atomicity;

    /// Does what can be done beforehand of a `take` of these files, so that it takes less time:
    /// optional, and outside any lock or pause. A file may vanish meanwhile; what fails here is
    /// left to `take`.
    fn prepare(&mut self, files: &[SourceFile]) {
        let _ = files;
    }

    /// Per-file: clones these files now, in the order in which they stand; may be called several times. Whole:
    /// remembers them; after `instant`, those that are in the snapshot, though perhaps gone since.
    fn take(&mut self, files: &[SourceFile]) -> Result<()>;

    /// Whole: makes the snapshot now. Otherwise does nothing.
    fn instant(&mut self) -> Result<()>;

    /// Brings the snapshot to disk; to be called when all locks are released.
    fn seal(&mut self) -> Result<()>;

    /// Returns where a directory lies in the snapshot, after `instant`. Whole only.
    fn frozen_dir(&self, live: &Path) -> Result<PathBuf> {
        Err(Error::failed(format!(
            "no snapshot contains all of {}",
            live.display()
        )))
    }

    /// Returns where the frozen bytes of a file that was taken can be read.
    fn frozen_path(&self, file: &SourceFile) -> PathBuf;

    /// Overwrites bytes of a frozen file. Per-file only.
    fn patch(&mut self, file: &SourceFile, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Returns where a file may differ from the base that the provider was opened with.
    fn changed(&self, file: &SourceFile) -> Result<Changed>;

    /// Says why `changed` can tell of no file what differs from that base; nothing where it can. To be asked
    /// after `seal`.
    fn nothing_to_compare_with(&self) -> Option<&'static str> {
        Some("this snapshot method keeps nothing that the next run could compare with")
    }

    /// Fails when the snapshot is lost, or is about to be: asked again and again while it is read, so
    /// it takes no time.
    fn holds(&self) -> Result<()> {
        Ok(())
    }

    /// Fails if the frozen files did not stay frozen. To be called after the last byte was read and
    /// before the generation is published.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Makes this snapshot the base for the next run, under `token`; the former base is gone then.
    fn commit(self: Box<Self>, token: &str) -> Result<()>;

    /// Ends a run without a generation: the next one finds what changed since the former base.
    fn abandon(self: Box<Self>) -> Result<()>;
}
