//! The dense model: many contexts say how often each byte followed, and are mixed.
//!
//! A byte is a path of yes/no decisions down a tree whose leaves are in the order of bytes. At each
//! node every context that was seen in training has two counts, of bytes to the left and to the
//! right. A pair of counts is a learned logit, logits are summed with learned weights, the sum is a
//! probability. All of it in integers: the same on every machine.

mod lanes;
mod parts;
mod quick;
mod shape;
mod starts;
mod store;
pub(crate) mod train;
mod tree;

use crate::coder::{Coder, Decoder, Encoder, NotACode, push};
use crate::format::Bad;
use crate::history::History;
use lanes::Guesses;
pub(crate) use parts::Parts;
use quick::Quick;
use shape::{FAR, LANES, LEAST, Lanes, NARROW, STATES, SURPRISE, WEIGHT_BITS, match_row, node_row};
use starts::{Start, Starts};
use tree::{Decision, Tree};

/// A table laid out for coding.
pub(crate) struct Dense {
    kinds: Vec<usize>,
    tree: Tree,
    quick: Quick,
    logits: Vec<[i16; STATES]>,
    /// As in [`Parts`], one row behind the other, each of as many weights as are summed.
    by_node: Vec<i16>,
    by_match: Vec<i16>,
    squash: Vec<u16>,
    starts: Starts,
}

impl std::fmt::Debug for Dense {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dense")
            .field("kinds", &self.kinds)
            .finish_non_exhaustive()
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
    pub(crate) fn read(payload: &[u8]) -> Result<Self, Bad> {
        let parts = Parts::read(payload)?;
        let lanes = match parts.kinds.len() {
            ..=NARROW => NARROW,
            _ => LANES,
        };
        let flat = |rows: &[Lanes]| rows.iter().flat_map(|row| row[..lanes].to_vec()).collect();
        let mut table = Self {
            quick: Quick::of(&parts.store, &parts.tree),
            by_node: flat(&parts.by_node),
            by_match: flat(&parts.by_match),
            kinds: parts.kinds,
            tree: parts.tree,
            logits: parts.logits,
            squash: squash_table(),
            starts: Starts::none(),
        };
        table.starts = if table.narrow() {
            Starts::kept::<NARROW>(&table)
        } else {
            Starts::kept::<LANES>(&table)
        };
        Ok(table)
    }

    #[inline(always)]
    fn match_weights<const N: usize>(&self, matched: usize, history: &History) -> &[i16; N] {
        &self.by_match.as_chunks::<N>().0[match_row(matched, history.last())]
    }

    /// The lower side's part of 65 536 at a node, when `left` of 2^31 is left of the byte's probability.
    #[inline(always)]
    fn below<const N: usize>(
        &self,
        guesses: &mut Guesses<N>,
        place: &Decision,
        row: usize,
        by_match: &[i16; N],
        left: u32,
    ) -> u32 {
        let inputs = guesses.inputs(self, place.rank, (place.middle - 1) as u8);
        let by_node = &self.by_node.as_chunks::<N>().0[row];
        let mut sum = 0_i32;
        for lane in 0..N {
            // Both within WEIGHT_MOST: the sum fits.
            let weight = by_node[lane].wrapping_add(by_match[lane]);
            sum += i32::from(inputs[lane]) * i32::from(weight);
        }
        let logit = (sum >> WEIGHT_BITS).clamp(-FAR, FAR);
        let below = 65_536 - u32::from(self.squash[(logit + FAR) as usize]);
        if left < SURPRISE {
            return (below + place.even).div_ceil(2);
        }
        below
    }

    /// Codes one leaf, or finds it.
    #[inline]
    fn leaf<C: Coder, const N: usize>(
        &self,
        coder: &mut C,
        history: &History,
        guesses: &mut Guesses<N>,
        want: usize,
    ) -> usize {
        let matched = self.look_up(history, guesses);
        let by_match = self.match_weights(matched, history);
        let mut node = 0;
        let mut left = 1_u32 << 31;
        loop {
            let place = self.tree.node(node);
            let row = node_row(node, history.part());
            let below = self.below(guesses, place, row, by_match, left);
            let bit = coder.flip(below, want >= usize::from(place.middle));
            let share = if bit { 65_536 - below } else { below };
            left = ((u64::from(left) * u64::from(share)) >> 16) as u32;
            match place.next[usize::from(bit)] {
                tree::Next::Leaf(leaf) => return usize::from(leaf),
                tree::Next::Node(next) => node = usize::from(next),
            }
            guesses.descend((place.middle - 1) as u8, bit);
        }
    }

    fn narrow(&self) -> bool {
        self.kinds.len() <= NARROW
    }

    pub(crate) fn compress(&self, text: &[u8]) -> Vec<u8> {
        self.coded(text, true).finish()
    }

    pub(crate) fn bounds(&self, prefix: &[u8]) -> (Vec<u8>, Vec<u8>) {
        self.coded(prefix, false).bounds()
    }

    fn coded(&self, text: &[u8], to_its_end: bool) -> Encoder {
        let start = self.starts.of(text);
        let rest = &text[start.text.len()..];
        if self.narrow() {
            self.walk::<NARROW>(start, rest, to_its_end)
        } else {
            self.walk::<LANES>(start, rest, to_its_end)
        }
    }

    fn walk<const N: usize>(&self, start: &Start, rest: &[u8], to_its_end: bool) -> Encoder {
        let mut coder = start.coder.resumed(rest.len() / 2 + 8);
        let mut guesses = Guesses::<N>::new();
        let mut history = start.history.clone();
        for &byte in rest {
            self.leaf(&mut coder, &history, &mut guesses, usize::from(byte) + 1);
            history.push(byte);
        }
        if to_its_end {
            self.leaf(&mut coder, &history, &mut guesses, 0);
        }
        coder
    }

    pub(crate) fn decompress(&self, code: &[u8], limit: usize) -> Result<Vec<u8>, NotACode> {
        if self.narrow() {
            self.find::<NARROW>(code, limit)
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
        let start = self.starts.found(&mut coder);
        let mut history = start.history.clone();
        for byte in &start.text {
            push(&mut out, *byte, limit)?;
        }
        let mut guesses = Guesses::<N>::new();
        loop {
            match self.leaf(&mut coder, &history, &mut guesses, 0) {
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
