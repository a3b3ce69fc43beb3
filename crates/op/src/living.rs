//! Directories that go with the run that made them; when that one is killed, with a later run of its user.
//!
//! Whoever uses such a directory holds a lock on it, so one that nobody holds is a dead run's. Process
//! numbers would not tell: they are given again.

use crate::own_directory::OwnDirectory;
use crate::{Context, Result};
use rustix::fs::{self as sys, FlockOperation, Mode};
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Who may not read a directory cannot lock it.
const CLOSED: u32 = 0o700;

/// A directory of this user's, held by this run. Removed, with all that is in it, when dropped.
#[derive(Debug)]
pub struct Living(OwnDirectory);

impl Living {
    /// Makes a new directory. `None` when something is there, or is put there meanwhile.
    pub fn make(path: &Path) -> Result<Option<Self>> {
        match DirBuilder::new().mode(CLOSED).create(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            Err(error) => {
                return Err(error).context(|| format!("failed to create {}", path.display()));
            }
        }
        // Another run may have taken it for a dead one's just before it was locked.
        Ok(OwnDirectory::open(path).ok().and_then(Self::hold))
    }

    /// Holds an open directory. `None` when its run lives, or something else is at its place by now.
    #[must_use]
    pub fn hold(directory: OwnDirectory) -> Option<Self> {
        sys::flock(&directory, FlockOperation::NonBlockingLockExclusive).ok()?;
        let (open, there) = (
            sys::fstat(&directory).ok()?,
            sys::lstat(directory.path()).ok()?,
        );
        let is_there = (open.st_dev, open.st_ino) == (there.st_dev, there.st_ino);
        is_there.then_some(Self(directory))
    }

    /// Returns where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the way into it, for this process.
    #[must_use]
    pub fn anchor(&self) -> PathBuf {
        self.0.anchor()
    }

    /// Sets its permissions. No other user may read it: whoever can open it can keep the lock.
    pub fn set_mode(&self, mode: u32) -> Result<()> {
        sys::fchmod(&self.0, Mode::from_raw_mode(mode))
            .map_err(io::Error::from)
            .context(|| format!("failed to set the mode of {}", self.path().display()))
    }

    /// Removes what is in it.
    pub fn clear(&self) -> io::Result<()> {
        for entry in fs::read_dir(self.anchor())? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        // What cannot be removed now is removed by a later run.
        let _ = self.clear();
        let _ = fs::remove_dir(self.path());
        // Said aloud: closing is not enough while a child that is just being started has a copy.
        let _ = sys::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Removes what dead runs of this user left in a directory, as far as `is_named` says so of its name, and
/// `is_ours` of the way into it. What is another user's, or in use, stays.
pub fn sweep(
    parent: &Path,
    is_named: impl Fn(&OsStr) -> bool,
    is_ours: impl Fn(&OsStr, &Path) -> bool,
) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        // Whatever else is there is not even opened.
        if is_named(&name)
            && let Ok(directory) = OwnDirectory::open(&entry.path())
            && is_ours(&name, &directory.anchor())
        {
            drop(Living::hold(directory));
        }
    }
}
