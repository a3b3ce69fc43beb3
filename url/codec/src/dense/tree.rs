//! The tree of decisions: alphabetic, balanced by how often bytes occur.

use super::shape::LEAVES;
use crate::format::{Bad, Reader};

/// Deeper than this no table may be: it bounds what a byte can cost.
pub(crate) const DEEPEST: usize = 20;

/// Where a decision leads.
#[derive(Debug, Clone, Copy)]
pub(super) enum Next {
    Node(u8),
    Leaf(u16),
}

/// A decision: below `middle`, or not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decision {
    pub(super) middle: u16,
    pub(super) next: [Next; 2],
    /// The part of 65 536 for the lower side, if all leaves were alike.
    pub(super) even: u32,
    /// Its number when nodes are counted from the top, row by row: the first ones are asked most.
    pub(super) rank: u8,
}

/// All decisions; the first is number 0.
#[derive(Debug)]
pub(super) struct Tree {
    places: Vec<Decision>,
}

impl Tree {
    /// Balances the tree by weights.
    pub(super) fn balanced(weights: &[u64]) -> Self {
        let total: u64 = weights.iter().sum();
        let least = total / (1 << 14) + 1;
        let mut sums = vec![0_u64];
        for weight in weights {
            sums.push(sums[sums.len() - 1] + weight.max(&least));
        }
        Self::made(&mut |from, to| {
            let wanted = (sums[from] + sums[to]) / 2;
            let above = sums[from + 1..to].partition_point(|sum| *sum < wanted) + from + 1;
            let middle = above.min(to - 1);
            if middle > from + 1 && wanted - sums[middle - 1] < sums[middle].abs_diff(wanted) {
                middle - 1
            } else {
                middle
            }
        })
    }

    fn made(choose: &mut impl FnMut(usize, usize) -> usize) -> Self {
        let mut places = Vec::with_capacity(LEAVES - 1);
        grow(&mut places, 0, LEAVES, choose);
        let mut tree = Self { places };
        tree.rank();
        tree
    }

    fn rank(&mut self) {
        let mut row = std::collections::VecDeque::from([0]);
        let mut ranks = 0..=u8::MAX;
        while let (Some(node), Some(rank)) = (row.pop_front(), ranks.next()) {
            self.places[node].rank = rank;
            for next in self.places[node].next {
                if let Next::Node(next) = next {
                    row.push_back(usize::from(next));
                }
            }
        }
    }

    /// Reads what [`Self::write`] wrote.
    pub(super) fn read(from: &mut Reader<'_>) -> Result<Self, Bad> {
        let middles: Vec<usize> = (0..LEAVES - 1)
            .map(|_| from.u16().map(usize::from))
            .collect::<Result<_, _>>()?;
        let mut next = middles.iter();
        let mut sound = true;
        let tree = Self::made(&mut |from, to| {
            let middle = next.next().copied().unwrap_or(0);
            sound &= from < middle && middle < to;
            middle.clamp(from + 1, to - 1)
        });
        if sound && tree.depth(0) <= DEEPEST {
            Ok(tree)
        } else {
            Err(Bad)
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for place in &self.places {
            out.extend_from_slice(&place.middle.to_le_bytes());
        }
    }

    #[inline]
    pub(super) fn node(&self, node: usize) -> &Decision {
        &self.places[node]
    }

    /// Shows every node's rank with the leaves below it: the first, the middle, the one behind the last.
    pub(super) fn visit(&self, show: &mut impl FnMut(u8, usize, usize, usize)) {
        let mut todo = vec![(0, 0, LEAVES)];
        while let Some((node, from, to)) = todo.pop() {
            let place = &self.places[node];
            let middle = usize::from(place.middle);
            show(place.rank, from, middle, to);
            for (next, from, to) in [(place.next[0], from, middle), (place.next[1], middle, to)] {
                if let Next::Node(next) = next {
                    todo.push((usize::from(next), from, to));
                }
            }
        }
    }

    fn depth(&self, node: usize) -> usize {
        let below = |next: Next| match next {
            Next::Leaf(_) => 0,
            Next::Node(node) => self.depth(usize::from(node)),
        };
        let [lower, upper] = self.places[node].next;
        1 + below(lower).max(below(upper))
    }
}

/// Makes the decisions for leaves `from..to`, parents before children.
fn grow(
    places: &mut Vec<Decision>,
    from: usize,
    to: usize,
    choose: &mut impl FnMut(usize, usize) -> usize,
) -> Next {
    if to - from == 1 {
        return Next::Leaf(from as u16);
    }
    let middle = choose(from, to);
    let here = places.len();
    places.push(Decision {
        middle: middle as u16,
        next: [Next::Leaf(0); 2],
        even: (65_536 * (middle - from) / (to - from)) as u32,
        rank: 0,
    });
    let lower = grow(places, from, middle, choose);
    let upper = grow(places, middle, to, choose);
    places[here].next = [lower, upper];
    Next::Node(here as u8)
}
