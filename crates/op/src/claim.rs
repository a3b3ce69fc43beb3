//! Files that say by the lock on them that their writer lives.

use crate::{Context, Error, ErrorKind, Result};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the lock of another is waited for: one that only reads has it for a moment, and what a
/// killed run started outlives it for a moment.
const PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// Opens a file to append to, makes it if needed with permissions `mode`, and locks it. What another
/// run that died had written is still in it.
///
/// Errors: `Busy` with `busy` as the message when another process keeps the lock; those of opening.
pub fn claim(path: &Path, mode: u32, busy: &str) -> Result<File> {
    let failed = || format!("failed to write {}", path.display());
    let until = Instant::now() + PATIENCE;
    loop {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(mode)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)
            .context(failed)?;
        match file.try_lock() {
            Ok(()) if is_at(&file, path) => return Ok(file),
            // Another run removed it just before the lock was ours.
            Ok(()) if Instant::now() < until => {}
            Ok(()) => return Err(Error::failed(failed()).because("it is removed time and again")),
            Err(error) if Instant::now() >= until => {
                return Err(Error::new(ErrorKind::Busy, busy)
                    .hint("try again")
                    .because(error));
            }
            Err(_) => std::thread::sleep(POLL),
        }
    }
}

/// Whether an open file is still the one at its path.
#[must_use]
pub fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}
