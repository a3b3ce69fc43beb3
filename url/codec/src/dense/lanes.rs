//! What the contexts say about the next byte, on its way down the tree.
//!
//! Most contexts know one symbol or none. Those have two logits, one while the symbol is still
//! possible and one afterwards, and all of them are dealt with at once, a lane for each context.
//! The others, mostly the short orders, are asked one by one.

use super::Dense;
use super::quick::{Record, Slot};
use super::shape::LEVELS;
use crate::history::{History, ORDERS};

/// A guess by each of `N` contexts.
#[derive(Debug, Clone)]
pub(super) struct Guesses<const N: usize> {
    /// The one symbol of each context.
    symbol: [i16; N],
    /// Its logit if the symbol is on the lower side, if it is on the upper one, and if it is out.
    lower: [i16; N],
    upper: [i16; N],
    out: [i16; N],
    /// The contexts with long lists and those lists, the first `longs`.
    long: [(u8, u32); N],
    longs: usize,
    /// The contexts with short lists, the first `shorts`.
    short: [u8; N],
    shorts: usize,
    slots: [Slot; N],
}

impl<const N: usize> Guesses<N> {
    pub(super) fn new() -> Self {
        Self {
            symbol: [0; N],
            lower: [0; N],
            upper: [0; N],
            out: [0; N],
            long: [(0, 0); N],
            longs: 0,
            short: [0; N],
            shorts: 0,
            slots: [Slot::EMPTY; N],
        }
    }

    /// The contexts' logits at a node whose lower side ends with leaf `last_lower`.
    #[inline(always)]
    pub(super) fn inputs(&mut self, table: &Dense, rank: u8, last_lower: u8) -> [i16; N] {
        let last = i16::from(last_lower);
        let mut inputs = [0; N];
        for (lane, input) in inputs.iter_mut().enumerate() {
            *input = if self.symbol[lane] > last {
                self.upper[lane]
            } else {
                self.lower[lane]
            };
        }
        for &(lane, list) in &self.long[..self.longs.min(N)] {
            let lane = usize::from(lane) % N;
            inputs[lane] = table.logits[lane][table.quick.state(list, rank)];
        }
        for &lane in &self.short[..self.shorts.min(N)] {
            let lane = usize::from(lane) % N;
            inputs[lane] = table.logits[lane][self.slots[lane].split(last_lower)];
        }
        inputs
    }

    /// Continues with one side of the node that was asked for last.
    #[inline(always)]
    pub(super) fn descend(&mut self, last_lower: u8, upper: bool) {
        let last = i16::from(last_lower);
        for lane in 0..N {
            let gone = (self.symbol[lane] > last) != upper;
            self.lower[lane] = if gone {
                self.out[lane]
            } else {
                self.lower[lane]
            };
            self.upper[lane] = if gone {
                self.out[lane]
            } else {
                self.upper[lane]
            };
        }
        for &lane in &self.short[..self.shorts.min(N)] {
            self.slots[usize::from(lane) % N].descend(upper);
        }
    }
}

impl Dense {
    /// Looks all contexts up, and says which order of them is the longest that is known.
    #[inline]
    pub(super) fn look_up<const N: usize>(
        &self,
        history: &History,
        guesses: &mut Guesses<N>,
    ) -> usize {
        let mut keys = [0; N];
        let mut buckets = [(0, 0); N];
        // All buckets before any head, all heads before any record, so that what memory is waited for overlaps.
        for (lane, &kind) in self.kinds.iter().enumerate() {
            keys[lane % N] = history.key(kind);
            buckets[lane % N] = self.quick.bucket(keys[lane % N]);
        }
        let mut heads = [0; N];
        for (head, bucket) in heads.iter_mut().zip(&buckets) {
            *head = self.quick.head(bucket.0);
        }
        let mut matched = 0;
        guesses.longs = 0;
        guesses.shorts = 0;
        for (lane, (&kind, logits)) in self.kinds.iter().zip(&self.logits).enumerate() {
            let lane = lane % N;
            let slot = &mut guesses.slots[lane];
            let found = self
                .quick
                .find(keys[lane], buckets[lane], heads[lane], slot);
            let (symbol, lower, upper, out) = match found {
                Record::None => (0, 0, 0, 0),
                Record::One(symbol, level) => {
                    let level = usize::from(level) % LEVELS;
                    (symbol, logits[level * LEVELS], logits[level], logits[0])
                }
                Record::Long(list) => {
                    guesses.long[guesses.longs % N] = (lane as u8, list);
                    guesses.longs += 1;
                    (0, 0, 0, 0)
                }
                Record::Short => {
                    guesses.short[guesses.shorts % N] = lane as u8;
                    guesses.shorts += 1;
                    (0, 0, 0, 0)
                }
            };
            guesses.symbol[lane] = i16::from(symbol);
            guesses.lower[lane] = lower;
            guesses.upper[lane] = upper;
            guesses.out[lane] = out;
            if !matches!(found, Record::None) && ORDERS.contains(&kind) {
                matched = matched.max(kind);
            }
        }
        matched
    }
}
