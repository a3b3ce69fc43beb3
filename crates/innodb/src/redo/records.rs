//! The units that a log is written in: blocks (MySQL) and groups of records (MariaDB).
//!
//! ```text
//! block: number (4, top bit: first of a write), bytes used (2, top bit: encrypted), first record
//!        group (2), checkpoint number (4), records …; CRC-32C of [0, 508) at 508
//! group: records, end byte (0 or 1, changes each time the log comes round), 8 bytes of nonce if
//!        encrypted, CRC-32C of records and nonce (4)
//! record: type and length byte; if its low 4 bits are 0, a variable-length number n and then
//!        n + 15 bytes counted from that number's first byte; else as many bytes as they say
//! ```

use crate::bytes::{be16, be32};
use crc32c::{crc32c, crc32c_append};

const BLOCK: usize = 512;
/// What stands for a checksum under `innodb_log_checksums=OFF`.
const NO_CHECKSUM: u32 = 0xdead_beef;
/// The most that a group may take.
const GROUP_MAX: usize = 1 << 20;

/// What is at some place of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A unit of so many bytes; another may follow.
    Next(usize),
    /// So many bytes are the last ones.
    Last(usize),
    /// Nothing that belongs here.
    End,
}

/// Reads the block at `lsn`, a multiple of 512.
pub(super) fn block(bytes: &[u8], lsn: u64) -> Step {
    let Some(block) = bytes.get(..BLOCK) else {
        return Step::End;
    };
    let number = be32(block, 0) & 0x7fff_ffff;
    let expected = ((lsn / 512) & 0x3fff_ffff) as u32 + 1;
    let stored = be32(block, BLOCK - 4);
    if number != expected || stored != crc32c(&block[..BLOCK - 4]) && stored != NO_CHECKSUM {
        return Step::End;
    }
    match usize::from(be16(block, 4) & 0x7fff) {
        BLOCK => Step::Next(BLOCK),
        used if used < BLOCK => Step::Last(used),
        _ => Step::End,
    }
}

/// Reads the group that `bytes` begin with. `end_byte` gives the end byte that is right at an
/// offset from here.
pub(super) fn group(bytes: &[u8], encrypted: bool, end_byte: impl Fn(usize) -> u8) -> Step {
    let Some(end) = end_of_records(bytes) else {
        return Step::End;
    };
    let nonce = if encrypted { 8 } else { 0 };
    if end == 0 || bytes.len() < end + 1 + nonce + 4 || bytes[end] != end_byte(end) {
        return Step::End;
    }
    let computed = crc32c_append(crc32c(&bytes[..end]), &bytes[end + 1..end + 1 + nonce]);
    if be32(bytes, end + 1 + nonce) != computed {
        return Step::End;
    }
    Step::Next(end + 1 + nonce + 4)
}

/// Returns where the end byte of a group is.
fn end_of_records(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < GROUP_MAX {
        let head = *bytes.get(at)?;
        if head <= 1 {
            return Some(at);
        }
        at += 1;
        at += match usize::from(head & 15) {
            0 => variable_number(bytes.get(at..)?)? as usize + 15,
            length => length,
        };
    }
    None
}

/// Reads a number of one to five bytes. Each length begins where the shorter one ends.
fn variable_number(bytes: &[u8]) -> Option<u32> {
    const MIN_2: u32 = 1 << 7;
    const MIN_3: u32 = MIN_2 + (1 << 14);
    const MIN_4: u32 = MIN_3 + (1 << 21);
    const MIN_5: u32 = MIN_4 + (1 << 28);
    let byte = |at: usize| bytes.get(at).map(|byte| u32::from(*byte));
    let first = byte(0)?;
    let (mut value, more, min) = match first {
        0..0x80 => (first, 0, 0),
        0x80..0xc0 => (first & 0x3f, 1, MIN_2),
        0xc0..0xe0 => (first & 0x1f, 2, MIN_3),
        0xe0..0xf0 => (first & 0x0f, 3, MIN_4),
        0xf0 => (0, 4, MIN_5),
        _ => return None,
    };
    for at in 1..=more {
        value = value << 8 | byte(at)?;
    }
    value
        .checked_add(min)
        .filter(|value| *value < GROUP_MAX as u32)
}
