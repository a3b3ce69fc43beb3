//! Frames (about 1 MiB of blocks, compressed together) and the table that ends a pack.

use super::bytes::{Cursor, Malformed};
use super::header::{CIPHER_NONE, CIPHER_XCHACHA};
use crate::crypt::{Sealer, TAG};

/// ```text
///  0 magic "frm1"              4
///  4 frame number              4
///  8 payload length            4   as stored
/// 12 raw length                4
/// 16 slots                     2
/// 18 codec                     1   0 stored, 1 zstd
/// 19 cipher                    1   0 none, 1 XChaCha20-Poly1305
/// 20 crc32c                    4   seeded; of bytes 0..20 and 24..
/// 24 slot lengths              4 each; 0 = dropped by a compaction
///    payload
///    tag                      16   only with a cipher: slot lengths and payload are sealed
/// ```
pub(crate) const FRAME_HEADER: usize = 24;
/// What of it a sealed frame is bound to: all before the checksum.
const FRONT: usize = 20;
/// Raw bytes that a frame holds at most, unless a single block is larger.
pub(crate) const FRAME_RAW_MAX: usize = 1 << 20;
/// Slots that a frame holds at most.
pub(crate) const FRAME_SLOTS_MAX: usize = 4096;
/// No block is larger; nor is a frame's raw content.
pub(crate) const BLOCK_SIZE_MAX: u32 = 1 << 20;
/// No frame is longer as stored: what is compressed badly is a little longer than it was.
const FRAME_LENGTH_MAX: usize =
    FRAME_HEADER + FRAME_SLOTS_MAX * 4 + FRAME_RAW_MAX + FRAME_RAW_MAX / 128 + 1024 + TAG;
/// Frames that a pack holds at most: its table is read as a whole.
pub(crate) const FRAMES_MAX: u32 = 1 << 20;
const MAGIC: [u8; 4] = *b"frm1";
const CODEC_STORED: u8 = 0;
const CODEC_ZSTD: u8 = 1;

/// ```text
///  per frame, 24 bytes:
///  0 offset                    8   0 when the frame was dropped
///  8 length                    4   of the whole frame; 0 when dropped
/// 12 raw length                4
/// 16 slots                     4   also when dropped
/// 20 crc32c of the frame       4
/// ```
pub(crate) const TABLE_ENTRY: usize = 24;

/// ```text
///  0 magic "packtail"          8
///  8 table offset              8
/// 16 frames                    4
/// 20 zero                      8
/// 28 crc32c                    4   seeded; of the table and bytes 0..28
/// ```
pub(crate) const TRAILER: usize = 32;
const TRAILER_MAGIC: [u8; 8] = *b"packtail";

/// Where a frame lies in its pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableEntry {
    pub(crate) offset: u64,
    pub(crate) length: u32,
    pub(crate) raw_length: u32,
    pub(crate) slots: u32,
    pub(crate) crc: u32,
}

/// Why a frame cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadFrame {
    Checksum,
    Malformed,
    Cipher,
    Unopened,
    Decompression,
}

impl std::fmt::Display for BadFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Checksum => "its checksum does not match",
            Self::Malformed => "its fields are not valid",
            Self::Cipher => "it has an unknown cipher or codec",
            Self::Unopened => "it is not what was encrypted at this position",
            Self::Decompression => "it cannot be decompressed",
        })
    }
}

impl From<Malformed> for BadFrame {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

/// Encodes a frame into `out` (cleared first) and returns its table entry, to be given its offset.
pub(crate) fn encode(
    out: &mut Vec<u8>,
    compressor: &mut zstd::bulk::Compressor<'_>,
    (seed, sealer): (u32, Option<&Sealer>),
    number: u32,
    lengths: &[u32],
    raw: &[u8],
) -> std::io::Result<TableEntry> {
    let payload_at = FRAME_HEADER + lengths.len() * 4;
    let (stored, codec) = compress(out, compressor, payload_at, raw)?;
    out[0..4].copy_from_slice(&MAGIC);
    out[4..8].copy_from_slice(&number.to_le_bytes());
    out[8..12].copy_from_slice(&(stored as u32).to_le_bytes());
    out[12..16].copy_from_slice(&(raw.len() as u32).to_le_bytes());
    out[16..18].copy_from_slice(&(lengths.len() as u16).to_le_bytes());
    out[18] = codec;
    out[19] = match sealer {
        None => CIPHER_NONE,
        Some(_) => CIPHER_XCHACHA,
    };
    for (i, length) in lengths.iter().enumerate() {
        let at = FRAME_HEADER + i * 4;
        out[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }
    if let Some(sealer) = sealer {
        let mut front = [0; FRONT];
        front.copy_from_slice(&out[..FRONT]);
        sealer
            .seal(u64::from(number), &front, out, FRAME_HEADER)
            .map_err(|_| std::io::Error::other("a frame is too long to encrypt"))?;
    }
    let crc = checksum(seed, out);
    out[20..24].copy_from_slice(&crc.to_le_bytes());
    Ok(TableEntry {
        offset: 0,
        length: out.len() as u32,
        raw_length: raw.len() as u32,
        slots: lengths.len() as u32,
        crc,
    })
}

/// Puts the blocks at byte `at` of `out`, in the shorter of both forms. Returns their length and codec.
fn compress(
    out: &mut Vec<u8>,
    compressor: &mut zstd::bulk::Compressor<'_>,
    at: usize,
    raw: &[u8],
) -> std::io::Result<(usize, u8)> {
    out.clear();
    out.resize(at, 0);
    // Memory that is not cleared first: that would cost as much as the checksum.
    out.reserve(zstd::zstd_safe::compress_bound(raw.len()).max(raw.len()));
    let mut behind = std::io::Cursor::new(&mut *out);
    behind.set_position(at as u64);
    let stored = compressor.compress_to_buffer(raw, &mut behind)?;
    if stored < raw.len() {
        return Ok((stored, CODEC_ZSTD));
    }
    out.truncate(at);
    out.extend_from_slice(raw);
    Ok((raw.len(), CODEC_STORED))
}

fn checksum(seed: u32, frame: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(seed, &frame[..20]);
    crc32c::crc32c_append(crc, &frame[FRAME_HEADER..])
}

/// A frame's blocks.
#[derive(Debug)]
pub(crate) struct Frame {
    raw: Vec<u8>,
    /// Where each slot ends in `raw`.
    ends: Vec<u32>,
}

impl Frame {
    /// Returns the bytes of a slot; empty when the slot was dropped, `None` when it never was.
    pub(crate) fn slot(&self, slot: u16) -> Option<&[u8]> {
        let slot = usize::from(slot);
        let end = *self.ends.get(slot)? as usize;
        let start = if slot == 0 {
            0
        } else {
            self.ends[slot - 1] as usize
        };
        self.raw.get(start..end)
    }

    pub(crate) fn slots(&self) -> usize {
        self.ends.len()
    }

    /// Returns the memory it takes, in bytes.
    pub(crate) fn weight(&self) -> usize {
        self.raw.len() + self.ends.len() * 4
    }
}

/// Checks a frame as stored against its table entry, without opening or decompressing it.
pub(crate) fn check(
    bytes: &[u8],
    (seed, sealed): (u32, bool),
    number: u32,
    entry: &TableEntry,
) -> Result<(), BadFrame> {
    if bytes.len() < FRAME_HEADER || bytes.len() != entry.length as usize {
        return Err(BadFrame::Malformed);
    }
    let stored = u32::from_le_bytes([bytes[20], bytes[21], bytes[22], bytes[23]]);
    if stored != entry.crc || checksum(seed, bytes) != stored {
        return Err(BadFrame::Checksum);
    }
    let mut head = Cursor::new(bytes);
    let same = head.array()? == MAGIC && head.u32()? == number;
    let payload = head.u32()? as usize;
    let raw_length = head.u32()?;
    let slots = u32::from(head.u16()?);
    let codec = head.u8()?;
    let (cipher, tag) = match sealed {
        false => (CIPHER_NONE, 0),
        true => (CIPHER_XCHACHA, TAG),
    };
    if codec > CODEC_ZSTD || head.u8()? != cipher {
        return Err(BadFrame::Cipher);
    }
    let length = FRAME_HEADER + slots as usize * 4 + payload + tag;
    if !same
        || raw_length != entry.raw_length
        || slots != entry.slots
        || length != bytes.len()
        || raw_length > BLOCK_SIZE_MAX.max(FRAME_RAW_MAX as u32)
    {
        return Err(BadFrame::Malformed);
    }
    Ok(())
}

/// Checks, opens and decompresses a frame.
pub(crate) fn decode(
    bytes: &[u8],
    (seed, sealer): (u32, Option<&Sealer>),
    number: u32,
    entry: &TableEntry,
    decompressor: &mut zstd::bulk::Decompressor<'_>,
) -> Result<Frame, BadFrame> {
    check(bytes, (seed, sealer.is_some()), number, entry)?;
    let opened;
    let content = match sealer {
        None => &bytes[FRAME_HEADER..],
        Some(sealer) => {
            let content = sealer.open(u64::from(number), &bytes[..FRONT], &bytes[FRAME_HEADER..]);
            opened = content.map_err(|_| BadFrame::Unopened)?;
            &opened
        }
    };
    let (lengths, payload) = content.split_at(entry.slots as usize * 4);
    let mut lengths = Cursor::new(lengths);
    let mut ends = Vec::with_capacity(entry.slots as usize);
    let mut end = 0u32;
    for _ in 0..entry.slots {
        end = end.checked_add(lengths.u32()?).ok_or(BadFrame::Malformed)?;
        ends.push(end);
    }
    let raw_length = entry.raw_length as usize;
    let raw = if bytes[18] == CODEC_STORED {
        payload.to_vec()
    } else {
        decompressor
            .decompress(payload, raw_length)
            .map_err(|_| BadFrame::Decompression)?
    };
    if raw.len() != raw_length || end != entry.raw_length {
        return Err(BadFrame::Malformed);
    }
    Ok(Frame { raw, ends })
}

/// Returns table and trailer: what ends a pack whose frames end at `table_offset`.
pub(crate) fn encode_tail(seed: u32, table_offset: u64, table: &[TableEntry]) -> Vec<u8> {
    let mut out = Vec::with_capacity(table.len() * TABLE_ENTRY + TRAILER);
    for entry in table {
        out.extend_from_slice(&entry.offset.to_le_bytes());
        out.extend_from_slice(&entry.length.to_le_bytes());
        out.extend_from_slice(&entry.raw_length.to_le_bytes());
        out.extend_from_slice(&entry.slots.to_le_bytes());
        out.extend_from_slice(&entry.crc.to_le_bytes());
    }
    out.extend_from_slice(&TRAILER_MAGIC);
    out.extend_from_slice(&table_offset.to_le_bytes());
    out.extend_from_slice(&(table.len() as u32).to_le_bytes());
    out.extend_from_slice(&[0; 8]);
    let crc = crc32c::crc32c_append(seed, &out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

/// Returns where the table of a pack of `size` bytes begins, from the pack's last 32 bytes.
pub(crate) fn table_offset(trailer: &[u8; TRAILER], size: u64) -> Result<u64, Malformed> {
    let mut fields = Cursor::new(trailer);
    if fields.array()? != TRAILER_MAGIC {
        return Err(Malformed);
    }
    let offset = fields.u64()?;
    let frames = fields.u32()?;
    if frames > FRAMES_MAX {
        return Err(Malformed);
    }
    let frames = u64::from(frames);
    match offset.checked_add(frames * TABLE_ENTRY as u64 + TRAILER as u64) {
        Some(end) if end == size => Ok(offset),
        _ => Err(Malformed),
    }
}

/// Reads table and trailer; frames must follow each other without a gap from `first_offset` on.
pub(crate) fn decode_tail(
    tail: &[u8],
    seed: u32,
    first_offset: u64,
    table_offset: u64,
) -> Result<Vec<TableEntry>, BadFrame> {
    if tail.len() < TRAILER || !(tail.len() - TRAILER).is_multiple_of(TABLE_ENTRY) {
        return Err(BadFrame::Malformed);
    }
    let (body, crc) = tail.split_at(tail.len() - 4);
    if crc != crc32c::crc32c_append(seed, body).to_le_bytes() {
        return Err(BadFrame::Checksum);
    }
    let count = (tail.len() - TRAILER) / TABLE_ENTRY;
    let mut fields = Cursor::new(body);
    let mut table = Vec::with_capacity(count);
    let mut next = first_offset;
    for _ in 0..count {
        let entry = TableEntry {
            offset: fields.u64()?,
            length: fields.u32()?,
            raw_length: fields.u32()?,
            slots: fields.u32()?,
            crc: fields.u32()?,
        };
        if entry.slots as usize > FRAME_SLOTS_MAX
            || entry.raw_length > BLOCK_SIZE_MAX
            || entry.length as usize > FRAME_LENGTH_MAX
        {
            return Err(BadFrame::Malformed);
        }
        if entry.length > 0 {
            if entry.offset != next {
                return Err(BadFrame::Malformed);
            }
            next += u64::from(entry.length);
        }
        table.push(entry);
    }
    if next != table_offset {
        return Err(BadFrame::Malformed);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(sealer: Option<&Sealer>) -> (Vec<u8>, TableEntry) {
        let mut out = Vec::new();
        let mut compressor = zstd::bulk::Compressor::new(1).unwrap();
        let raw: Vec<u8> = (0..300u32).map(|i| (i / 7) as u8).collect();
        let lengths = [100, 0, 200];
        let entry = encode(&mut out, &mut compressor, (9, sealer), 4, &lengths, &raw).unwrap();
        (out, entry)
    }

    fn sealer() -> Sealer {
        let key = crate::crypt::Key::of(&[5; 32]).unwrap();
        Sealer::new(&key, &[6; crate::format::header::HEADER_LENGTH])
    }

    #[test]
    fn every_bit_of_a_frame_counts() {
        let sealer = sealer();
        for sealer in [None, Some(&sealer)] {
            let (bytes, entry) = sample(sealer);
            let mut decompressor = zstd::bulk::Decompressor::new().unwrap();
            let frame = decode(&bytes, (9, sealer), 4, &entry, &mut decompressor).unwrap();
            assert_eq!(frame.slots(), 3);
            assert_eq!(frame.slot(0).unwrap().len(), 100);
            assert_eq!(frame.slot(1).unwrap().len(), 0);
            assert_eq!(frame.slot(2).unwrap()[0], 14);
            assert!(frame.slot(3).is_none());
            let sealed = sealer.is_some();
            for bit in 0..bytes.len() * 8 {
                let mut wrong = bytes.clone();
                wrong[bit / 8] ^= 1 << (bit % 8);
                assert!(check(&wrong, (9, sealed), 4, &entry).is_err(), "bit {bit}");
            }
            assert!(check(&bytes, (8, sealed), 4, &entry).is_err());
            assert!(check(&bytes, (9, sealed), 5, &entry).is_err());
            assert!(check(&bytes, (9, !sealed), 4, &entry).is_err());
        }
    }

    /// Checksums can be made by anyone; what is sealed cannot.
    #[test]
    fn a_forged_frame_does_not_open_though_its_checksum_is_right() {
        let sealer = sealer();
        let (bytes, entry) = sample(Some(&sealer));
        let mut decompressor = zstd::bulk::Decompressor::new().unwrap();
        for at in (0..20).chain(24..bytes.len()) {
            let mut wrong = bytes.clone();
            wrong[at] ^= 1;
            let crc = checksum(9, &wrong);
            wrong[20..24].copy_from_slice(&crc.to_le_bytes());
            let entry = TableEntry { crc, ..entry };
            let read = decode(&wrong, (9, Some(&sealer)), 4, &entry, &mut decompressor);
            assert!(read.is_err(), "byte {at}");
        }
        // Whole and sound, in the place of another.
        let mut moved = bytes.clone();
        moved[4] = 5;
        let crc = checksum(9, &moved);
        moved[20..24].copy_from_slice(&crc.to_le_bytes());
        let entry = TableEntry { crc, ..entry };
        assert_eq!(check(&moved, (9, true), 5, &entry), Ok(()));
        let read = decode(&moved, (9, Some(&sealer)), 5, &entry, &mut decompressor);
        assert_eq!(read.unwrap_err(), BadFrame::Unopened);
    }

    #[test]
    fn every_bit_of_a_tail_counts() {
        let (_, mut entry) = sample(None);
        entry.offset = 64;
        let end = 64 + u64::from(entry.length);
        let dropped = TableEntry {
            offset: 0,
            length: 0,
            ..entry
        };
        let tail = encode_tail(9, end, &[dropped, entry]);
        let trailer: [u8; TRAILER] = tail[tail.len() - TRAILER..].try_into().unwrap();
        assert_eq!(table_offset(&trailer, end + tail.len() as u64), Ok(end));
        assert_eq!(decode_tail(&tail, 9, 64, end).unwrap(), [dropped, entry]);
        for bit in 0..tail.len() * 8 {
            let mut wrong = tail.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_tail(&wrong, 9, 64, end).is_err(), "bit {bit}");
        }
    }
}
