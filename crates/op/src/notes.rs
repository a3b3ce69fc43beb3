//! Directories of notes, each a file that says by the lock on it that its writer lives.
//!
//! Whoever can write into such a directory has others act, as root too: stop processes, run statements,
//! remove files. So a directory counts only when nobody but its owner may write into it, and the owner is
//! root or this user. It is opened once; everything in it is reached from there, by name, through no link.

use crate::own_directory::{OwnDirectory, is_trusted};
use crate::{Context, Error, ErrorKind, Result};
use rustix::fs::{self as sys, AtFlags, Dir, FileType, Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the lock of another is waited for: one that only reads has it for a moment, and what a
/// killed run started outlives it for a moment.
const TIMEOUT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);
/// The mode of a note.
const OWN: Mode = Mode::from_raw_mode(0o600);

/// A directory of notes.
#[derive(Debug)]
pub struct Notes(OwnDirectory);

impl Notes {
    /// Makes a directory of this user's with permissions `mode`, and those above it that are not there;
    /// one that is there already must be this user's alone.
    ///
    /// Errors: `Refused` when it is somebody else's, or others may write into it.
    pub fn make(path: &Path, mode: u32) -> Result<Self> {
        OwnDirectory::make(path, mode).map(Self)
    }

    /// Opens a directory of notes. `None` when it is not there, or somebody may have written into it who
    /// is neither root nor this user.
    #[must_use]
    pub fn open(path: &Path) -> Option<Self> {
        OwnDirectory::open_trusted(path).map(Self)
    }

    /// Returns the names in it.
    #[must_use]
    pub fn names(&self) -> Vec<OsString> {
        let entries = Dir::read_from(&self.0).into_iter().flatten().flatten();
        entries
            .map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned())
            .filter(|name| name != "." && name != "..")
            .collect()
    }

    /// Returns where a note of this name is, to be shown.
    #[must_use]
    pub fn path(&self, name: &OsStr) -> PathBuf {
        self.0.path().join(name)
    }

    /// Opens a note to append to, makes it if needed, and locks it. What another run that died had written
    /// is still in it. Nobody else opens it: whoever could, were it only to read, could keep the lock.
    ///
    /// Errors: `Busy` with `busy` as the message when another process keeps the lock; those of opening.
    pub fn claim(&self, name: &OsStr, busy: &str) -> Result<File> {
        let failed = || format!("failed to write {}", self.path(name).display());
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW;
        let until = Instant::now() + TIMEOUT;
        loop {
            let flags = flags | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = sys::openat(&self.0, name, flags, OWN);
            let file = File::from(file.map_err(io::Error::from).context(failed)?);
            // One of before may be open to others.
            sys::fchmod(&file, OWN).context(failed)?;
            match file.try_lock() {
                Ok(()) if self.has(&file, name) => return Ok(file),
                // Another run removed it just before the lock was ours.
                Ok(()) if Instant::now() < until => {}
                Ok(()) => {
                    return Err(Error::failed(failed()).because("it keeps being removed"));
                }
                Err(error) if Instant::now() >= until => {
                    return Err(Error::new(ErrorKind::Busy, busy)
                        .hint("try again")
                        .because(error));
                }
                Err(_) => std::thread::sleep(POLL),
            }
        }
    }

    /// Opens a note to read. `None` for what is no file of root's or this user's.
    #[must_use]
    pub fn read(&self, name: &OsStr) -> Option<File> {
        // Nothing here may be waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = sys::openat(&self.0, name, flags, Mode::empty()).ok()?;
        let stat = sys::fstat(&file).ok()?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        (is_file && is_trusted(&stat)).then(|| File::from(file))
    }

    /// Whether an open note is still the one of its name.
    #[must_use]
    pub fn has(&self, file: &File, name: &OsStr) -> bool {
        let there = sys::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW);
        match (sys::fstat(file), there) {
            (Ok(open), Ok(there)) => (open.st_dev, open.st_ino) == (there.st_dev, there.st_ino),
            _ => false,
        }
    }

    /// Removes a note in which nothing stands: its run was killed before it wrote. `file` is the open note;
    /// a living run's stays.
    pub fn remove_empty(&self, file: &File, name: &OsStr) {
        let is_empty = || file.metadata().is_ok_and(|found| found.len() == 0);
        // Looked at under the lock: who has it writes next.
        if is_empty() && file.try_lock().is_ok() && is_empty() && self.has(file, name) {
            self.remove(name);
        }
    }

    /// Removes a note; one that is not there any more is no error.
    pub fn remove(&self, name: &OsStr) {
        let _ = sys::unlinkat(&self.0, name, AtFlags::empty());
    }
}
