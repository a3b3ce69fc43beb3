//! One record of `maps`: a header that says whose it is, a checksum, a body.

use super::bytes::{Cursor, Malformed};
use super::header::{CIPHER_NONE, CIPHER_XCHACHA};
use crate::crypt::{Sealer, TAG, Unopened};

/// ```text
///  0 body length               4
///  4 kind                      1   1 leaf, 2 leaf as changes to another, 3 node
///  5 level                     1   0 for leaves
///  6 cipher                    1   0 none, 1 XChaCha20-Poly1305
///  7 zero                      1
///  8 file id                   8
/// 16 index in its level        8
/// 24 crc32c                    4   seeded; of bytes 0..24 and the body
/// 28 body                          with a cipher sealed, and 16 bytes longer by its tag
/// ```
pub(crate) const RECORD_HEADER: usize = 28;
/// No record is longer: a leaf of 256 runs has about 10 KiB.
pub(crate) const RECORD_LENGTH_MAX: usize = 64 << 10;
/// What of it a sealed body is bound to: all before the checksum.
const FRONT: usize = 24;

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

/// What the records of an object depend on.
#[derive(Clone, Copy)]
pub(crate) struct Within<'a> {
    pub(crate) seed: u32,
    pub(crate) sealer: Option<&'a Sealer>,
    /// Where in the object the record begins: no other record of it has the same.
    pub(crate) offset: u64,
}

/// Returns the record's bytes.
pub(crate) fn encode(
    within: Within<'_>,
    kind: RecordKind,
    id: RecordId,
    body: &[u8],
) -> Result<Vec<u8>, Unopened> {
    let (cipher, tag) = match within.sealer {
        None => (CIPHER_NONE, 0),
        Some(_) => (CIPHER_XCHACHA, TAG),
    };
    let length = body.len() + tag;
    let mut out = Vec::with_capacity(RECORD_HEADER + length);
    out.extend_from_slice(&(length as u32).to_le_bytes());
    out.extend_from_slice(&[kind as u8, id.level, cipher, 0]);
    out.extend_from_slice(&id.file.to_le_bytes());
    out.extend_from_slice(&id.index.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(body);
    if let Some(sealer) = within.sealer {
        let mut front = [0; FRONT];
        front.copy_from_slice(&out[..FRONT]);
        sealer.seal(within.offset, &front, &mut out, RECORD_HEADER)?;
    }
    let crc = checksum(within.seed, &out);
    out[FRONT..RECORD_HEADER].copy_from_slice(&crc.to_le_bytes());
    Ok(out)
}

fn checksum(seed: u32, record: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(seed, &record[..FRONT]);
    crc32c::crc32c_append(crc, &record[RECORD_HEADER..])
}

/// Checks a record and returns its kind and body.
pub(crate) fn decode(
    bytes: &[u8],
    within: Within<'_>,
    id: RecordId,
) -> Result<(RecordKind, Vec<u8>), Malformed> {
    let mut fields = Cursor::new(bytes);
    let front = fields.take(FRONT)?;
    let crc = fields.u32()?;
    let body = fields.take(bytes.len() - RECORD_HEADER)?;
    if crc != checksum(within.seed, bytes) {
        return Err(Malformed);
    }
    let mut head = Cursor::new(front);
    let length = head.u32()?;
    let kind = match head.u8()? {
        1 => RecordKind::Leaf,
        2 => RecordKind::LeafChanges,
        3 => RecordKind::Node,
        _ => return Err(Malformed),
    };
    let level = head.u8()?;
    let cipher = head.u8()?;
    let is_zero = head.u8()? == 0;
    let found = RecordId {
        level,
        file: head.u64()?,
        index: head.u64()?,
    };
    let is_sealed = match cipher {
        CIPHER_NONE => false,
        CIPHER_XCHACHA => true,
        _ => return Err(Malformed),
    };
    let fits = is_zero && found == id && length as usize == body.len();
    if !fits || is_sealed != within.sealer.is_some() {
        return Err(Malformed);
    }
    let body = match within.sealer {
        None => body.to_vec(),
        Some(sealer) => sealer
            .open(within.offset, front, body)
            .map_err(|_| Malformed)?,
    };
    Ok((kind, body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypt::Key;
    use crate::format::header::HEADER_LENGTH;

    #[test]
    fn every_bit_of_a_record_and_its_identity_count() {
        let id = RecordId {
            file: 5,
            level: 1,
            index: 3,
        };
        let sealer = Sealer::new(&Key::of(&[1; 32]).unwrap(), &[2; HEADER_LENGTH]);
        for sealer in [None, Some(&sealer)] {
            let within = Within {
                seed: 1,
                sealer,
                offset: 64,
            };
            let bytes = encode(within, RecordKind::Node, id, b"body").unwrap();
            let read = decode(&bytes, within, id).unwrap();
            assert_eq!(read, (RecordKind::Node, b"body".to_vec()));
            for bit in 0..bytes.len() * 8 {
                let mut wrong = bytes.clone();
                wrong[bit / 8] ^= 1 << (bit % 8);
                assert!(decode(&wrong, within, id).is_err(), "bit {bit}");
            }
            assert!(decode(&bytes, within, RecordId { index: 4, ..id }).is_err());
            assert!(decode(&bytes, Within { seed: 2, ..within }, id).is_err());
            assert!(decode(&bytes[..10], within, id).is_err());
            // Without a key, a record may lie anywhere: the references say where.
            let moved = Within {
                offset: 65,
                ..within
            };
            assert_eq!(decode(&bytes, moved, id).is_err(), sealer.is_some());
        }
    }
}
