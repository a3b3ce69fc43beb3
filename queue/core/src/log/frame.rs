//! One frame: a header that proves itself and its place, and a body.

/// Bytes of a header.
pub(crate) const HEADER: usize = 32;

/// The longest body.
pub(crate) const BODY_MAX: u64 = 1 << 30;

/// Frames start at multiples of this, so that a search for the next one is short.
pub(crate) const ALIGN: usize = 8;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FrameKind {
    /// New rows with consecutive ids.
    Rows = 1,
    /// Ranges of row ids that are gone.
    Removed = 2,
    /// The next row id and the last ids of all sources.
    State = 3,
    /// As `Rows`, after the source that sent them.
    Sourced = 4,
    /// Rows that compaction kept, each with its id.
    Kept = 5,
    /// When the rows of the frames behind it came.
    Times = 6,
}

impl FrameKind {
    fn from(byte: u8) -> Option<Self> {
        [
            Self::Rows,
            Self::Removed,
            Self::State,
            Self::Sourced,
            Self::Kept,
            Self::Times,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }
}

/// What stands before a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: FrameKind,
    /// Bytes of the body.
    pub(crate) len: u32,
    /// The first row id, where rows follow.
    pub(crate) first: u64,
    /// How many rows or ranges.
    pub(crate) count: u32,
    /// How many bytes of the file were durable when this was written. What is broken before that
    /// was not torn by a crash.
    pub(crate) durable: u32,
}

/// The file that a frame belongs to. Its checksums start from here, so that a frame that strayed from
/// another file or place is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin(u32);

impl Origin {
    pub(crate) fn new(table: u128, file: u64) -> Self {
        let seed = crc32c::crc32c(&table.to_le_bytes());
        Self(crc32c::crc32c_append(seed, &file.to_le_bytes()))
    }

    fn at(self, offset: u64) -> u32 {
        crc32c::crc32c_append(self.0, &offset.to_le_bytes())
    }
}

/// Bytes that a frame with such a body takes.
pub(crate) fn size(body: u64) -> u64 {
    HEADER as u64 + body.next_multiple_of(ALIGN as u64)
}

/// Writes a frame behind `out`; `offset` is where in the file it will start. The header's `len` is
/// that of what `body` writes.
pub(crate) fn encode(
    out: &mut Vec<u8>,
    (origin, offset): (Origin, u64),
    mut header: Header,
    body: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    out.resize(start + HEADER, 0);
    body(out);
    let end = out.len();
    header.len = u32::try_from(end - start - HEADER).expect("callers keep to BODY_MAX");
    let crc = crc32c::crc32c(&out[start + HEADER..]);
    let padded = start + size(u64::from(header.len)) as usize;
    out.resize(padded, 0);
    let head = &mut out[start..start + HEADER];
    head[0..4].copy_from_slice(&header.len.to_le_bytes());
    head[4..8].copy_from_slice(&crc.to_le_bytes());
    head[8..16].copy_from_slice(&header.first.to_le_bytes());
    head[16..20].copy_from_slice(&header.count.to_le_bytes());
    head[20] = header.kind as u8;
    head[24..28].copy_from_slice(&header.durable.to_le_bytes());
    let proof = crc32c::crc32c_append(origin.at(offset), &head[..28]);
    head[28..32].copy_from_slice(&proof.to_le_bytes());
}

/// Reads the header of the frame that starts at `offset` of a file's bytes, and the checksum that its
/// body should have.
///
/// # Errors
///
/// Says what is wrong with it.
pub(crate) fn head(
    file: &[u8],
    origin: Origin,
    offset: usize,
) -> Result<(Header, u32), &'static str> {
    let head = file.get(offset..offset + HEADER);
    let head = head.ok_or("the file ends within a frame's header")?;
    let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
    if word(28) != crc32c::crc32c_append(origin.at(offset as u64), &head[..28]) {
        return Err("the checksum of a frame's header does not match");
    }
    let kind = FrameKind::from(head[20]).ok_or("a frame is of an unknown kind")?;
    let header = Header {
        kind,
        len: word(0),
        first: u64::from_le_bytes(head[8..16].try_into().expect("eight bytes")),
        count: word(16),
        durable: word(24),
    };
    Ok((header, word(4)))
}

/// Reads the frame that starts at `offset` of a file's bytes: its header and body.
///
/// # Errors
///
/// Says what is wrong with it.
pub(crate) fn read(
    file: &[u8],
    origin: Origin,
    offset: usize,
) -> Result<(Header, &[u8]), &'static str> {
    let (header, crc) = head(file, origin, offset)?;
    let body = offset + HEADER;
    let body = file.get(body..body + header.len as usize);
    let body = body.ok_or("the file ends within a frame")?;
    if crc != crc32c::crc32c(body) {
        return Err("the checksum of a frame does not match");
    }
    Ok((header, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(origin: Origin, offset: u64, body: &[u8]) -> Vec<u8> {
        let mut out = vec![0; offset as usize];
        let header = Header {
            kind: FrameKind::Rows,
            len: 0,
            first: 77,
            count: 2,
            durable: 5,
        };
        encode(&mut out, (origin, offset), header, |out| out.extend(body));
        out
    }

    #[test]
    fn a_frame_is_read_back() {
        let origin = Origin::new(1, 2);
        for len in [0, 1, 7, 8, 9, 1000] {
            let bytes = one(origin, 64, &vec![7; len]);
            assert_eq!(bytes.len() as u64, 64 + size(len as u64));
            let (header, body) = read(&bytes, origin, 64).unwrap();
            assert_eq!((header.first, header.count, header.durable), (77, 2, 5));
            assert_eq!(body, vec![7; len]);
        }
    }

    #[test]
    fn each_flipped_bit_is_seen() {
        let origin = Origin::new(1, 2);
        let whole = one(origin, 8, b"twelve bytes");
        let end = 8 + HEADER + 12;
        for bit in 8 * 8..end * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&bytes, origin, 8).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_frame_of_another_file_table_or_place_is_none() {
        let bytes = one(Origin::new(1, 2), 8, b"abc");
        assert!(read(&bytes, Origin::new(1, 2), 8).is_ok());
        assert!(read(&bytes, Origin::new(1, 3), 8).is_err());
        assert!(read(&bytes, Origin::new(2, 2), 8).is_err());
        assert!(read(&bytes[8..], Origin::new(1, 2), 0).is_err());
    }
}
