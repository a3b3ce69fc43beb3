//! Segments: the objects that an archive of binary logs consists of.
//!
//! ```text
//! u8[8] magic "EKBLSEG1"
//! u32   length of the header   (little endian)
//! u32   CRC32 of the header
//! …     header, JSON
//! …     the bytes of the log, one zstd frame
//! ```
//!
//! It is written at once and never changed. Its name says which bytes of which file it holds; the
//! header says what comes before, so that a gap shows. Drawn in `docs/src/design/binlog.md`.

use evenkeel_op::{Context, Error, ErrorKind, Result};
use evenkeel_repository::store::{Existing, Store};
use serde::{Deserialize, Serialize};
use std::io;

const MAGIC: &[u8; 8] = b"EKBLSEG1";
const PREFIX: usize = 16;
/// Headers are a few hundred bytes.
const HEADER_MAX: usize = 1 << 20;
/// No segment holds more of a log: a packet of 1 GiB comes in one event, which is not divided.
const RAW_MAX: u64 = 2 << 30;
const LEVEL: i32 = 3;

/// A place in a source's binary logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The file's name, without directory.
    pub file: String,
    /// Byte position in it.
    pub position: u64,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.position)
    }
}

/// What a segment says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentHeader {
    /// The binary log file.
    pub file: String,
    /// Position of its first byte there; 0 includes the file's magic.
    pub start: u64,
    /// Position after its last byte.
    pub end: u64,
    /// Where the stream was before it; none where an archive begins and behind a gap.
    pub previous: Option<Place>,
    /// Why there is a gap before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
    /// Position of its last event.
    pub last_event: u64,
    /// Transactions that end in it.
    pub transactions: u64,
    /// Time of the first of them, in seconds since 1970.
    pub first_time: Option<u32>,
    /// Time of the last of them.
    pub last_time: Option<u32>,
    /// GTID of the first of them that has one.
    pub first_gtid: Option<String>,
    /// GTID of the last of them that has one.
    pub last_gtid: Option<String>,
    /// Version of the server that it came from.
    pub server_version: String,
    /// CRC32 of the log's bytes.
    pub crc: u32,
    /// Bytes of the compressed frame.
    pub stored: u64,
}

/// Writes a segment of `bytes`; it is visible when it is whole and durable. Fills in what the header
/// says of the bytes themselves.
pub(super) fn write(
    store: &dyn Store,
    name: &str,
    header: &mut SegmentHeader,
    bytes: &[u8],
) -> Result<()> {
    let failed = || format!("failed to write {name}");
    let frame = zstd::bulk::compress(bytes, LEVEL).context(failed)?;
    header.crc = crc32fast::hash(bytes);
    header.stored = frame.len() as u64;
    let json = serde_json::to_vec(header).context(failed)?;
    let mut object = store.create(name, Existing::Refuse).context(failed)?;
    let mut start = MAGIC.to_vec();
    start.extend((json.len() as u32).to_le_bytes());
    start.extend(crc32fast::hash(&json).to_le_bytes());
    start.extend(json);
    object.write(&start).context(failed)?;
    object.write(&frame).context(failed)?;
    fail::fail_point!("archive::segment_written");
    object.finish().context(failed)
}

/// Reads a segment's header.
pub(super) fn header(store: &dyn Store, name: &str) -> Result<SegmentHeader> {
    open(store, name).map(|(_, header, _)| header)
}

/// Reads a segment: its header and the bytes of the log, verified.
pub(super) fn read(store: &dyn Store, name: &str) -> Result<(SegmentHeader, Vec<u8>)> {
    let (object, header, at) = open(store, name)?;
    let mut frame = vec![0; usize::try_from(header.stored).map_err(|_| damaged(name))?];
    object
        .read_exact_at(at, &mut frame)
        .map_err(|error| unreadable(name, error))?;
    let length = header.end - header.start;
    let bytes = zstd::bulk::decompress(&frame, length as usize).map_err(|_| damaged(name))?;
    if bytes.len() as u64 != length || crc32fast::hash(&bytes) != header.crc {
        return Err(damaged(name));
    }
    Ok((header, bytes))
}

type Opened = (
    Box<dyn evenkeel_repository::store::StoredObject>,
    SegmentHeader,
    u64,
);

fn open(store: &dyn Store, name: &str) -> Result<Opened> {
    let object = store.open(name).map_err(|error| unreadable(name, error))?;
    let mut prefix = [0; PREFIX];
    object
        .read_exact_at(0, &mut prefix)
        .map_err(|error| unreadable(name, error))?;
    let word = |at: usize| {
        u32::from_le_bytes([prefix[at], prefix[at + 1], prefix[at + 2], prefix[at + 3]])
    };
    let length = word(8) as usize;
    if prefix[..8] != *MAGIC || length > HEADER_MAX {
        return Err(damaged(name));
    }
    let mut json = vec![0; length];
    object
        .read_exact_at(PREFIX as u64, &mut json)
        .map_err(|error| unreadable(name, error))?;
    if crc32fast::hash(&json) != word(12) {
        return Err(damaged(name));
    }
    let header: SegmentHeader = serde_json::from_slice(&json).map_err(|_| damaged(name))?;
    let at = (PREFIX + length) as u64;
    let sane = header.start < header.end
        && header.end - header.start <= RAW_MAX
        && object.size().checked_sub(at) == Some(header.stored);
    match sane {
        true => Ok((object, header, at)),
        false => Err(damaged(name)),
    }
}

fn damaged(name: &str) -> Error {
    Error::new(ErrorKind::Differs, format!("{name} is damaged"))
        .hint("if the server still has that binary log, move the object away and archive again")
}

fn unreadable(name: &str, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged(name),
        _ => Error::failed(format!("failed to read {name}")).because(error),
    }
}
