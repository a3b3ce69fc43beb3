//! The events of a file, one after the other.

use crate::{Format, HEADER, Header, MAGIC, MAGIC_ENCRYPTED, kind};
use evenkeel_op::{Error, Result};
use std::io::{self, Read};

/// One event of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Position of its first byte in its file.
    pub position: u64,
    /// Its header.
    pub header: Header,
    /// All its bytes.
    pub bytes: Vec<u8>,
}

impl Event {
    /// Returns the position after it.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.position + self.bytes.len() as u64
    }
}

/// What came after a file's last whole event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// Nothing.
    Clean,
    /// A part of an event: the server, or whoever copied the file, stopped there.
    Torn {
        /// Position at which it begins.
        position: u64,
    },
}

/// Reads events from the start of a file, checking each.
#[derive(Debug)]
pub struct Events<R> {
    from: R,
    position: u64,
    format: Option<Format>,
    tail: Option<Tail>,
}

impl<R: Read> Events<R> {
    /// Begins at a file's first byte.
    ///
    /// Errors: `Refused` for an encrypted file, `Failed` for one that is no binary log.
    pub fn new(mut from: R) -> Result<Self> {
        let mut magic = [0; MAGIC.len()];
        let mut events = Self {
            from: {
                let got = fill(&mut from, &mut magic)?;
                if got < magic.len() && magic[..got] != MAGIC[..got] {
                    return Err(not_one());
                }
                from
            },
            position: MAGIC.len() as u64,
            format: None,
            tail: None,
        };
        match magic {
            MAGIC => Ok(events),
            MAGIC_ENCRYPTED => Err(encrypted()),
            // Cut off before its first event.
            _ if magic.contains(&0) => {
                events.tail = Some(Tail::Torn { position: 0 });
                Ok(events)
            }
            _ => Err(not_one()),
        }
    }

    /// Returns the format, once the first event was read.
    #[must_use]
    pub fn format(&self) -> Option<&Format> {
        self.format.as_ref()
    }

    /// Returns what came after the last event, once [`Events::next_event`] has returned `None`.
    #[must_use]
    pub fn tail(&self) -> Option<Tail> {
        self.tail
    }

    /// Reads the next event; `None` at the end, which may be a torn one.
    ///
    /// Errors: an event that is whole and not what was written, an encrypted file, a failed read.
    pub fn next_event(&mut self) -> Result<Option<Event>> {
        if self.tail.is_some() {
            return Ok(None);
        }
        let mut head = [0; HEADER];
        let got = fill(&mut self.from, &mut head)?;
        if got < HEADER {
            return Ok(self.end(got == 0));
        }
        let at = self.position;
        let damaged = |error: Error| {
            Error::failed(format!("the binary log is damaged at {at}")).because(error)
        };
        let header = Header::parse(&head).map_err(damaged)?;
        let mut bytes = head.to_vec();
        let body = u64::from(header.length) - HEADER as u64;
        // Grows as bytes come: a length that is wrong takes no memory.
        let got = (&mut self.from)
            .take(body)
            .read_to_end(&mut bytes)
            .map_err(read_failed)?;
        if (got as u64) < body {
            return Ok(self.end(false));
        }
        self.check(&header, &bytes).map_err(damaged)?;
        let event = Event {
            position: at,
            header,
            bytes,
        };
        self.position = event.end();
        Ok(Some(event))
    }

    fn check(&mut self, header: &Header, bytes: &[u8]) -> Result<()> {
        match header.kind {
            kind::MARIADB_START_ENCRYPTION => return Err(encrypted()),
            kind::FORMAT_DESCRIPTION => self.format = Some(Format::parse(bytes)?),
            _ => {}
        }
        let Some(format) = &self.format else {
            return Err(Error::failed("there is no format description at its start"));
        };
        format.verify(bytes)?;
        let end = self.position + bytes.len() as u64;
        if !header.may_end_at(end) {
            let says = header.next;
            return Err(Error::failed(format!(
                "the event that ends at {end} claims to end at {says}"
            )));
        }
        Ok(())
    }

    fn end(&mut self, clean: bool) -> Option<Event> {
        self.tail = Some(match clean {
            true => Tail::Clean,
            false => Tail::Torn {
                position: self.position,
            },
        });
        None
    }
}

/// Reads until `buffer` is full or there is no more; returns how much there was.
fn fill<R: Read>(from: &mut R, buffer: &mut [u8]) -> Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match from.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(read_failed(error)),
        }
    }
    Ok(got)
}

fn read_failed(error: io::Error) -> Error {
    Error::failed("failed to read a binary log").because(error)
}

fn not_one() -> Error {
    Error::failed("this is not a binary log")
}

fn encrypted() -> Error {
    Error::refused("the binary log is encrypted")
}
