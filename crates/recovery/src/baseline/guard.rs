//! Keeps servers away from a data directory that is neither the one state nor the other.
//!
//! A server looks for its system tablespace first. While files come and go, a few words lie in its
//! place, which no server takes for one, and none makes a new one over them.

use super::store::{BaselineDirectory, sync_directory};
use super::tree;
use evenkeel_op::{Context, Result};
use rustix::fs::{CWD, RenameFlags};
use std::fs;
use std::path::{Path, PathBuf};

/// The file that servers look for first.
pub(super) const SYSTEM_SPACE: &str = "ibdata1";
/// What no server takes for it.
const STOPPER: &str = "evenkeel is rolling back here: run `evenkeel baseline` again\n";

/// Where the data directory's own file is meanwhile; it is not there before [`put_up`].
pub(super) fn held(place: &BaselineDirectory) -> PathBuf {
    place.work("held")
}

/// Puts the words in the place of the system tablespace, in one step. Does nothing when they are there.
pub(super) fn put_up(place: &BaselineDirectory, datadir: &Path) -> Result<()> {
    let (there, held) = (datadir.join(SYSTEM_SPACE), held(place));
    if tree::holds(&there, STOPPER.as_bytes()) {
        return Ok(());
    }
    let failed = || format!("failed to guard {}", datadir.display());
    fs::write(&held, STOPPER).context(failed)?;
    tree::sync(datadir)?;
    let swap = |flags| rustix::fs::renameat_with(CWD, &held, CWD, &there, flags);
    match swap(RenameFlags::EXCHANGE) {
        Ok(()) => {}
        Err(rustix::io::Errno::NOENT) => fs::rename(&held, &there).context(failed)?,
        Err(errno) => return Err(std::io::Error::from(errno)).context(failed),
    }
    sync_directory(datadir)
}

/// Puts `system_space` in the place of the words, in one step: the last one of all. Where there is
/// none, the words go.
pub(super) fn take_down(datadir: &Path, system_space: &Path) -> Result<()> {
    let there = datadir.join(SYSTEM_SPACE);
    let failed = || format!("failed to move the new files to {}", there.display());
    if system_space.exists() {
        fs::rename(system_space, &there).context(failed)?;
    } else if tree::holds(&there, STOPPER.as_bytes()) {
        fs::remove_file(&there).context(failed)?;
    }
    sync_directory(datadir)
}

/// Whether the words are there.
pub(super) fn is_up(datadir: &Path) -> bool {
    tree::holds(&datadir.join(SYSTEM_SPACE), STOPPER.as_bytes())
}
