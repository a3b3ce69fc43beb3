//! One record of `maps`: a header that says whose it is, a checksum, a body.

use super::bytes::{Cursor, Malformed};

/// ```text
///  0 body length               4
///  4 kind                      1   1 leaf, 2 leaf as changes to another, 3 node
///  5 level                     1   0 for leaves
///  6 cipher                    1   0 none
///  7 zero                      1
///  8 file id                   8
/// 16 index in its level        8
/// 24 crc32c                    4   seeded; of bytes 0..24 and the body
/// 28 body
/// ```
pub(crate) const RECORD_HEADER: usize = 28;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordKind {
    Leaf = 1,
    LeafChanges = 2,
    Node = 3,
}

/// Whose record it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordId {
    pub(crate) file: u64,
    pub(crate) level: u8,
    pub(crate) index: u64,
}

/// Returns the record's bytes.
pub(crate) fn encode(seed: u32, kind: RecordKind, id: RecordId, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(RECORD_HEADER + body.len());
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&[kind as u8, id.level, 0, 0]);
    out.extend_from_slice(&id.file.to_le_bytes());
    out.extend_from_slice(&id.index.to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c_append(seed, &out), body);
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(body);
    out
}

/// Checks a record and returns its kind and body.
pub(crate) fn decode(
    bytes: &[u8],
    seed: u32,
    id: RecordId,
) -> Result<(RecordKind, &[u8]), Malformed> {
    let mut fields = Cursor::new(bytes);
    let head = fields.take(24)?;
    let crc = fields.u32()?;
    let body = fields.take(bytes.len() - RECORD_HEADER)?;
    if crc != crc32c::crc32c_append(crc32c::crc32c_append(seed, head), body) {
        return Err(Malformed);
    }
    let mut head = Cursor::new(head);
    let length = head.u32()?;
    let kind = match head.u8()? {
        1 => RecordKind::Leaf,
        2 => RecordKind::LeafChanges,
        3 => RecordKind::Node,
        _ => return Err(Malformed),
    };
    let level = head.u8()?;
    let plain = head.u16()? == 0;
    let found = RecordId {
        level,
        file: head.u64()?,
        index: head.u64()?,
    };
    if !plain || found != id || length as usize != body.len() {
        return Err(Malformed);
    }
    Ok((kind, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_a_record_and_its_identity_count() {
        let id = RecordId {
            file: 5,
            level: 1,
            index: 3,
        };
        let bytes = encode(1, RecordKind::Node, id, b"body");
        let read = decode(&bytes, 1, id).unwrap();
        assert_eq!(read, (RecordKind::Node, b"body".as_slice()));
        for bit in 0..bytes.len() * 8 {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&wrong, 1, id).is_err(), "bit {bit}");
        }
        assert!(decode(&bytes, 1, RecordId { index: 4, ..id }).is_err());
        assert!(decode(&bytes, 2, id).is_err());
        assert!(decode(&bytes[..10], 1, id).is_err());
    }
}
