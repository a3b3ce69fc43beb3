//! One run at a time works in a staging directory.

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
