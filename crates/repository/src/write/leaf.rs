//! The 256 blocks that are compared, stored and mapped together.

use super::worker::Worker;
use crate::ids::BlockHash;
use crate::map::tree::TreeLeaf;
use crate::map::{Entry, FAN_OUT};
use evenkeel_op::{Error, Result};
use std::ops::Range;

/// What became of a block that was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is as in the base: nothing was stored.
    Kept,
    /// It differs from the base, or there is no base.
    Changed,
}

/// A leaf in the making. Blocks that are not given stay as they are in the base.
pub struct Leaf {
    pub(crate) index: u64,
    pub(crate) entries: Vec<Entry>,
    pub(crate) base: Option<TreeLeaf>,
    first: u64,
    block_size: u32,
    size: u64,
}

impl Leaf {
    /// Makes a leaf of `count` blocks. Base entries of blocks from `given_from` on are not kept.
    pub(crate) fn new(
        index: u64,
        count: usize,
        base: Option<TreeLeaf>,
        given_from: u64,
        (block_size, size): (u32, u64),
    ) -> Self {
        let first = index * FAN_OUT;
        let mut entries = vec![Entry::Absent; count];
        if let Some(base) = &base {
            let kept = given_from.saturating_sub(first).min(count as u64) as usize;
            let kept = kept.min(base.entries.len());
            entries[..kept].copy_from_slice(&base.entries[..kept]);
        }
        Self {
            index,
            entries,
            base,
            first,
            block_size,
            size,
        }
    }

    /// Returns the numbers of its blocks in the file.
    #[must_use]
    pub fn blocks(&self) -> Range<u64> {
        self.first..self.first + self.entries.len() as u64
    }

    /// Returns the byte range of a block in the file.
    #[must_use]
    pub fn byte_range(&self, block: u64) -> Range<u64> {
        let start = block * u64::from(self.block_size);
        start..(start + u64::from(self.block_size)).min(self.size)
    }

    /// Returns where in the file the last of its blocks ends.
    pub(crate) fn end(&self) -> u64 {
        let last = self.blocks().end.saturating_sub(1);
        self.byte_range(last).end
    }

    /// Gives a block: all of its bytes.
    pub fn put(&mut self, worker: &mut Worker, block: u64, bytes: &[u8]) -> Result<Change> {
        let range = self.byte_range(block);
        // A short read must never pass for a short block.
        if bytes.len() as u64 != range.end.saturating_sub(range.start) {
            return Err(Error::failed(format!(
                "block {block} was given with {} bytes in place of {}",
                bytes.len(),
                range.end.saturating_sub(range.start)
            )));
        }
        self.place(worker, block, bytes, false)
    }

    /// Gives a block of which only the front is allocated, as a page-compressed page: `bytes`,
    /// then a hole up to the block's end.
    pub fn put_with_tail_hole(
        &mut self,
        worker: &mut Worker,
        block: u64,
        bytes: &[u8],
    ) -> Result<Change> {
        let range = self.byte_range(block);
        if bytes.is_empty() || bytes.len() as u64 >= range.end.saturating_sub(range.start) {
            return Err(Error::failed(format!(
                "block {block} was given with a front of {} bytes, which leaves no tail",
                bytes.len()
            )));
        }
        self.place(worker, block, bytes, true)
    }

    /// Returns whether the block is all zero in the base, allocated or not.
    #[must_use]
    pub fn base_is_zero(&self, block: u64) -> bool {
        let entries = self.base.as_ref().map(|base| base.entries.as_slice());
        let entry = self
            .at(block)
            .ok()
            .and_then(|at| entries.and_then(|entries| entries.get(at)));
        matches!(entry, Some(Entry::Zero | Entry::Hole))
    }

    /// Says that a block is not allocated in the source.
    pub fn hole(&mut self, worker: &mut Worker, block: u64) -> Result<Change> {
        self.set(worker, block, Entry::Hole, 0)
    }

    fn place(
        &mut self,
        worker: &mut Worker,
        block: u64,
        bytes: &[u8],
        tail_hole: bool,
    ) -> Result<Change> {
        let at = self.at(block)?;
        if !tail_hole && is_zero(bytes) {
            return self.set(worker, block, Entry::Zero, bytes.len());
        }
        let hash = BlockHash::of(bytes);
        let old = self.base.as_ref().and_then(|base| base.entries.get(at));
        let entry = match old {
            Some(&Entry::Data {
                hash: old_hash,
                tail_hole: old_tail,
                ..
            }) if old_hash == hash && old_tail == tail_hole => old.copied(),
            _ => None,
        };
        let entry = match entry {
            Some(entry) => entry,
            None => Entry::Data {
                place: worker.store(bytes)?,
                hash,
                tail_hole,
            },
        };
        self.set(worker, block, entry, bytes.len())
    }

    fn set(
        &mut self,
        worker: &mut Worker,
        block: u64,
        entry: Entry,
        length: usize,
    ) -> Result<Change> {
        let at = self.at(block)?;
        let old = self.base.as_ref().and_then(|base| base.entries.get(at));
        let change = if old == Some(&entry) {
            Change::Kept
        } else {
            Change::Changed
        };
        self.entries[at] = entry;
        worker.counts.blocks_given += 1;
        worker.counts.bytes_given += length as u64;
        if change == Change::Changed {
            worker.counts.blocks_changed += 1;
            worker.counts.bytes_changed += length as u64;
        }
        Ok(change)
    }

    fn at(&self, block: u64) -> Result<usize> {
        if self.blocks().contains(&block) {
            Ok((block - self.first) as usize)
        } else {
            Err(Error::failed(format!(
                "block {block} is not one of leaf {}",
                self.index
            )))
        }
    }
}

/// Whether all bytes are zero. Gives up at the first 64 bytes that are not.
fn is_zero(bytes: &[u8]) -> bool {
    let (chunks, rest) = bytes.as_chunks::<64>();
    chunks
        .iter()
        .all(|chunk| chunk.iter().fold(0, |all, byte| all | byte) == 0)
        && rest.iter().all(|&byte| byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bit_is_not_zero() {
        for length in [1, 63, 64, 65, 16384] {
            let mut bytes = vec![0; length];
            assert!(is_zero(&bytes));
            for at in [0, length / 2, length - 1] {
                bytes[at] = 0x80;
                assert!(!is_zero(&bytes));
                bytes[at] = 0;
            }
        }
    }
}
