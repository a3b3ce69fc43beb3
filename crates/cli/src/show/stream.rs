//! Text on standard output as it comes, without an end of its own.

use evenkeel_op::{Error, Result};
use std::io::{self, Write};

/// Writes what is seen at once.
#[derive(Debug, Default)]
pub struct Stream;

impl Stream {
    /// Writes a text; returns whether somebody still reads.
    ///
    /// # Errors
    ///
    /// `Failed` when it cannot be written.
    pub fn show(&self, text: &str) -> Result<bool> {
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(Error::failed("failed to write to standard output").because(error)),
        }
    }
}
