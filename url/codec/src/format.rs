//! A table as bytes: a head of 48 bytes, then what the mode needs.
//!
//! docs/src/formats/url-table.md draws it.

use evenkeel_op::{Error, Result};

const MAGIC: [u8; 8] = *b"EKURLTBL";
const VERSION: u16 = 1;
const HEAD: usize = 48;

/// How a table codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// As few bytes as possible.
    Dense = 1,
    /// As quick as possible.
    Fast = 2,
}

/// The payload is no table.
#[derive(Debug)]
pub(crate) struct Bad;

/// Reads numbers from a payload.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Bad> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Bad)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Bad> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Bad> {
        let bytes = self.take(2)?;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    /// A signed number within plus and minus `most`.
    pub(crate) fn i16(&mut self, most: i16) -> Result<i16, Bad> {
        let number = self.u16()? as i16;
        if (-most..=most).contains(&number) {
            Ok(number)
        } else {
            Err(Bad)
        }
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Bad> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub(crate) fn end(&self) -> Result<(), Bad> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(Bad)
        }
    }
}

/// Puts the head before a payload.
pub(crate) fn sealed(mode: Mode, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD + payload.len());
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.push(mode as u8);
    out.push(0);
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    let sum = checksum(&out, payload);
    out.extend_from_slice(&sum);
    out.extend_from_slice(payload);
    out
}

fn checksum(head: &[u8], payload: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(head);
    hasher.update(payload);
    *hasher.finalize().as_bytes()
}

/// Checks the head and returns mode, id and payload.
pub(crate) fn opened(bytes: &[u8]) -> Result<(Mode, [u8; 8], &[u8])> {
    let refused = |what: &str| {
        Error::usage(format!("this is not a table for URLs: {what}"))
            .hint("use a complete file written by 'evenkeel url train'")
    };
    let (head, payload) = bytes
        .split_at_checked(HEAD)
        .ok_or_else(|| refused("it is too short"))?;
    if head[..8] != MAGIC {
        return Err(refused("it does not start like one"));
    }
    let version = u16::from_le_bytes([head[8], head[9]]);
    if version != VERSION {
        return Err(Error::usage(format!(
            "the table has format {version}, this program reads {VERSION}"
        ))
        .hint("use the version of evenkeel that wrote it, or train again"));
    }
    let mode = match head[10] {
        1 => Mode::Dense,
        2 => Mode::Fast,
        _ => return Err(refused("its mode is unknown")),
    };
    let len = u32::from_le_bytes([head[12], head[13], head[14], head[15]]) as usize;
    if len != payload.len() {
        return Err(refused("it was truncated, or something was appended"));
    }
    let sum = checksum(&head[..16], payload);
    if sum[..] != head[16..48] {
        return Err(refused("its checksum differs, it was changed"));
    }
    let mut id = [0; 8];
    id.copy_from_slice(&sum[..8]);
    Ok((mode, id, payload))
}

/// What a payload is refused with that has a right checksum and makes no sense.
pub(crate) fn senseless(_bad: Bad) -> Error {
    Error::usage("this is not a table for URLs: its parts do not match")
        .hint("train it again with 'evenkeel url train'")
}
