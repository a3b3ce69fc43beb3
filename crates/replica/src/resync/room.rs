//! How much room the old files take, and how much there is.

use super::beside::Beside;
use evenkeel_op::{Context, Result};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes that the old files have on disk.
pub(super) fn used(beside: &Beside) -> Result<u64> {
    let open = beside.data()?;
    below(&open.anchor()).context(|| format!("failed to look at {}", beside.datadir.display()))
}

fn below(directory: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // Files come and go while the server runs.
        let Ok(found) = entry.metadata() else {
            continue;
        };
        bytes += found.blocks() * 512;
        if found.is_dir() {
            bytes += below(&entry.path()).unwrap_or(0);
        }
    }
    Ok(bytes)
}

/// Bytes that are free beside them.
pub(super) fn free(beside: &Beside) -> Result<u64> {
    let room = rustix::fs::fstatvfs(beside.parent())
        .map_err(std::io::Error::from)
        .context(|| format!("failed to examine {}", beside.datadir.display()))?;
    Ok(room.f_bavail * room.f_frsize)
}
