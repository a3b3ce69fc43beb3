//! Directories that were opened once, and are reached through their descriptor since.
//!
//! Whoever may write into a directory can swap what is in it for a link at any moment. Who walks down from
//! an open directory by [`OpenDirectory::child`] follows none on the way, and stays below it.

use crate::own_directory::open_without_links;
use rustix::fs::{self as sys, CWD, Mode, OFlags, Stat};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Where the kernel shows the open files of this process.
pub(crate) const OPEN_FILES: &str = "/proc/self/fd";

/// An open directory, whoever it belongs to.
#[derive(Debug)]
pub struct OpenDirectory {
    path: PathBuf,
    descriptor: OwnedFd,
}

impl OpenDirectory {
    /// Opens a directory. Fails when the last part of `path` is a symbolic link, or not a directory; links
    /// before it are followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_at(CWD, path.as_os_str(), path.to_owned())
    }

    /// Opens a directory, and follows no link on the way there.
    pub(crate) fn open_without_links(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let descriptor = open_without_links(path, flags)?;
        Ok(Self {
            path: path.to_owned(),
            descriptor,
        })
    }

    /// Opens a directory in this one; fails likewise.
    pub fn child(&self, name: &OsStr) -> io::Result<Self> {
        Self::open_at(self.as_fd(), name, self.path.join(name))
    }

    fn open_at(above: BorrowedFd<'_>, name: &OsStr, path: PathBuf) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = sys::openat(above, name, flags, Mode::empty())?;
        Ok(Self { path, descriptor })
    }

    /// Returns what the kernel says of the open directory.
    pub fn stat(&self) -> io::Result<Stat> {
        Ok(sys::fstat(&self.descriptor)?)
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

impl AsFd for OpenDirectory {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_link_is_followed_on_the_way_down() {
        let dir = tempfile::tempdir().unwrap();
        let (top, elsewhere) = (dir.path().join("top"), dir.path().join("elsewhere"));
        fs::create_dir_all(top.join("shop")).unwrap();
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, top.join("link")).unwrap();
        symlink(&top, dir.path().join("another")).unwrap();
        let open = OpenDirectory::open(&top).unwrap();
        assert!(open.child(OsStr::new("shop")).is_ok());
        assert!(open.child(OsStr::new("link")).is_err());
        assert!(OpenDirectory::open(&dir.path().join("another")).is_err());
    }

    #[test]
    fn an_open_directory_stays_the_same_when_another_takes_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let (top, moved) = (dir.path().join("top"), dir.path().join("moved"));
        fs::create_dir_all(top.join("shop")).unwrap();
        let shop = OpenDirectory::open(&top).unwrap();
        let shop = shop.child(OsStr::new("shop")).unwrap();
        fs::rename(top.join("shop"), &moved).unwrap();
        fs::create_dir(top.join("shop")).unwrap();
        fs::write(shop.anchor().join("file"), "here").unwrap();
        assert_eq!(fs::read_to_string(moved.join("file")).unwrap(), "here");
        assert_eq!(shown(&shop.anchor().join("file")), moved.join("file"));
    }
}
