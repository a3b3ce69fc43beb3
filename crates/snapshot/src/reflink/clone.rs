//! Many clones quickly: directories are opened once, and files by name inside them.

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

    /// Adds a file: its name in the source directory and that of its clone.
    pub(super) fn add(&mut self, source: &OsStr, target: String) {
        self.names.push((source.to_owned(), target));
    }
}

/// Clones every file of every group.
pub(super) fn all(groups: &[Group]) -> Result<()> {
    for group in groups {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&group.target)
            .context(|| format!("failed to make {}", group.target.display()))?;
    }
    groups
        .iter()
        .try_for_each(|group| clone_group(group, &group.names))
}

fn clone_group(group: &Group, names: &[(OsString, String)]) -> Result<()> {
    let open = |path: &Path| {
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        rustix::fs::open(path, flags, Mode::empty())
            .map(File::from)
            .context(|| format!("failed to open {}", path.display()))
    };
    let (from, to) = (open(&group.source)?, open(&group.target)?);
    names.iter().try_for_each(|(source, target)| {
        clone_file(&from, source, &to, target)
            .map_err(|errno| explain(errno, &group.source.join(source)))
    })
}

fn clone_file(from: &File, source: &OsStr, to: &File, target: &str) -> Result<(), Errno> {
    // Not blocking: a FIFO among the files must not hold up a run that may have stopped a server.
    let read = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let source = rustix::fs::openat(from, source, read, Mode::empty())?;
    let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let target = rustix::fs::openat(to, target, create, Mode::RUSR | Mode::WUSR)?;
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
        Errno::EXIST => error.hint("it was taken twice under one name"),
        Errno::NOSPC => error.hint("the filesystem is full; clones need a little room"),
        Errno::XDEV => {
            error.hint("it is a symbolic link or mount that leads to another filesystem")
        }
        _ => error,
    };
    error.because(std::io::Error::from(errno))
}
