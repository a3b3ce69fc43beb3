//! Lines of any length in bounded memory.

use evenkeel_op::{Error, Result};
use std::io::BufRead;

/// How much of a statement is kept.
pub(super) const HEAD_MAX: usize = 64 << 10;

/// Lines, one at a time.
pub(super) struct Lines {
    from: Box<dyn BufRead + Send>,
    name: String,
    /// The line without its end, as far as it is kept.
    pub(super) text: Vec<u8>,
    /// How long it is without its end.
    pub(super) bytes: u64,
    /// Its last byte, carriage returns left out.
    pub(super) last: u8,
    /// Whether it ended before the file did.
    pub(super) is_ended: bool,
    /// Which line it is, from 1.
    pub(super) number: u64,
    /// Why the rest could not be read.
    pub(super) damage: Option<Error>,
}

impl Lines {
    pub(super) fn new(name: &str, from: Box<dyn BufRead + Send>) -> Self {
        Self {
            from,
            name: name.to_owned(),
            text: Vec::new(),
            bytes: 0,
            last: 0,
            is_ended: false,
            number: 0,
            damage: None,
        }
    }

    /// Reads the next line; false after the last, and where there is damage.
    pub(super) fn next(&mut self) -> bool {
        match self.read() {
            Ok(is_there) => is_there,
            Err(error) => {
                self.is_ended = false;
                self.damage = Some(error);
                false
            }
        }
    }

    fn read(&mut self) -> Result<bool> {
        self.text.clear();
        (self.bytes, self.last, self.is_ended) = (0, 0, false);
        self.number += 1;
        loop {
            let filled = self.from.fill_buf();
            let filled = filled.map_err(|error| {
                Error::failed(format!("failed to read {}", self.name)).because(error)
            })?;
            if filled.is_empty() {
                return Ok(self.bytes > 0);
            }
            let end = memchr::memchr(b'\n', filled);
            let piece = &filled[..end.unwrap_or(filled.len())];
            let room = HEAD_MAX.saturating_sub(self.text.len());
            self.text.extend_from_slice(&piece[..piece.len().min(room)]);
            self.bytes += piece.len() as u64;
            if let Some(last) = piece.iter().rev().find(|byte| **byte != b'\r') {
                self.last = *last;
            }
            let used = piece.len() + usize::from(end.is_some());
            self.from.consume(used);
            if end.is_some() {
                self.is_ended = true;
                return Ok(true);
            }
        }
    }

    /// Returns the line without the carriage return that files from Windows have.
    pub(super) fn trimmed(&self) -> &[u8] {
        self.text.strip_suffix(b"\r").unwrap_or(&self.text)
    }
}

/// A statement's text as it is gathered line by line.
#[derive(Default)]
pub(super) struct Text {
    /// As much of it as is kept.
    pub(super) head: Vec<u8>,
    /// How long it is.
    pub(super) bytes: u64,
}

impl Text {
    pub(super) fn clear(&mut self) {
        self.head.clear();
        self.bytes = 0;
    }

    /// Adds a line after what is there; `text` may be less than its `bytes`.
    pub(super) fn add(&mut self, text: &[u8], bytes: u64) {
        let is_complete = self.head.len() as u64 == self.bytes;
        if is_complete {
            let room = HEAD_MAX.saturating_sub(self.head.len());
            self.head.extend_from_slice(&text[..text.len().min(room)]);
        }
        self.bytes += bytes;
    }

    /// Takes bytes from its end.
    pub(super) fn cut(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
        let kept = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        self.head.truncate(kept);
    }
}
