//! One run at a time works in a staging directory.

use super::Staging;
use evenkeel_op::own_directory::OwnDirectory;
use evenkeel_op::{Context, Error, ErrorKind, Result};
use rustix::fs::FlockOperation;
use std::path::Path;

/// Keeps other runs away as long as the directory stays open. `Busy` where one is at work.
pub(super) fn lock(made: &OwnDirectory, place: &Path) -> Result<()> {
    match rustix::fs::flock(made, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::new(
            ErrorKind::Busy,
            format!("another restore or clone is writing in {}", place.display()),
        )
        .hint("wait for it, or give another --target")),
        locked => locked.context(|| format!("failed to lock {}", place.display())),
    }
}

impl Staging {
    /// Locks a directory that was found, if there is one and it is not the one that this run has made.
    pub(super) fn lock_of_others(&self, found: Option<&OwnDirectory>) -> Result<()> {
        match found {
            Some(open) if !self.has_made(open) => lock(open, &self.place),
            _ => Ok(()),
        }
    }

    /// Refuses a mount point in which another run works, before anything of it is changed.
    pub(super) fn refuse_busy(&self) -> Result<()> {
        let found = OwnDirectory::find(&self.found_at())?;
        self.lock_of_others(found.as_ref().map(|(open, _)| open))
    }

    fn has_made(&self, open: &OwnDirectory) -> bool {
        let Some(made) = self.made.get() else {
            return false;
        };
        match (rustix::fs::fstat(&made.open), rustix::fs::fstat(open)) {
            (Ok(own), Ok(found)) => (own.st_dev, own.st_ino) == (found.st_dev, found.st_ino),
            _ => false,
        }
    }
}
