//! Which block of a file lies where: a tree of leaves (256 blocks each) and nodes (256 children
//! each), of which a generation writes only what changed.

pub(crate) mod leaf;
pub(crate) mod node;
pub(crate) mod tree;

use crate::ids::BlockHash;
use serde::{Deserialize, Serialize};

/// Blocks in a leaf, and children in a node.
pub(crate) const FAN_OUT: u64 = 256;

/// Where a block's bytes lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BlockAddress {
    pub(crate) generation: u32,
    pub(crate) pack: u32,
    pub(crate) frame: u32,
    pub(crate) slot: u16,
}

/// What a block of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Not known (yet): never written to a map.
    Absent,
    /// Not allocated in the source.
    Hole,
    /// Allocated, all bytes zero.
    Zero,
    /// Stored bytes; with `tail_hole` they are only the front of the block, the rest is a hole.
    Data {
        place: BlockAddress,
        hash: BlockHash,
        tail_hole: bool,
    },
}

/// Where a record lies in some generation's `maps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct RecordRef {
    pub(crate) generation: u32,
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

/// A subtree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Child {
    /// Not known (yet): never written to a map.
    Absent,
    /// Nothing but holes.
    Hole,
    /// Nothing but zeros.
    Zero,
    /// A leaf or node record.
    Record(RecordRef),
}

impl Child {
    /// Returns what every block of a subtree without a record is.
    pub(crate) fn uniform(self) -> Entry {
        match self {
            Self::Hole => Entry::Hole,
            Self::Zero => Entry::Zero,
            Self::Absent | Self::Record(_) => Entry::Absent,
        }
    }
}

/// Returns how many blocks a subtree whose top is at `level` can hold.
pub(crate) fn span(level: u8) -> u64 {
    // 256^7 blocks of a byte are 2^56 bytes; beyond it everything is "as many as there are".
    FAN_OUT
        .checked_pow(u32::from(level) + 1)
        .unwrap_or(u64::MAX)
}

/// Returns the level of the root of a file of `blocks` blocks: 0 when one leaf is enough.
pub(crate) fn height(blocks: u64) -> u8 {
    (0..8).find(|&level| span(level) >= blocks).unwrap_or(7)
}

/// Returns how many children the record at (`level`, `index`) has in a file of `blocks` blocks:
/// blocks for a leaf (level 0), subtrees for a node.
pub(crate) fn width(level: u8, index: u64, blocks: u64) -> usize {
    let unit = if level == 0 { 1 } else { span(level - 1) };
    let first = index.saturating_mul(span(level));
    let rest = blocks.saturating_sub(first).div_ceil(unit);
    rest.min(FAN_OUT) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_as_high_as_needed() {
        assert_eq!(height(0), 0);
        assert_eq!(height(256), 0);
        assert_eq!(height(257), 1);
        assert_eq!(height(65536), 1);
        assert_eq!(height(65537), 2);
        assert_eq!(height(1 << 26), 3);
        assert_eq!(width(0, 1, 257), 1);
        assert_eq!(width(1, 0, 257), 2);
        assert_eq!(width(1, 0, 65536), 256);
        assert_eq!(width(0, 2, 257), 0);
        assert_eq!(width(2, 0, 65537), 2);
    }
}
