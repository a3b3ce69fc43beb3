//! Directories that nobody but this user can write into, opened once.
//!
//! Whoever owns the directory above may move such a directory away and put another in its place at any
//! moment. So it is opened once, looked at by its descriptor, and what is in it is reached through the
//! descriptor: by the `*at` calls, or by [`OpenDirectory::anchor`].

use crate::open_directory::{OPEN_FILES, OpenDirectory};
use crate::{Context, Error};
use rustix::fs::{self as sys, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

pub use crate::open_directory::shown;

/// An open directory that was found to be this user's.
#[derive(Debug)]
pub struct OwnDirectory(OpenDirectory);

impl OwnDirectory {
    /// Makes a directory with permissions `mode`, with the usual ones those above it that are not there,
    /// and opens it. One that is there already must be this user's, and closed to other writers.
    ///
    /// Errors: `Refused` when it is not; those of making and opening.
    pub fn make(path: &Path, mode: u32) -> crate::Result<Self> {
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
    pub fn open(path: &Path) -> crate::Result<Self> {
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

    /// Opens a directory, and no link to one; `None` where there is none. Whose it is, and which, is the
    /// caller's to judge, by its status.
    ///
    /// Errors: `Refused` when it is a symbolic link or no directory; those of opening.
    pub fn find(path: &Path) -> crate::Result<Option<(Self, Stat)>> {
        match Self::open_any(path) {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if is_no_directory(&error) => Err(Error::refused(format!(
                "{} is a symbolic link, or no directory",
                path.display()
            ))
            .hint("move it away, and run again")),
            Err(error) => Err(error).context(|| format!("failed to open {}", path.display())),
        }
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

/// Opens a file or directory, and follows no symbolic link on the way there. A path that had none when it
/// was looked at leads to nothing else then, whatever was put on the way. It may begin with an anchor.
///
/// Errors: those of opening; what is or goes through a link is named as such.
pub fn open_without_links(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    let (start, below) = start_of(path);
    let way = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let start = sys::open(start, way, Mode::empty())?;
    let links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let opened = match sys::openat2(&start, below, flags, Mode::empty(), links) {
        // An older kernel, or one that is kept from it.
        Err(Errno::NOSYS | Errno::PERM) => step_by_step(start, below, flags),
        other => other,
    };
    opened.map_err(|errno| match errno {
        Errno::LOOP => io::Error::other("a symbolic link was put there since it was looked at"),
        errno => errno.into(),
    })
}

/// Splits a path into a directory that is trusted, and the way from there.
fn start_of(path: &Path) -> (PathBuf, &Path) {
    if let Ok(below) = path.strip_prefix(OPEN_FILES) {
        let mut parts = below.components();
        if let Some(number) = parts.next()
            && !parts.as_path().as_os_str().is_empty()
        {
            return (Path::new(OPEN_FILES).join(number), parts.as_path());
        }
    }
    match path.strip_prefix("/") {
        Ok(below) => (PathBuf::from("/"), below),
        Err(_) => (PathBuf::from("."), path),
    }
}

fn step_by_step(mut at: OwnedFd, below: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let way = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut parts: Vec<_> = below.iter().collect();
    let last = parts.pop().ok_or(Errno::NOENT)?;
    for part in parts {
        // The kernel says of a link that it is no directory.
        at = sys::openat(&at, part, way, Mode::empty()).map_err(|errno| match errno {
            Errno::NOTDIR => Errno::LOOP,
            errno => errno,
        })?;
    }
    sys::openat(&at, last, flags | OFlags::NOFOLLOW, Mode::empty())
}

/// Makes a directory for what nobody else on this host may read; one that is there is closed to others. For
/// root, one that belongs to another user is refused: its owner could lead what is written in it elsewhere.
///
/// Errors: `Refused` then; those of making and closing.
pub fn make_private(path: &Path) -> crate::Result<()> {
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
    matches!(
        Errno::from_io_error(error),
        Some(Errno::LOOP | Errno::NOTDIR)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_link_is_followed_anywhere_on_the_way() {
        let room = tempfile::tempdir().unwrap();
        let top = room.path().canonicalize().unwrap();
        fs::create_dir(top.join("real")).unwrap();
        fs::write(top.join("real/file"), "x").unwrap();
        symlink(top.join("real"), top.join("way")).unwrap();
        symlink("file", top.join("real/other")).unwrap();
        let anchored = OwnDirectory::open(&top).unwrap();
        for top in [top.clone(), anchored.anchor()] {
            let open = |name: &str| open_without_links(&top.join(name), OFlags::RDONLY);
            let mut text = String::new();
            let mut file = File::from(open("real/file").unwrap());
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "x");
            for name in ["way/file", "real/other"] {
                let error = open(name).unwrap_err();
                assert!(
                    error.to_string().contains("symbolic link"),
                    "{name}: {error}"
                );
            }
            let error = open("real/none").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
            let step = |name: &str| {
                let start = sys::open(&top, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
                step_by_step(start, Path::new(name), OFlags::RDONLY)
            };
            assert!(step("real/file").is_ok());
            assert_eq!(step("way/file").unwrap_err(), Errno::LOOP);
            assert_eq!(step("real/other").unwrap_err(), Errno::LOOP);
        }
    }
}
