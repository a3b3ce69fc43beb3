//! Single events: their header, the format description, the name of the next file.

use crate::{CHECKSUM, EVENT_MAX, HEADER, kind};
use evenkeel_op::{Error, Result};

/// The header flag of a file that its server has not closed. Not part of the checksum.
const IN_USE: u16 = 0x1;
/// The header flag of an event that was made for the receiver and is in no file.
const ARTIFICIAL: u16 = 0x20;

/// An event's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// When its statement began, in seconds since 1970; 0 in events that were made up.
    pub time: u32,
    /// See [`kind`].
    pub kind: u8,
    /// The server that it was first written on.
    pub server: u32,
    /// Bytes, header and checksum included.
    pub length: u32,
    /// Position after it, in its file, modulo 4 GiB; 0 in events that are in no file.
    pub next: u32,
    /// Flags.
    pub flags: u16,
}

impl Header {
    /// Reads a header; fails when `bytes` are too few or its length cannot be.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let Some(head) = bytes.first_chunk::<HEADER>() else {
            return Err(Error::failed("an event's header is cut off"));
        };
        let u32_at =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let header = Self {
            time: u32_at(0),
            kind: head[4],
            server: u32_at(5),
            length: u32_at(9),
            next: u32_at(13),
            flags: u16::from_le_bytes([head[17], head[18]]),
        };
        if (header.length as usize) < HEADER || header.length > EVENT_MAX {
            let length = header.length;
            return Err(Error::failed(format!(
                "an event cannot have {length} bytes"
            )));
        }
        Ok(header)
    }

    /// Returns the header's bytes.
    #[must_use]
    pub fn bytes(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..4].copy_from_slice(&self.time.to_le_bytes());
        bytes[4] = self.kind;
        bytes[5..9].copy_from_slice(&self.server.to_le_bytes());
        bytes[9..13].copy_from_slice(&self.length.to_le_bytes());
        bytes[13..17].copy_from_slice(&self.next.to_le_bytes());
        bytes[17..].copy_from_slice(&self.flags.to_le_bytes());
        bytes
    }

    /// Returns whether the event was made for whoever receives it and is in no file.
    #[must_use]
    pub fn is_artificial(&self) -> bool {
        let made_for_who_asks = matches!(
            self.kind,
            kind::ROTATE
                | kind::FORMAT_DESCRIPTION
                | kind::MARIADB_GTID_LIST
                | kind::MARIADB_START_ENCRYPTION
        );
        self.flags & ARTIFICIAL != 0 || self.next == 0 && made_for_who_asks
    }

    /// Returns whether an event that ends at `end` of its file may say what this one says of that.
    /// Positions are kept modulo 4 GiB; inside transactions MariaDB from 11.x on leaves them at 0.
    #[must_use]
    pub fn may_end_at(&self, end: u64) -> bool {
        self.next == 0 || self.next == end as u32
    }
}

/// What a file's first event says about the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// Version of the server that wrote the file.
    pub server_version: String,
    /// The server that wrote it, by its `server_id`.
    pub server: u32,
    /// Whether every event ends in a CRC32.
    pub checksums: bool,
}

impl Format {
    /// Reads a whole format description event. Its own checksum is verified by [`Format::verify`].
    ///
    /// Body: `u16 4, 50 bytes server version, u32 created, u8 19, lengths by kind, u8 algorithm,
    /// u32 checksum`.
    pub fn parse(event: &[u8]) -> Result<Self> {
        let damaged = || Error::failed("the format description of a binary log is damaged");
        let header = Header::parse(event)?;
        let body = event.get(HEADER..).ok_or_else(damaged)?;
        if header.kind != kind::FORMAT_DESCRIPTION
            || header.length as usize != event.len()
            || body.len() < 57 + 1 + CHECKSUM
            || body[..2] != [4, 0]
            || usize::from(body[56]) != HEADER
        {
            return Err(damaged());
        }
        let version = body[2..52]
            .split(|byte| *byte == 0)
            .next()
            .unwrap_or_default();
        let checksums = match body[body.len() - CHECKSUM - 1] {
            0 => false,
            1 => true,
            other => {
                return Err(Error::refused(format!(
                    "the binary log has checksums of an unknown kind, {other}"
                )));
            }
        };
        Ok(Self {
            server_version: String::from_utf8_lossy(version).into_owned(),
            server: header.server,
            checksums,
        })
    }

    /// Verifies the checksum of a whole event, if it has one.
    pub fn verify(&self, event: &[u8]) -> Result<()> {
        let header = Header::parse(event)?;
        // The format description itself always has one.
        if !self.checksums && header.kind != kind::FORMAT_DESCRIPTION {
            return Ok(());
        }
        if has_checksum(event, &header) {
            return Ok(());
        }
        Err(Error::failed(format!(
            "the checksum of the event of kind {} at {} does not match",
            header.kind,
            header.next.wrapping_sub(header.length)
        )))
    }
}

/// Whether the last four bytes of an event are the CRC32 of those before.
fn has_checksum(event: &[u8], header: &Header) -> bool {
    let Some((content, stored)) = event.split_last_chunk::<CHECKSUM>() else {
        return false;
    };
    let Some(body) = content.get(HEADER..) else {
        return false;
    };
    let closed = Header {
        flags: header.flags & !IN_USE,
        ..*header
    };
    let mut hasher = crc32fast::Hasher::new();
    match header.kind {
        kind::FORMAT_DESCRIPTION => hasher.update(&closed.bytes()),
        _ => hasher.update(&header.bytes()),
    }
    hasher.update(body);
    hasher.finalize() == u32::from_le_bytes(*stored)
}

/// Returns an event's body without its checksum.
#[must_use]
pub fn body<'a>(event: &'a [u8], format: Option<&Format>) -> &'a [u8] {
    let end = match format {
        Some(format) if format.checksums => event.len().saturating_sub(CHECKSUM),
        _ => event.len(),
    };
    event.get(HEADER..end).unwrap_or_default()
}

/// Where a log continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rotate {
    /// The file's name, without directory.
    pub file: String,
    /// Position in it.
    pub position: u64,
}

impl Rotate {
    /// Reads a whole rotate event. One that was made up has a checksum or not, whatever the file's
    /// format is, so that is looked for.
    pub fn parse(event: &[u8]) -> Result<Self> {
        let damaged = || Error::failed("a rotate event is damaged");
        let header = Header::parse(event)?;
        let end = match has_checksum(event, &header) {
            true => event.len() - CHECKSUM,
            false => event.len(),
        };
        let body = event.get(HEADER..end).ok_or_else(damaged)?;
        let (position, name) = body.split_first_chunk::<8>().ok_or_else(damaged)?;
        let name = std::str::from_utf8(name).map_err(|_| damaged())?;
        // It becomes part of an object's name, so nothing may hide in it.
        if name.is_empty() || name.contains(['/', '\0', '\n']) || name.starts_with('.') {
            return Err(damaged());
        }
        Ok(Self {
            file: name.to_owned(),
            position: u64::from_le_bytes(*position),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(kind: u8, next: u32, flags: u16) -> Header {
        Header {
            time: 0,
            kind,
            server: 1,
            length: 30,
            next,
            flags,
        }
    }

    #[test]
    fn what_lies_inside_a_transaction_may_have_no_position() {
        // As MariaDB 11.8 writes it.
        let inside = header(kind::QUERY, 0, 0);
        assert!(!inside.is_artificial() && inside.may_end_at(764));
        let commit = header(kind::XID, 795, 0);
        assert!(commit.may_end_at(795) && !commit.may_end_at(796));
        // Four bytes are all that there is.
        assert!(commit.may_end_at((1 << 32) + 795));
        assert!(header(kind::ROTATE, 0, 0).is_artificial());
        assert!(header(kind::QUERY, 795, ARTIFICIAL).is_artificial());
    }
}
