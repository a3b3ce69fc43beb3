//! What the two sides of a clone tell each other besides blocks: which files there are, and how it ended.

use evenkeel_repository::FileMeta;
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::replication::SourceCoordinates;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a block: what is compared, and crosses whole where it differs. A hash of 16 bytes for 64 KiB is a
/// fortieth of a percent of what it may save; smaller blocks would make more hashes than pages of a busy server
/// differ, and larger ones send more around each page (of 16 KiB) that does.
pub(super) const BLOCK: u64 = 64 << 10;
/// Blocks of a stretch: what one thread asks for, reads and answers for at a time. 64 MiB, of which the hashes
/// are 16 KiB: neither side holds those of a whole file.
pub(super) const STRETCH: u64 = 1024;

/// The name of the object that says which files there are.
pub(super) const LIST: &str = "list";
/// The name of the object that says of which files something is there already: a byte for each.
pub(super) const HERE: &str = "here";
/// The name of the object that says how it ended.
pub(super) const END: &str = "end";
/// The folder of hashes of what is there.
pub(super) const HAVE: &str = "have";
/// The folder of what is sent.
pub(super) const PUT: &str = "put";

/// What a MySQL server calls itself. Two servers of one name cannot replicate from the same source, so a new one
/// makes its own.
pub(super) const OWN_NAME: &str = "data/auto.cnf";

/// 128 bits of BLAKE3.
pub(super) type Hash = [u8; 16];

/// Stands for a block that is not there.
pub(super) const LACKING: Hash = [0; 16];
/// Stands for a block that is a hole, all of it.
pub(super) const HOLE: Hash = [0xff; 16];

/// Returns the hash of a block, or of anything else.
pub(super) fn hash(bytes: &[u8]) -> Hash {
    first_half(&blake3::hash(bytes))
}

fn first_half(hash: &blake3::Hash) -> Hash {
    let mut half = [0; 16];
    half.copy_from_slice(&hash.as_bytes()[..16]);
    half
}

/// Returns the hash of many hashes.
pub(super) fn hash_all<'a>(hashes: impl IntoIterator<Item = &'a Hash>) -> Hash {
    let mut all = blake3::Hasher::new();
    for one in hashes {
        all.update(one);
    }
    first_half(&all.finalize())
}

/// Returns how many blocks a file of that size has.
pub(super) fn blocks(size: u64) -> u64 {
    size.div_ceil(BLOCK)
}

/// Returns how many stretches a file of that size has.
pub(super) fn stretches(size: u64) -> u64 {
    blocks(size).div_ceil(STRETCH)
}

/// Returns the blocks of a stretch of a file of that size.
pub(super) fn blocks_of(stretch: u64, size: u64) -> Range<u64> {
    let end = blocks(size);
    let start = stretch.saturating_mul(STRETCH).min(end);
    start..start.saturating_add(STRETCH).min(end)
}

/// Returns the bytes of a block of a file of that size.
pub(super) fn bytes_of(block: u64, size: u64) -> Range<u64> {
    let start = block.saturating_mul(BLOCK).min(size);
    start..start.saturating_add(BLOCK).min(size)
}

/// The files of an image.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ImageList {
    /// Whose they are: host and data directory.
    pub(super) source: String,
    /// The server's version.
    pub(super) version: Option<String>,
    /// Settings that a server on the files needs.
    pub(super) settings: BTreeMap<String, String>,
    /// Where each root was.
    pub(super) roots: BTreeMap<String, String>,
    /// The roots themselves, by their names, and the directories in them.
    pub(super) dirs: Vec<FileMeta>,
    /// The files. A file is known by its number in this list.
    pub(super) files: Vec<FileMeta>,
}

/// How it ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ImageEnd {
    /// The hash of the list and of all stretches, in their order.
    pub(super) hash: Hash,
    /// Where the image is in the server's binary log.
    pub(super) coordinates: Coordinates,
    /// Where a replica was in the binary logs of its sources.
    pub(super) source_coordinates: Vec<SourceCoordinates>,
    /// How long the applier of a replica stood.
    pub(super) applier_ms: f64,
    /// InnoDB pages that were checked.
    pub(super) pages_checked: u64,
    /// Pages that crash recovery restores from the doublewrite buffer.
    pub(super) pages_torn: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_stretch_and_block_end_with_the_file() {
        let size = (STRETCH + 1) * BLOCK + 7;
        assert_eq!((blocks(size), stretches(size)), (STRETCH + 2, 2));
        assert_eq!(blocks_of(0, size), 0..STRETCH);
        assert_eq!(blocks_of(1, size), STRETCH..STRETCH + 2);
        assert!(blocks_of(2, size).is_empty() && blocks_of(u64::MAX, size).is_empty());
        assert_eq!(bytes_of(STRETCH + 1, size), size - 7..size);
        assert!(bytes_of(u64::MAX, size).is_empty());
        assert_eq!((blocks(0), stretches(0)), (0, 0));
    }
}
