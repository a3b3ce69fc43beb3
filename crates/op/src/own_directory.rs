//! Directories that nobody but this user can write into, opened once.
//!
//! Whoever owns the directory above may move such a directory away and put another in its place at any
//! moment. So it is opened once, looked at by its descriptor, and what is in it is reached through the
//! descriptor: by the `*at` calls, or by [`OpenDirectory::anchor`].

use crate::open_directory::OpenDirectory;
use crate::{Context, Error, Result};
use rustix::fs::{self as sys, Mode, Stat};
use rustix::process::geteuid;
use std::fs::{self, DirBuilder};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

pub use crate::open_directory::shown;

/// An open directory that was found to be this user's.
#[derive(Debug)]
pub struct OwnDirectory(OpenDirectory);

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
            return Err(
                refused("is open for other users to write into").hint(format!(
                    "if it is yours alone: chmod go-w {}",
                    path.display()
                )),
            );
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
        let open = OpenDirectory::open(path)?;
        let stat = open.stat()?;
        Ok((Self(open), stat))
    }
}

impl Deref for OwnDirectory {
    type Target = OpenDirectory;

    fn deref(&self) -> &OpenDirectory {
        &self.0
    }
}

impl AsFd for OwnDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Makes a directory for what nobody else on this host may read; one that is there is closed to others. For
/// root, one that belongs to another user is refused: its owner could lead what is written in it elsewhere.
///
/// Errors: `Refused` then; those of making and closing.
pub fn make_private(path: &Path) -> Result<()> {
    let failed = || format!("failed to make {}", path.display());
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).context(failed)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made.context(failed),
    }
    match close_to_others(path).context(failed)? {
        false if geteuid().is_root() => Err(Error::refused(format!(
            "{} belongs to another user",
            path.display()
        ))
        .hint(
            "name a directory that is not there yet, or make this one root's: its owner could lead \
                 what root writes elsewhere",
        )),
        _ => Ok(()),
    }
}

/// Takes the permissions of everybody else from a directory, if it is this user's. Returns whether it is.
pub fn close_to_others(path: &Path) -> io::Result<bool> {
    let open = fs::File::open(path)?;
    let stat = sys::fstat(&open)?;
    let is_ours = stat.st_uid == geteuid().as_raw();
    if is_ours && stat.st_mode & 0o077 != 0 {
        sys::fchmod(&open, Mode::from_raw_mode(stat.st_mode & 0o7700))?;
    }
    Ok(is_ours)
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
