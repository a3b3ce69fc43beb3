//! Files and pipes that are read: Ctrl-C also ends a wait for more from a pipe.

use crate::opened;
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Cancel, Error, Result};
use evenkeel_traffic::source::Idle;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

/// A pipe that ends when the run should end.
struct Piped {
    from: File,
    cancel: Cancel,
    idle: Idle,
}

impl Piped {
    /// Returns standard input.
    ///
    /// Errors: `Failed` where it is closed.
    fn stdin(cancel: &Cancel, idle: Idle) -> Result<Self> {
        let from = io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .map_err(|error| Error::failed("failed to read standard input").because(error))?;
        Ok(Self {
            from: File::from(from),
            cancel: cancel.clone(),
            idle,
        })
    }
}

/// Opens a file to be read; `-` is standard input. `what` it is stands in messages.
///
/// Errors: `Usage` when nothing is there, or a directory; `Failed` when it cannot be read.
pub(super) fn open(path: &Path, what: &str, cancel: &Cancel) -> Result<Box<dyn Read + Send>> {
    open_watched(path, what, cancel, Box::new(|| true))
}

/// Opens a file to be read; while a pipe has nothing to read, `idle` runs.
///
/// Errors: those of [`open`].
pub(super) fn open_watched(
    path: &Path,
    what: &str,
    cancel: &Cancel,
    idle: Idle,
) -> Result<Box<dyn Read + Send>> {
    if path == Path::new("-") {
        return Ok(Box::new(Piped::stdin(cancel, idle)?));
    }
    let failed = |error| unreadable(what, path, error);
    let from = opened::open(path).map_err(failed)?;
    let kind = from.metadata().map_err(failed)?;
    if kind.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let cancel = cancel.clone();
    if kind.is_file() {
        return Ok(Box::new(Ending { from, cancel }));
    }
    Ok(Box::new(Piped { from, cancel, idle }))
}

/// A file that ends when the run should end: a line in it may have no end.
struct Ending {
    from: File,
    cancel: Cancel,
}

impl Read for Ending {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.cancel.is_cancelled() {
            true => Ok(0),
            false => self.from.read(buffer),
        }
    }
}

impl Read for Piped {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match opened::wait_idly(&self.from, &self.cancel, &mut self.idle)? {
            true => self.from.read(buffer),
            false => Ok(0),
        }
    }
}
