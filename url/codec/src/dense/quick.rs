//! What followed each context, laid out for coding: [`Store`] unpacked when a table is read.
//!
//! A list of one symbol is that and its step. Short lists are searched sixteen symbols at a time.
//! Long ones, few and asked for often, have their state at every node worked out beforehand.

use super::shape::{LEAVES, LEVELS, STATES, level};
use super::store::{Store, bucket_of, check};
use super::tree::Tree;

/// Symbols of a short list are held in so many bytes.
const SLOTS: usize = 16;
const NODES: usize = LEAVES - 1;
/// Parts of a bucket, by the lowest bits of what tells its records apart.
const PARTS: usize = 4;

/// What is known of a context.
#[derive(Debug, Clone, Copy)]
pub(super) enum Record {
    None,
    /// A symbol and the step of its count.
    One(u8, u8),
    /// A long list, by number.
    Long(u32),
    /// A short one, which the slot was filled with.
    Short,
}

/// One context's list, narrowed to the leaves below a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    from: u8,
    to: u8,
    middle: u8,
    symbols: [u8; SLOTS],
    sums: [u32; SLOTS],
}

impl Slot {
    pub(super) const EMPTY: Self = Self {
        from: 0,
        to: 0,
        middle: 0,
        symbols: [255; SLOTS],
        sums: [0; SLOTS],
    };

    /// Continues with one side of the last node.
    #[inline]
    pub(super) fn descend(&mut self, upper: bool) {
        let (from, to) = (self.from, self.to);
        self.from = if upper { self.middle } else { from };
        self.to = if upper { to } else { self.middle };
    }

    /// Its state at a node, whose lower side ends with leaf `last_lower`.
    #[inline(always)]
    pub(super) fn split(&mut self, last_lower: u8) -> usize {
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

/// The states of a long list at all nodes, by rank: those of the first five decisions lie together.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Row([u16; NODES]);

/// All contexts.
#[derive(Debug)]
pub(super) struct Quick {
    /// Where each part of each bucket begins.
    starts: Vec<u32>,
    /// Each two bytes as in [`Store`]; then for one symbol it and its step, for a long list its
    /// number in four bytes, for others symbols and counts.
    records: Vec<u8>,
    long: Vec<Row>,
    counts: [u32; 256],
}

impl Quick {
    pub(super) fn of(store: &Store, tree: &Tree) -> Self {
        let mut quick = Self {
            starts: Vec::with_capacity(PARTS * store.buckets.len()),
            records: Vec::with_capacity(store.records.len() + 4 * SLOTS),
            long: Vec::new(),
            counts: store.counts,
        };
        for pair in store.buckets.windows(2) {
            for part in 0..PARTS {
                quick.starts.push(quick.records.len() as u32);
                let (mut at, end) = (pair[0] as usize, pair[1] as usize);
                while let Some((check, len, start)) = store.head(at, end).filter(|_| at < end) {
                    at = start + 2 * len;
                    if usize::from(check) % PARTS == part {
                        quick.take(check, store.records[start..at].split_at(len), tree);
                    }
                }
            }
        }
        quick.starts.push(quick.records.len() as u32);
        // A list is read whole slots at a time.
        quick.records.extend_from_slice(&[0; 2 + 2 * SLOTS]);
        quick
    }

    fn take(&mut self, check: u16, (symbols, counts): (&[u8], &[u8]), tree: &Tree) {
        let head = check << 4 | symbols.len().min(15) as u16;
        self.records.extend_from_slice(&head.to_le_bytes());
        match symbols.len() {
            1 => {
                let step = level(self.counts[usize::from(counts[0])]);
                self.records.extend_from_slice(&[symbols[0], step as u8]);
            }
            ..15 => {
                self.records.extend_from_slice(symbols);
                self.records.extend_from_slice(counts);
            }
            _ => {
                let number = self.long.len() as u32;
                self.records.extend_from_slice(&number.to_le_bytes());
                self.long.push(states(tree, symbols, counts, &self.counts));
            }
        }
    }

    /// Where a context's part of its bucket begins and ends.
    #[inline]
    pub(super) fn bucket(&self, key: u64) -> (u32, u32) {
        let bucket = bucket_of(key, self.starts.len() / PARTS);
        let part = bucket * PARTS + usize::from(check(key)) % PARTS;
        (self.starts[part], self.starts[part + 1])
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
    pub(super) fn find(
        &self,
        key: u64,
        (at, end): (u32, u32),
        head: u16,
        slot: &mut Slot,
    ) -> Record {
        let wanted = check(key);
        let (mut at, mut head) = (at, head);
        while at < end {
            let len = u32::from(head & 15);
            if head >> 4 == wanted {
                let start = at as usize + 2;
                let Some(lists) = self.records.get(start..start + 2 * SLOTS) else {
                    return Record::None;
                };
                return match len {
                    1 => Record::One(lists[0], lists[1]),
                    15 => {
                        Record::Long(u32::from_le_bytes([lists[0], lists[1], lists[2], lists[3]]))
                    }
                    _ => {
                        self.fill(lists, len as usize, slot);
                        Record::Short
                    }
                };
            }
            at += if len == 15 { 6 } else { 2 + 2 * len };
            head = self.head(at);
        }
        Record::None
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
        slot.from = 0;
        slot.to = len as u8;
    }

    /// The state of a long list at a node.
    #[inline(always)]
    pub(super) fn state(&self, list: u32, rank: u8) -> usize {
        usize::from(self.long[list as usize].0[usize::from(rank)]).min(STATES - 1)
    }
}

/// The states of a list at all nodes.
fn states(tree: &Tree, symbols: &[u8], counts: &[u8], values: &[u32; 256]) -> Row {
    let mut sums = [0_u32; LEAVES + 1];
    for (symbol, count) in symbols.iter().zip(counts) {
        sums[usize::from(*symbol) + 1] = values[usize::from(*count)];
    }
    for at in 1..sums.len() {
        sums[at] += sums[at - 1];
    }
    let mut states = [0; NODES];
    tree.visit(&mut |rank, from, middle, to| {
        let (lower, upper) = (sums[middle] - sums[from], sums[to] - sums[middle]);
        states[usize::from(rank)] = (level(lower) * LEVELS + level(upper)) as u16;
    });
    Row(states)
}
