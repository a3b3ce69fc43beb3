//! Directories of notes, each a file that says by the lock on it that its writer lives.
//!
//! Whoever can write into such a directory has others act, as root too: stop processes, run statements,
//! remove files. So a directory counts only when nobody but its owner may write into it, and the owner is
//! root or this user. It is opened once; everything in it is reached from there, by name, through no link.

use crate::{Context, Error, ErrorKind, Result};
use rustix::fs::{self as sys, AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::process::geteuid;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the lock of another is waited for: one that only reads has it for a moment, and what a
/// killed run started outlives it for a moment.
const PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// A directory of notes.
#[derive(Debug)]
pub struct Notes {
    path: PathBuf,
    directory: OwnedFd,
}

impl Notes {
    /// Makes a directory of this user's with permissions `mode`, and those above it that are not there;
    /// one that is there already must be this user's alone.
    ///
    /// Errors: `Refused` when it is somebody else's, or others may write into it.
    pub fn make(path: &Path, mode: u32) -> Result<Self> {
        let failed = || format!("failed to make {}", path.display());
        let mut builder = DirBuilder::new();
        builder
            .recursive(true)
            .mode(mode)
            .create(path)
            .context(failed)?;
        let refused = |why: &str| {
            Error::refused(format!("{} {why}", path.display())).hint(format!(
                "look who made it, then: mv {0} {0}.old",
                path.display()
            ))
        };
        let (notes, stat) = Self::open_any(path)
            .map_err(|error| refused("is not a directory that evenkeel made").because(error))?;
        if stat.st_uid != geteuid().as_raw() {
            return Err(refused("is another user's"));
        }
        if !is_owners_alone(&stat) {
            return Err(refused("is open for other users to write into"));
        }
        Ok(notes)
    }

    /// Opens a directory of notes. `None` when it is not there, or somebody may have written into it who
    /// is neither root nor this user.
    #[must_use]
    pub fn open(path: &Path) -> Option<Self> {
        let (notes, stat) = Self::open_any(path).ok()?;
        (is_trusted(&stat) && is_owners_alone(&stat)).then_some(notes)
    }

    fn open_any(path: &Path) -> io::Result<(Self, Stat)> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = sys::open(path, flags, Mode::empty())?;
        let stat = sys::fstat(&directory)?;
        let path = path.to_owned();
        Ok((Self { path, directory }, stat))
    }

    /// Returns the names in it.
    #[must_use]
    pub fn names(&self) -> Vec<OsString> {
        let entries = Dir::read_from(&self.directory)
            .into_iter()
            .flatten()
            .flatten();
        entries
            .map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned())
            .filter(|name| name != "." && name != "..")
            .collect()
    }

    /// Returns where a note of this name is, to be shown.
    #[must_use]
    pub fn path(&self, name: &OsStr) -> PathBuf {
        self.path.join(name)
    }

    /// Opens a note to append to, makes it if needed with permissions `mode`, and locks it. What
    /// another run that died had written is still in it.
    ///
    /// Errors: `Busy` with `busy` as the message when another process keeps the lock; those of opening.
    pub fn claim(&self, name: &OsStr, mode: u32, busy: &str) -> Result<File> {
        let failed = || format!("failed to write {}", self.path(name).display());
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW;
        let until = Instant::now() + PATIENCE;
        loop {
            let flags = flags | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = sys::openat(&self.directory, name, flags, Mode::from_raw_mode(mode));
            let file = File::from(file.map_err(io::Error::from).context(failed)?);
            match file.try_lock() {
                Ok(()) if self.has(&file, name) => return Ok(file),
                // Another run removed it just before the lock was ours.
                Ok(()) if Instant::now() < until => {}
                Ok(()) => {
                    return Err(Error::failed(failed()).because("it is removed time and again"));
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
        let file = sys::openat(&self.directory, name, flags, Mode::empty()).ok()?;
        let stat = sys::fstat(&file).ok()?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        (is_file && is_trusted(&stat)).then(|| File::from(file))
    }

    /// Whether an open note is still the one of its name.
    #[must_use]
    pub fn has(&self, file: &File, name: &OsStr) -> bool {
        let there = sys::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW);
        match (sys::fstat(file), there) {
            (Ok(open), Ok(there)) => (open.st_dev, open.st_ino) == (there.st_dev, there.st_ino),
            _ => false,
        }
    }

    /// Removes a note; one that is not there any more is no error.
    pub fn remove(&self, name: &OsStr) {
        let _ = sys::unlinkat(&self.directory, name, AtFlags::empty());
    }
}

fn is_trusted(stat: &Stat) -> bool {
    stat.st_uid == 0 || stat.st_uid == geteuid().as_raw()
}

fn is_owners_alone(stat: &Stat) -> bool {
    stat.st_mode & 0o022 == 0
}
