//! `files`: what a generation consists of, sorted by name, in compressed chunks with an index.

mod reader;
mod sort;
mod writer;

pub use reader::Files;
pub(crate) use reader::ListReader;
pub(crate) use sort::Sorter;
pub(crate) use writer::ListWriter;

use crate::format::frame::BLOCK_SIZE_MAX;
use crate::map::Child;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// ```text
///  per chunk:
///  0 payload length            4   as stored
///  4 raw length                4
///  8 records                   4
/// 12 chunk number              4   0xffff_ffff for the index
/// 16 codec                     1   1 zstd
/// 17 cipher                    1   0 none, 1 XChaCha20-Poly1305
/// 18 zero                      2
/// 20 crc32c                    4   seeded; of bytes 0..20 and the payload
/// 24 payload                       records: JSON lines;
///                                  index: offset (8), name length (4), first name, per chunk;
///                                  with a cipher sealed, and 16 bytes longer by its tag
///  at the end:
///  0 magic "listtail"          8
///  8 index offset              8
/// 16 records                   8
/// 24 chunks                    4
/// 28 crc32c                    4   seeded; of bytes 0..28
/// ```
const CHUNK_HEADER: usize = 24;
/// What of it a sealed chunk is bound to: all before the checksum.
const CHUNK_FRONT: usize = 20;
const LIST_TRAILER: usize = 32;
const LIST_MAGIC: [u8; 8] = *b"listtail";
const INDEX_NUMBER: u32 = u32::MAX;
/// Raw bytes after which a chunk is closed.
const CHUNK_RAW: usize = 64 << 10;
/// No chunk is larger, unless one record alone is; also the longest record.
const CHUNK_RAW_MAX: u32 = 64 << 20;
/// No chunk is longer as stored.
const CHUNK_LENGTH_MAX: u64 = CHUNK_RAW_MAX as u64 + (1 << 20);

/// What an entry of a generation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A regular file with content.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Symlink,
}

/// What the caller knows about a file, directory or link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileMeta {
    /// Name in the generation, parts joined by `/`, unique.
    pub name: String,
    /// What it is.
    pub kind: FileKind,
    /// Length in bytes; 0 unless a regular file.
    #[serde(default)]
    pub size: u64,
    /// Bytes of a block: a power of two from 512 to 1 MiB. The last block may be short.
    #[serde(default)]
    pub block_size: u32,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Modification time, seconds and nanoseconds since 1970.
    pub mtime: (i64, u32),
    /// Bytes allocated in the source, for comparison after a restore.
    #[serde(default)]
    pub allocated: u64,
    /// Target of a symbolic link, escaped like names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Extended attributes: name and value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub xattrs: BTreeMap<String, Vec<u8>>,
    /// Anything else that the caller wants back.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub extra: serde_json::Value,
}

/// The smallest and the largest block.
const BLOCK_SIZES: std::ops::RangeInclusive<u32> = 512..=BLOCK_SIZE_MAX;

impl FileMeta {
    /// Whether its content can have been stored in blocks: of a size that there is, and of no file that is
    /// longer than any.
    pub(crate) fn has_sound_blocks(&self) -> bool {
        self.kind == FileKind::File
            && self.block_size.is_power_of_two()
            && BLOCK_SIZES.contains(&self.block_size)
            && self.size <= i64::MAX as u64
    }

    /// Makes the description of a regular file owned by root, to be completed by the caller.
    #[must_use]
    pub fn file(name: impl Into<String>, size: u64, block_size: u32) -> Self {
        Self {
            name: name.into(),
            kind: FileKind::File,
            size,
            block_size,
            mode: 0o600,
            uid: 0,
            gid: 0,
            mtime: (0, 0),
            allocated: 0,
            target: None,
            xattrs: BTreeMap::new(),
            extra: serde_json::Value::Null,
        }
    }

    /// Returns the number of blocks.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        if self.block_size == 0 {
            return 0;
        }
        self.size.div_ceil(u64::from(self.block_size))
    }

    /// Returns the length in bytes of a block: shorter only for the last.
    #[must_use]
    pub fn block_length(&self, block: u64) -> usize {
        let start = block.saturating_mul(u64::from(self.block_size));
        self.size
            .saturating_sub(start)
            .min(u64::from(self.block_size)) as usize
    }
}

/// An entry of a generation, as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileRecord {
    /// What the caller gave.
    #[serde(flatten)]
    pub meta: FileMeta,
    /// Identity that a file keeps from generation to generation; part of its map records.
    #[serde(default)]
    pub(crate) id: u64,
    /// Level of the map's root.
    #[serde(default)]
    pub(crate) level: u8,
    /// The map's root; `None` for what has no blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) map: Option<Child>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_may_be_short() {
        let meta = FileMeta::file("a", 10_000, 4096);
        assert_eq!(meta.blocks(), 3);
        assert_eq!(meta.block_length(1), 4096);
        assert_eq!(meta.block_length(2), 10_000 - 8192);
        assert_eq!(meta.block_length(3), 0);
    }
}
