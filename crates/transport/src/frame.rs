//! What crosses a connection: numbered frames, so that a new connection continues where the old one
//! broke off.
//!
//! ```text
//!  0  magic "ek"             2
//!  2  kind                   1   1 hello, 2 data, 3 sign of life, 4 bye
//!  3  zero                   1
//!  4  payload length         4   at most 2 MiB
//!  8  number                 8   of a message, from 1; of a hello: the last message that arrived
//! 16  taken                  8   the last message of the other side that was taken off the link
//! 24  crc32c                 4   of bytes 0..24 and the payload
//!     payload                    of a hello: the session's 16 bytes
//! ```
//!
//! All numbers are little-endian.

use std::io::{self, Read, Write};

/// Length of what precedes the payload.
const HEADER_LENGTH: usize = 28;
const MAGIC: [u8; 2] = *b"ek";

/// The longest message.
pub(crate) const PAYLOAD_MAX: usize = 2 << 20;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FrameKind {
    /// The first one of a connection.
    Hello = 1,
    /// A message.
    Data = 2,
    /// Nothing but `taken`.
    Alive = 3,
    /// There will be no further message.
    Bye = 4,
}

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: FrameKind,
    pub(crate) number: u64,
    pub(crate) taken: u64,
}

/// Writes a frame.
pub(crate) fn write(out: &mut dyn Write, header: Header, payload: &[u8]) -> io::Result<()> {
    let mut bytes = [0; HEADER_LENGTH];
    bytes[..2].copy_from_slice(&MAGIC);
    bytes[2] = header.kind as u8;
    let length = u32::try_from(payload.len()).map_err(|_| invalid("a message is too long"))?;
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    bytes[8..16].copy_from_slice(&header.number.to_le_bytes());
    bytes[16..24].copy_from_slice(&header.taken.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..24]), payload);
    bytes[24..].copy_from_slice(&crc.to_le_bytes());
    out.write_all(&bytes)?;
    out.write_all(payload)
}

/// Reads a frame; an end between two frames is an [`io::ErrorKind::UnexpectedEof`] too.
pub(crate) fn read(from: &mut dyn Read) -> io::Result<(Header, Vec<u8>)> {
    let mut bytes = [0; HEADER_LENGTH];
    from.read_exact(&mut bytes)?;
    let number = |at: usize| {
        let mut eight = [0; 8];
        eight.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(eight)
    };
    let short =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let length = short(4) as usize;
    if bytes[..2] != MAGIC || bytes[3] != 0 || length > PAYLOAD_MAX {
        return Err(invalid("the data received is not from this program"));
    }
    let kind = match bytes[2] {
        1 => FrameKind::Hello,
        2 => FrameKind::Data,
        3 => FrameKind::Alive,
        4 => FrameKind::Bye,
        _ => return Err(invalid("the data received is from another version")),
    };
    let mut payload = vec![0; length];
    from.read_exact(&mut payload)?;
    if crc32c::crc32c_append(crc32c::crc32c(&bytes[..24]), &payload) != short(24) {
        return Err(invalid("a frame was damaged in transit"));
    }
    let header = Header {
        kind,
        number: number(8),
        taken: number(16),
    };
    Ok((header, payload))
}

/// Returns how many bytes a frame with this payload takes.
pub(crate) fn length(payload: &[u8]) -> u64 {
    (HEADER_LENGTH + payload.len()) as u64
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_frame_reads_back_and_a_flipped_bit_is_found(
            number: u64, taken: u64, payload in proptest::collection::vec(any::<u8>(), 0..300), flip: prop::sample::Index,
        ) {
            let header = Header { kind: FrameKind::Data, number, taken };
            let mut bytes = Vec::new();
            write(&mut bytes, header, &payload).unwrap();
            prop_assert_eq!(read(&mut bytes.as_slice()).unwrap(), (header, payload));
            let at = flip.index(bytes.len() * 8);
            bytes[at / 8] ^= 1 << (at % 8);
            prop_assert!(read(&mut bytes.as_slice()).is_err());
        }
    }
}
