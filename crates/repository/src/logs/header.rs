//! What a segment of an archived binary log says of itself.

use crate::ids::{BlockHash, RepositoryId};
use serde::{Deserialize, Serialize};

/// A place in a source's binary logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPosition {
    /// The file's name, without directory.
    pub file: String,
    /// Byte position in it.
    pub position: u64,
}

impl std::fmt::Display for LogPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.position)
    }
}

/// Whose a segment is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    /// The repository that it was written for.
    pub repository: RepositoryId,
    /// The server.
    pub source: String,
    /// The timeline of its log.
    pub timeline: String,
}

/// A transaction that has begun and is not complete at the end of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    /// Position of its first event.
    pub start: u64,
    /// The time of its first event, in seconds since 1970.
    pub time: u32,
    /// The time of its last statement so far.
    pub statement: u32,
    /// Its GTID, if it has one.
    pub gtid: Option<String>,
    /// Whether a commit ends it, rather than the next statement.
    pub in_transaction: bool,
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
    pub previous: Option<LogPosition>,
    /// Why there is a gap before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
    /// Position of its last event.
    pub last_event: u64,
    /// Hash of that event: who cannot read the log knows by it whether a server continues it. Not
    /// in segments of the first program that wrote them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event_hash: Option<BlockHash>,
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
    /// All transactions that its server had executed at its end, as the server writes it: who cannot
    /// read the log knows by it whether another server continues from there. Not where that is not
    /// known: without GTIDs, and in segments of programs that did not look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gtids: Option<String>,
    /// The time of the last statement in the last transaction, which replicas keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_statement: Option<u32>,
    /// The transaction in the middle of which it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<Unfinished>,
    /// Version of the server that it came from.
    pub server_version: String,
    /// CRC32 of the log's bytes.
    pub crc: u32,
    /// Bytes of the compressed frame, before it is sealed.
    pub stored: u64,
    /// crc32c of that frame. Not in segments of the first program that wrote them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_crc: Option<u32>,
    /// Whose it is. Not in segments of the first program that wrote them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Home>,
}
