//! Files that users name: where one is a pipe, Ctrl-C and SIGTERM also end the wait for who writes to it.

use evenkeel_op::paths::unreadable;
use evenkeel_op::{Cancel, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// How often to look whether an end is wanted.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// Opens a file for reading. Of a pipe, this does not wait for who writes to it: only a read does.
///
/// # Errors
///
/// Those of the system.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = match options.open(path) {
        // Another program has a lease on it, which it has to give back first.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return File::open(path),
        opened => opened?,
    };
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Reads a file to its end.
///
/// # Errors
///
/// `Usage` when nothing is there; `Failed` when it cannot be read; that of `cancel`.
pub(crate) fn read(path: &Path, what: &str, cancel: &Cancel) -> Result<Vec<u8>> {
    let failed = |error| unreadable(what, path, error);
    let from = open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    let read = Waiting { from, cancel }.read_to_end(&mut bytes);
    cancel.check()?;
    read.map_err(failed)?;
    Ok(bytes)
}

/// Waits until there is something to read, or its end; false where an end is wanted.
///
/// # Errors
///
/// Those of the system.
pub(crate) fn wait(file: &File, cancel: &Cancel) -> io::Result<bool> {
    wait_idly(file, cancel, &mut || true)
}

/// The same; while there is nothing, `idle` runs, and says whether to go on.
///
/// # Errors
///
/// Those of the system.
pub(crate) fn wait_idly(
    file: &File,
    cancel: &Cancel,
    idle: &mut dyn FnMut() -> bool,
) -> io::Result<bool> {
    while !cancel.is_cancelled() {
        let mut ready = [PollFd::new(file, PollFlags::IN)];
        match poll(&mut ready, Some(&LOOK)) {
            Ok(0) if !idle() => return Ok(false),
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// A file that is read until an end is wanted, which is an error then.
pub(crate) struct Waiting<'a> {
    /// What is read.
    pub(crate) from: File,
    /// Whether an end is wanted.
    pub(crate) cancel: &'a Cancel,
}

impl Read for Waiting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match wait(&self.from, self.cancel)? {
            true => self.from.read(buffer),
            false => Err(io::Error::other("interrupted")),
        }
    }
}
