//! Files that are read where somebody else may have put anything: no link is followed, nothing but a regular file is
//! read, and who is led to a pipe does not wait for it.

use rustix::fs::{self as sys, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Opens a regular file to be read.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`] where something else has that name; or the system refuses.
pub fn open(path: &Path) -> io::Result<File> {
    open_at(CWD, path)
}

/// All bytes of a regular file.
///
/// # Errors
///
/// As with [`open`].
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    all_of(open(path)?)
}

/// An open directory. What is in it is reached through the descriptor, whatever is at its path by then.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    descriptor: OwnedFd,
}

impl Directory {
    /// Opens one that is no link; links on the way are followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = sys::open(path, flags, Mode::empty()).map_err(|why| match why {
            Errno::NOTDIR | Errno::LOOP => {
                other("it is not a directory, or is a symbolic link to one")
            }
            why => why.into(),
        })?;
        Ok(Self {
            path: path.to_owned(),
            descriptor,
        })
    }

    /// The names in it, in no order; those that are no text are left out.
    pub(crate) fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.descriptor)? {
            names.extend(entry?.file_name().to_str().map(str::to_owned));
        }
        Ok(names)
    }

    /// All bytes of a regular file in it; fails as [`read`] does.
    pub(crate) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        all_of(open_at(self.descriptor.as_fd(), Path::new(name))?)
    }
}

fn open_at(above: BorrowedFd<'_>, path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = sys::openat(above, path, flags, Mode::empty()).map_err(|why| match why {
        Errno::LOOP => other("it is a symbolic link, which evenkeel does not follow"),
        // A socket.
        Errno::NXIO => other(NOT_REGULAR),
        why => why.into(),
    })?;
    let file = File::from(opened);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(other(NOT_REGULAR)),
    }
}

const NOT_REGULAR: &str = "it is not a regular file";

fn other(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, what)
}

fn all_of(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
