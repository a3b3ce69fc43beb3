//! What followed each context, laid out for coding: [`Store`] unpacked when a table is read.
//!
//! Short lists are searched sixteen symbols at a time. Long ones, few and asked for often, have
//! their state at every node worked out beforehand.

use super::store::Store;
use super::tree::Tree;
use super::{LEAVES, LEVELS, STATES, level};

/// Symbols of a short list are held in so many bytes.
const SLOTS: usize = 16;
const NODES: usize = LEAVES - 1;

/// One context's list, narrowed to the leaves below a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    /// The number of a long list plus one.
    long: u32,
    /// All bits where the context is known.
    pub(super) mask: i16,
    from: u8,
    to: u8,
    middle: u8,
    symbols: [u8; SLOTS],
    sums: [u32; SLOTS],
}

impl Slot {
    pub(super) const EMPTY: Self = Self {
        long: 0,
        mask: 0,
        from: 0,
        to: 0,
        middle: 0,
        symbols: [255; SLOTS],
        sums: [0; SLOTS],
    };

    /// Goes on with one side of the last node.
    #[inline]
    pub(super) fn descend(&mut self, upper: bool) {
        if upper {
            self.from = self.middle;
        } else {
            self.to = self.middle;
        }
    }

    #[inline]
    fn split(&mut self, last_lower: u8) -> usize {
        let mut below = 0_u8;
        for symbol in &self.symbols {
            below += u8::from(*symbol <= last_lower);
        }
        let middle = below.min(self.to);
        self.middle = middle;
        let sum = |at: u8| self.sums[usize::from(at) % SLOTS];
        let lower = sum(middle).wrapping_sub(sum(self.from));
        let upper = sum(self.to).wrapping_sub(sum(middle));
        level(lower) * LEVELS + level(upper)
    }
}

/// All contexts.
#[derive(Debug)]
pub(super) struct Quick {
    buckets: Vec<u32>,
    /// As in [`Store`]; a long list is its check, a 15 and its number in four bytes.
    records: Vec<u8>,
    long: Vec<[u16; NODES]>,
    counts: [u32; 256],
}

impl Quick {
    pub(super) fn of(store: &Store, tree: &Tree) -> Self {
        let mut quick = Self {
            buckets: Vec::with_capacity(store.buckets.len()),
            records: Vec::with_capacity(store.records.len() + 4 * SLOTS),
            long: Vec::new(),
            counts: store.counts,
        };
        for pair in store.buckets.windows(2) {
            quick.buckets.push(quick.records.len() as u32);
            let (mut at, end) = (pair[0] as usize, pair[1] as usize);
            while let Some((check, len, start)) = store.head(at, end).filter(|_| at < end) {
                let lists = &store.records[start..start + 2 * len];
                let head = check << 4 | len.min(15) as u16;
                quick.records.extend_from_slice(&head.to_le_bytes());
                if len < 15 {
                    quick.records.extend_from_slice(lists);
                } else {
                    let number = quick.long.len() as u32;
                    quick.records.extend_from_slice(&number.to_le_bytes());
                    let (symbols, counts) = lists.split_at(len);
                    quick
                        .long
                        .push(states(tree, symbols, counts, &store.counts));
                }
                at = start + 2 * len;
            }
        }
        quick.buckets.push(quick.records.len() as u32);
        // A list is read whole slots at a time.
        quick.records.extend_from_slice(&[0; 2 + 2 * SLOTS]);
        quick
    }

    /// Where a context's bucket begins and ends.
    #[inline]
    pub(super) fn bucket(&self, key: u64) -> (u32, u32) {
        let bucket = super::store::bucket_of(key, self.buckets.len() - 1);
        (self.buckets[bucket], self.buckets[bucket + 1])
    }

    /// The head of the record that begins there. Behind the last record there are zeros.
    #[inline]
    pub(super) fn head(&self, at: u32) -> u16 {
        let at = at as usize;
        match self.records.get(at..at + 2) {
            Some(head) => u16::from_le_bytes([head[0], head[1]]),
            None => 0,
        }
    }

    /// Looks a context up in its bucket, whose first head was read already.
    #[inline]
    pub(super) fn find(&self, key: u64, (at, end): (u32, u32), head: u16, slot: &mut Slot) {
        let wanted = super::store::check(key);
        let (mut at, mut head) = (at, head);
        slot.long = 0;
        slot.mask = 0;
        slot.from = 0;
        slot.to = 0;
        while at < end {
            let len = u32::from(head & 15);
            if head >> 4 == wanted {
                slot.mask = -1;
                let start = at as usize + 2;
                let Some(lists) = self.records.get(start..start + 2 * SLOTS) else {
                    return;
                };
                if len == 15 {
                    slot.long = 1 + u32::from_le_bytes([lists[0], lists[1], lists[2], lists[3]]);
                } else {
                    self.fill(lists, len as usize, slot);
                }
                return;
            }
            at += if len == 15 { 6 } else { 2 + 2 * len };
            head = self.head(at);
        }
    }

    #[inline]
    fn fill(&self, lists: &[u8], len: usize, slot: &mut Slot) {
        for (at, (to, from)) in slot.symbols.iter_mut().zip(lists).enumerate() {
            *to = from | if at < len { 0 } else { 255 };
        }
        let mut sum = 0;
        for (at, count) in lists[len..2 * len].iter().enumerate() {
            slot.sums[at % SLOTS] = sum;
            sum += self.counts[usize::from(*count)];
        }
        slot.sums[len % SLOTS] = sum;
        slot.to = len as u8;
    }

    /// The state of a list at a node, whose lower side ends with leaf `last_lower`.
    #[inline(always)]
    pub(super) fn state(&self, slot: &mut Slot, node: usize, last_lower: u8) -> usize {
        if slot.long > 0 {
            usize::from(self.long[slot.long as usize - 1][node % NODES]).min(STATES - 1)
        } else {
            slot.split(last_lower)
        }
    }
}

/// The states of a list at all nodes.
fn states(tree: &Tree, symbols: &[u8], counts: &[u8], values: &[u32; 256]) -> [u16; NODES] {
    let mut sums = [0_u32; LEAVES + 1];
    for (symbol, count) in symbols.iter().zip(counts) {
        sums[usize::from(*symbol) + 1] = values[usize::from(*count)];
    }
    for at in 1..sums.len() {
        sums[at] += sums[at - 1];
    }
    let mut states = [0; NODES];
    tree.visit(&mut |node, from, middle, to| {
        let (lower, upper) = (sums[middle] - sums[from], sums[to] - sums[middle]);
        states[node] = (level(lower) * LEVELS + level(upper)) as u16;
    });
    states
}
