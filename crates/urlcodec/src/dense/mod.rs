//! The dense model: many contexts say how often each byte followed, and are mixed.
//!
//! A byte is a path of yes/no decisions down a tree whose leaves are in the order of bytes. At each
//! node every context that was seen in training has two counts, of bytes to the left and to the
//! right. A pair of counts is a learned logit, logits are summed with learned weights, the sum is a
//! probability. All of it in integers: the same on every machine.

mod quick;
mod store;
pub(crate) mod train;
mod tree;

use crate::coder::{Coder, Decoder, Encoder, NotACode, push};
use crate::format::{Bad, Reader};
use crate::history::{History, KINDS, PARTS};
use quick::{Quick, Slot};
use store::{Found, Store};
use tree::Tree;

/// The end of a string and 256 bytes, in this order.
const LEAVES: usize = 257;
/// Steps that a count is known by.
const LEVELS: usize = 19;
/// States of a context at a node: a step to the left, one to the right.
const STATES: usize = LEVELS * LEVELS;
/// Contexts are summed this many at a time.
const LANES: usize = 16;
/// Longest matching order, 0 to 6.
const MATCHES: usize = 7;
/// Last bytes that weights are told apart by: all above are as the last.
const LASTS: usize = 128;
/// A logit of one, as an integer.
const ONE: i32 = 256;
/// Logits stay within plus and minus this.
const FAR: i32 = 12 * ONE;
/// A weight of one is `1 << WEIGHT_BITS`.
const WEIGHT_BITS: u32 = 11;
/// The largest weight: sums of [`LANES`] products stay within 31 bits.
const WEIGHT_MOST: i16 = 8_191;
/// Of 65 536, the least that a decision may get.
const LEAST: u32 = 16;
/// When this much of 2^31 is left of a byte's probability, it is a surprise.
const SURPRISE: u32 = 1 << 19;

type Lanes = [i16; LANES];

/// A trained table in memory.
pub(crate) struct Dense {
    kinds: Vec<usize>,
    tree: Tree,
    store: Store,
    quick: Quick,
    /// For each kind in use, the logits of its states.
    logits: Vec<[i16; STATES]>,
    by_node: Vec<Lanes>,
    by_match: Vec<Lanes>,
    squash: Vec<u16>,
}

impl std::fmt::Debug for Dense {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dense")
            .field("kinds", &self.kinds)
            .finish_non_exhaustive()
    }
}

/// What the contexts know about the next byte.
struct Guess {
    found: [Found; LANES],
    matched: usize,
}

fn node_row(node: usize, part: usize) -> usize {
    node * PARTS + part
}

fn match_row(matched: usize, last: u8) -> usize {
    matched * LASTS + usize::from(last).min(LASTS - 1)
}

/// The step of a count.
#[inline]
fn level(count: u32) -> usize {
    const STEPS: [u8; 256] = {
        let mut steps = [0; 256];
        let mut n = 0;
        while n < 256 {
            steps[n] = match n {
                0..=5 => n as u8,
                6..=7 => 6,
                8..=10 => 7,
                11..=14 => 8,
                15..=20 => 9,
                21..=29 => 10,
                30..=42 => 11,
                43..=63 => 12,
                64..=127 => 13,
                _ => 14,
            };
            n += 1;
        }
        steps
    };
    match count {
        0..=255 => usize::from(STEPS[count as usize]),
        256..=767 => 15,
        768..=2_999 => 16,
        3_000..=19_999 => 17,
        _ => 18,
    }
}

/// Probabilities of logits, in 65 536ths: 1 / (1 + e^-x), by multiplication in integers alone.
fn squash_table() -> Vec<u16> {
    // e^(1/256) in 40 bits behind the point.
    const STEP: u128 = 1_103_814_994_613;
    let mut table = vec![0_u16; 2 * FAR as usize + 1];
    let mut power: u128 = 1 << 40;
    for x in 0..=FAR as usize {
        let share = ((power << 16) / (power + (1 << 40))) as u32;
        let share = share.min(65_536 - LEAST);
        table[FAR as usize + x] = share as u16;
        table[FAR as usize - x] = (65_536 - share) as u16;
        power = (power * STEP) >> 40;
    }
    table
}

impl Dense {
    fn guess(&self, history: &History) -> Guess {
        let mut guess = Guess {
            found: [Found::default(); LANES],
            matched: 0,
        };
        let mut keys = [0; LANES];
        for (key, &kind) in keys.iter_mut().zip(&self.kinds) {
            *key = history.key(kind);
        }
        for (lane, &kind) in self.kinds.iter().enumerate() {
            let found = self.store.find(keys[lane]);
            if found.known && crate::history::ORDERS.contains(&kind) {
                guess.matched = guess.matched.max(kind);
            }
            guess.found[lane] = found;
        }
        guess
    }

    /// Looks all contexts up, and says which order of them is the longest that is known.
    #[inline]
    fn look_up<const N: usize>(&self, history: &History, slots: &mut [Slot; N]) -> usize {
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
        for (lane, &kind) in self.kinds.iter().enumerate() {
            let slot = &mut slots[lane % N];
            self.quick
                .find(keys[lane % N], buckets[lane % N], heads[lane % N], slot);
            if slot.mask != 0 && crate::history::ORDERS.contains(&kind) {
                matched = matched.max(kind);
            }
        }
        matched
    }

    /// Codes one leaf, or finds it.
    #[inline]
    fn leaf<C: Coder, const N: usize>(
        &self,
        coder: &mut C,
        history: &History,
        slots: &mut [Slot; N],
        want: usize,
    ) -> usize {
        let matched = self.look_up(history, slots);
        let by_match = &self.by_match[match_row(matched, history.last())];
        let part = history.part();
        let used = self.logits.len().min(N);
        let mut inputs = [0_i16; N];
        let mut node = 0;
        let mut left = 1_u32 << 31;
        loop {
            let place = self.tree.node(node);
            let last_lower = (place.middle - 1) as u8;
            for lane in 0..used {
                let slot = &mut slots[lane];
                let state = self.quick.state(slot, node, last_lower);
                inputs[lane] = self.logits[lane][state] & slot.mask;
            }
            let by_node = &self.by_node[node_row(node, part)];
            let mut sum = 0_i32;
            for lane in 0..N {
                // Both within WEIGHT_MOST: the sum fits.
                let weight = by_node[lane].wrapping_add(by_match[lane]);
                sum += i32::from(inputs[lane]) * i32::from(weight);
            }
            let logit = (sum >> WEIGHT_BITS).clamp(-FAR, FAR);
            let mut below = 65_536 - u32::from(self.squash[(logit + FAR) as usize]);
            if left < SURPRISE {
                below = (below + place.even).div_ceil(2);
            }
            let bit = coder.flip(below, want >= usize::from(place.middle));
            let share = if bit { 65_536 - below } else { below };
            left = ((u64::from(left) * u64::from(share)) >> 16) as u32;
            match place.next[usize::from(bit)] {
                tree::Next::Leaf(leaf) => return usize::from(leaf),
                tree::Next::Node(next) => node = usize::from(next),
            }
            for slot in &mut slots[..used] {
                slot.descend(bit);
            }
        }
    }

    fn narrow(&self) -> bool {
        self.kinds.len() <= LANES / 2
    }

    pub(crate) fn compress(&self, text: &[u8]) -> Vec<u8> {
        let mut coder = Encoder::new(text.len() / 2 + 8);
        if self.narrow() {
            self.walk::<{ LANES / 2 }>(&mut coder, text, true);
        } else {
            self.walk::<LANES>(&mut coder, text, true);
        }
        coder.finish()
    }

    pub(crate) fn bounds(&self, prefix: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let mut coder = Encoder::new(prefix.len() / 2 + 8);
        if self.narrow() {
            self.walk::<{ LANES / 2 }>(&mut coder, prefix, false);
        } else {
            self.walk::<LANES>(&mut coder, prefix, false);
        }
        coder.bounds()
    }

    fn walk<const N: usize>(&self, coder: &mut Encoder, text: &[u8], to_its_end: bool) {
        let mut slots = [Slot::EMPTY; N];
        let mut history = History::new();
        for &byte in text {
            self.leaf(coder, &history, &mut slots, usize::from(byte) + 1);
            history.push(byte);
        }
        if to_its_end {
            self.leaf(coder, &history, &mut slots, 0);
        }
    }

    pub(crate) fn decompress(&self, code: &[u8], limit: usize) -> Result<Vec<u8>, NotACode> {
        if self.narrow() {
            self.find::<{ LANES / 2 }>(code, limit)
        } else {
            self.find::<LANES>(code, limit)
        }
    }

    fn find<const N: usize>(&self, code: &[u8], limit: usize) -> Result<Vec<u8>, NotACode> {
        let mut coder = Decoder::new(code);
        if coder.lost() {
            return Err(NotACode::Nothing);
        }
        let mut out = Vec::with_capacity(code.len().saturating_mul(6).min(limit).min(1 << 16));
        let mut history = History::new();
        let mut slots = [Slot::EMPTY; N];
        loop {
            match self.leaf(&mut coder, &history, &mut slots, 0) {
                0 => break,
                leaf => {
                    let byte = (leaf - 1) as u8;
                    push(&mut out, byte, limit)?;
                    history.push(byte);
                }
            }
        }
        coder.finish()?;
        Ok(out)
    }
}

/// Which kinds a table of that many bytes uses: more are worth their time only where they fit.
fn kinds_for(bytes: usize) -> Vec<usize> {
    if bytes < 5_000_000 {
        vec![1, 2, 3, 4, 6, 10, 11]
    } else {
        (0..KINDS).collect()
    }
}

impl Dense {
    pub(crate) fn payload(&self) -> Vec<u8> {
        let mut out = vec![self.kinds.len() as u8];
        out.extend(self.kinds.iter().map(|kind| *kind as u8));
        self.tree.write(&mut out);
        let used = self.kinds.len();
        let states = self.logits.iter().flatten();
        let weights = self.by_node.iter().chain(&self.by_match);
        for number in states.chain(weights.flat_map(|row| &row[..used])) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        self.store.write(&mut out);
        out
    }

    pub(crate) fn read(payload: &[u8]) -> Result<Self, Bad> {
        let mut from = Reader::new(payload);
        let used = usize::from(from.u8()?);
        let kinds: Vec<usize> = from
            .take(used)?
            .iter()
            .map(|kind| usize::from(*kind))
            .collect();
        if used == 0 || used > LANES || kinds.iter().any(|kind| *kind >= KINDS) {
            return Err(Bad);
        }
        let tree = Tree::read(&mut from)?;
        let mut logits = vec![[0; STATES]; used];
        for logit in logits.iter_mut().flatten() {
            *logit = from.i16(FAR as i16)?;
        }
        let mut rows = |count: usize| -> Result<Vec<Lanes>, Bad> {
            let mut rows = vec![[0; LANES]; count];
            for weight in rows.iter_mut().flat_map(|row| &mut row[..used]) {
                *weight = from.i16(WEIGHT_MOST)?;
            }
            Ok(rows)
        };
        let by_node = rows((LEAVES - 1) * PARTS)?;
        let by_match = rows(MATCHES * LASTS)?;
        let store = Store::read(&mut from)?;
        from.end()?;
        Ok(Self {
            quick: Quick::of(&store, &tree),
            kinds,
            tree,
            store,
            logits,
            by_node,
            by_match,
            squash: squash_table(),
        })
    }
}
