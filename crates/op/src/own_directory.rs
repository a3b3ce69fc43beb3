//! Directories that nobody but this user can write into, opened once.
//!
//! Whoever owns the directory above may move such a directory away and put another in its place at any
//! moment. So it is opened once, looked at by its descriptor, and what is in it is reached through the
//! descriptor: by the `*at` calls, or by [`OwnDirectory::anchor`].

use crate::{Context, Error, Result};
use rustix::fs::{self as sys, Mode, OFlags, Stat};
use rustix::process::geteuid;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Where the kernel shows the open files of this process.
const OPEN_FILES: &str = "/proc/self/fd";

/// An open directory.
#[derive(Debug)]
pub struct OwnDirectory {
    path: PathBuf,
    descriptor: OwnedFd,
}

impl OwnDirectory {
    /// Makes a directory with permissions `mode`, with the usual ones those above it that are not there,
    /// and opens it. One that is there already must be this user's, and closed to other writers.
    ///
    /// Errors: `Refused` when it is not; those of making and opening.
    pub fn make(path: &Path, mode: u32) -> Result<Self> {
        let failed = || format!("failed to make {}", path.display());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).context(failed)?;
        }
        match DirBuilder::new().mode(mode).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(error).context(failed)
            }
            _ => Self::open(path),
        }
    }

    /// Opens a directory that is this user's and closed to other writers.
    ///
    /// Errors: `Refused` when it is not, or is a symbolic link; those of opening.
    pub fn open(path: &Path) -> Result<Self> {
        let refused = |why: &str| {
            Error::refused(format!("{} {why}", path.display())).hint(
                "look who made it; if nothing in it is needed, move it away or delete it, and run again",
            )
        };
        let (directory, stat) = match Self::open_any(path) {
            Ok(open) => open,
            Err(error) if is_no_directory(&error) => {
                return Err(refused("is a symbolic link, or no directory"));
            }
            Err(error) => {
                return Err(error).context(|| format!("failed to open {}", path.display()));
            }
        };
        if stat.st_uid != geteuid().as_raw() {
            return Err(refused("belongs to another user"));
        }
        if !is_closed_to_others(&stat) {
            return Err(refused("is open for other users to write into"));
        }
        Ok(directory)
    }

    /// Opens a directory that is root's or this user's, and closed to other writers. `None` for any
    /// other, and where there is none.
    #[must_use]
    pub fn open_trusted(path: &Path) -> Option<Self> {
        let (directory, stat) = Self::open_any(path).ok()?;
        (is_trusted(&stat) && is_closed_to_others(&stat)).then_some(directory)
    }

    fn open_any(path: &Path) -> io::Result<(Self, Stat)> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = sys::open(path, flags, Mode::empty())?;
        let stat = sys::fstat(&descriptor)?;
        let path = path.to_owned();
        Ok((Self { path, descriptor }, stat))
    }

    /// Returns where it was when it was opened: to be shown, not to be used.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a path that leads into the open directory, wherever it is and whatever is at its path
    /// now. Good for this process alone, and as long as the directory is open.
    #[must_use]
    pub fn anchor(&self) -> PathBuf {
        Path::new(OPEN_FILES).join(self.descriptor.as_raw_fd().to_string())
    }
}

impl AsFd for OwnDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Returns a path as people know it: what is behind an anchor, where that is now.
#[must_use]
pub fn shown(path: &Path) -> PathBuf {
    let Ok(below) = path.strip_prefix(OPEN_FILES) else {
        return path.to_owned();
    };
    let mut parts = below.components();
    let open = parts
        .next()
        .and_then(|number| fs::read_link(Path::new(OPEN_FILES).join(number)).ok());
    match open {
        Some(directory) if parts.as_path().as_os_str().is_empty() => directory,
        Some(directory) => directory.join(parts.as_path()),
        None => path.to_owned(),
    }
}

/// Whether what `stat` describes is root's or this user's.
#[must_use]
pub fn is_trusted(stat: &Stat) -> bool {
    stat.st_uid == 0 || stat.st_uid == geteuid().as_raw()
}

fn is_closed_to_others(stat: &Stat) -> bool {
    stat.st_mode & 0o022 == 0
}

/// The kernel says of a link that it would follow too many, or that it is no directory.
fn is_no_directory(error: &io::Error) -> bool {
    let number = rustix::io::Errno::from_io_error(error);
    matches!(
        number,
        Some(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR)
    )
}
