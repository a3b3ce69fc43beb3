//! What comes through a pipe: Ctrl-C also ends a wait for more of it.

use evenkeel_op::{Cancel, Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;

/// How often to look whether somebody wants an end.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// A pipe that ends when the run should end.
pub(super) struct Piped {
    from: File,
    cancel: Cancel,
}

impl Piped {
    /// Returns what is read from a file that is no regular one: a pipe, a terminal.
    pub(super) fn of(from: File, cancel: &Cancel) -> Self {
        Self {
            from,
            cancel: cancel.clone(),
        }
    }

    /// Returns standard input.
    ///
    /// Errors: `Failed` where it is closed.
    pub(super) fn stdin(cancel: &Cancel) -> Result<Self> {
        let from = io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .map_err(|error| Error::failed("failed to read standard input").because(error))?;
        Ok(Self {
            from: File::from(from),
            cancel: cancel.clone(),
        })
    }
}

impl Read for Piped {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.cancel.is_cancelled() {
            let mut ready = [PollFd::new(&self.from, PollFlags::IN)];
            match poll(&mut ready, Some(&LOOK)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return self.from.read(buffer),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(0)
    }
}
