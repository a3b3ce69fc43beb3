//! Many clones quickly: directories are opened once, and files by name inside them.
//!
//! One thread: two and four took as long or longer, on XFS with two processors, for 1 000 and 10 000
//! small files and for 16 files of 4 800 extents each. Clones of one filesystem wait for each other
//! in its log. Making the empty files beforehand takes a third to a half off.

use evenkeel_op::{Context, Error, Result};
use rustix::fs::{IFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Files of one directory that are cloned into one folder.
pub(super) struct Group {
    source: PathBuf,
    target: PathBuf,
    store: usize,
    names: Vec<(OsString, String)>,
}

impl Group {
    pub(super) fn new(source: &Path, target: PathBuf, store: usize) -> Self {
        Self {
            source: source.to_owned(),
            target,
            store,
            names: Vec::new(),
        }
    }

    pub(super) fn store(&self) -> usize {
        self.store
    }

    fn make_folder(&self) -> Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.target)
            .context(|| format!("failed to make {}", self.target.display()))
    }

    /// Adds a file: its name in the source directory and that of its clone.
    pub(super) fn add(&mut self, source: &OsStr, target: String) {
        self.names.push((source.to_owned(), target));
    }
}

/// Makes an empty file for every clone.
pub(super) fn make_targets(groups: &[Group]) -> Result<()> {
    for group in groups {
        group.make_folder()?;
        let to = open_folder(&group.target)?;
        for (_, target) in &group.names {
            open_target(&to, target).map_err(|errno| explain(errno, &group.target.join(target)))?;
        }
    }
    Ok(())
}

/// Clones every file of every group.
pub(super) fn all(groups: &[Group]) -> Result<()> {
    for group in groups {
        group.make_folder()?;
        let (from, to) = (open_folder(&group.source)?, open_folder(&group.target)?);
        for (source, target) in &group.names {
            clone_file(&from, source, &to, target)
                .map_err(|errno| explain(errno, &group.source.join(source)))?;
        }
    }
    Ok(())
}

fn open_folder(path: &Path) -> Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
        .map(File::from)
        .context(|| format!("failed to open {}", path.display()))
}

/// Opens the file that becomes a clone, empty: cloning onto a longer file would leave its end.
fn open_target(folder: &File, name: &str) -> Result<File, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR).map(File::from)
}

fn clone_file(from: &File, source: &OsStr, to: &File, target: &str) -> Result<(), Errno> {
    // Not blocking: a FIFO among the files must not hold up a run that may have stopped a server.
    let read = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let source = rustix::fs::openat(from, source, read, Mode::empty())?;
    let target = open_target(to, target)?;
    match rustix::fs::ioctl_ficlone(&target, &source) {
        // btrfs clones only between files that agree on copy-on-write and checksums, and the flag
        // (chattr +C, which servers set on their own files) can be given to an empty file only.
        Err(Errno::INVAL) => {
            let flags = rustix::fs::ioctl_getflags(&source)?;
            if !flags.contains(IFlags::NOCOW) {
                return Err(Errno::INVAL);
            }
            let own = rustix::fs::ioctl_getflags(&target)?;
            rustix::fs::ioctl_setflags(&target, own | IFlags::NOCOW)?;
            rustix::fs::ioctl_ficlone(&target, &source)
        }
        other => other,
    }
}

fn explain(errno: Errno, path: &Path) -> Error {
    let error = Error::failed(format!("failed to clone {}", path.display()));
    let error = match errno {
        Errno::NOENT => error.hint("it vanished between being listed and being cloned; run again"),
        Errno::NOSPC => error.hint("the filesystem is full; clones need a little room"),
        Errno::XDEV => {
            error.hint("it is a symbolic link or mount that leads to another filesystem")
        }
        _ => error,
    };
    error.because(std::io::Error::from(errno))
}
