//! Which blocks of a frozen file have to be read.

use evenkeel_repository::FileBuilder;
use evenkeel_snapshot::Changed;
use std::ops::Range;

/// Blocks in a leaf of a repository's map: what one work item covers.
pub(in crate::backup) const LEAF_BLOCKS: u64 = 256;

/// Blocks of one leaf that have to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::backup) struct LeafPlan {
    pub(in crate::backup) leaf: u64,
    /// Sorted, disjoint ranges of block numbers within the leaf.
    pub(in crate::backup) blocks: Vec<Range<u64>>,
    /// The ones that may have changed, where everything is read to audit that: a change outside
    /// of them is an error.
    pub(in crate::backup) candidates: Option<Vec<Range<u64>>>,
}

/// Returns what to read of a file, leaf by leaf.
pub(in crate::backup) fn leaves(
    builder: &FileBuilder,
    size: u64,
    block_size: u32,
    changed: &Changed,
    audit: bool,
) -> Vec<LeafPlan> {
    let all = 0..size.div_ceil(u64::from(block_size));
    let candidates = match changed {
        Changed::Ranges(ranges) if builder.has_base() => Some(candidate_blocks(
            ranges,
            builder.required_blocks(),
            block_size,
            all.end,
        )),
        _ => None,
    };
    match candidates {
        None => by_leaf(&[all]).collect(),
        Some(blocks) if !audit => by_leaf(&blocks).collect(),
        Some(blocks) => by_leaf(&[all])
            .map(|plan| LeafPlan {
                candidates: Some(blocks.clone()),
                ..plan
            })
            .collect(),
    }
}

/// Turns byte ranges into block ranges, adds the blocks that the base does not have, and merges.
fn candidate_blocks(
    ranges: &[Range<u64>],
    required: Range<u64>,
    block_size: u32,
    end: u64,
) -> Vec<Range<u64>> {
    let block = u64::from(block_size);
    let mut blocks: Vec<Range<u64>> = ranges
        .iter()
        .map(|range| range.start / block..range.end.div_ceil(block).min(end))
        .chain([required])
        .filter(|range| range.start < range.end)
        .collect();
    blocks.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(blocks.len());
    for range in blocks {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

// One range is what is meant, not the numbers in it.
#[allow(clippy::single_range_in_vec_init)]
/// Cuts sorted block ranges at leaf boundaries and groups them.
fn by_leaf(blocks: &[Range<u64>]) -> impl Iterator<Item = LeafPlan> {
    let mut plans: Vec<LeafPlan> = Vec::new();
    for range in blocks {
        let mut start = range.start;
        while start < range.end {
            let leaf = start / LEAF_BLOCKS;
            let end = range.end.min((leaf + 1) * LEAF_BLOCKS);
            match plans.last_mut() {
                Some(plan) if plan.leaf == leaf => plan.blocks.push(start..end),
                _ => plans.push(LeafPlan {
                    leaf,
                    blocks: vec![start..end],
                    candidates: None,
                }),
            }
            start = end;
        }
    }
    plans.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::single_range_in_vec_init)]
    fn bytes_become_merged_blocks() {
        let blocks = candidate_blocks(&[0..1, 16384..20000, 65536..65537], 9..12, 16384, 12);
        assert_eq!(blocks, [0..2, 4..5, 9..12]);
        assert_eq!(candidate_blocks(&[0..999_999], 0..0, 16384, 3), [0..3]);
        assert_eq!(candidate_blocks(&[], 3..3, 16384, 3), []);
    }

    #[test]
    #[allow(clippy::single_range_in_vec_init)]
    fn leaves_are_cut_at_their_boundaries() {
        let plans: Vec<_> = by_leaf(&[250..260, 300..301, 1024..1025]).collect();
        let found: Vec<_> = plans
            .iter()
            .map(|plan| (plan.leaf, plan.blocks.clone()))
            .collect();
        assert_eq!(
            found,
            [
                (0, vec![250..256]),
                (1, vec![256..260, 300..301]),
                (4, vec![1024..1025])
            ]
        );
    }
}
