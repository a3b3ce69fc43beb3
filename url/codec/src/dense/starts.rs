//! Beginnings that many strings have, and how far coding has come behind them: `http://www.` need
//! not be coded each time. Worked out from the table when it is read.

use super::Dense;
use super::lanes::Guesses;
use super::shape::node_row;
use super::tree::Next;
use crate::coder::{Decoder, Encoder, Mark};
use crate::history::History;

/// The least part of all strings that a beginning is kept for, of 1 << 31.
const LEAST: u32 = 1 << 23;
/// So many at most are kept, each of so many bytes.
const MOST: usize = 192;
const LONGEST: usize = 24;

/// One beginning.
#[derive(Debug, Clone)]
pub(super) struct Start {
    pub(super) text: Vec<u8>,
    pub(super) coder: Encoder,
    pub(super) history: History,
    mark: Mark,
    /// Its part of all strings.
    share: u32,
    /// Bytes that follow, and the beginning that each makes.
    next: Vec<(u8, usize)>,
}

/// All of them; the first is empty.
#[derive(Debug)]
pub(super) struct Starts {
    all: Vec<Start>,
}

impl Starts {
    /// Only the empty beginning.
    pub(super) fn none() -> Self {
        let coder = Encoder::new(0);
        let start = Start {
            text: Vec::new(),
            mark: coder.mark().unwrap_or_default(),
            coder,
            history: History::new(),
            share: 1 << 31,
            next: Vec::new(),
        };
        Self { all: vec![start] }
    }

    /// The longest one that a string has.
    pub(super) fn of(&self, text: &[u8]) -> &Start {
        let mut start = &self.all[0];
        for byte in text {
            match start.next.iter().find(|next| next.0 == *byte) {
                Some(next) => start = &self.all[next.1],
                None => break,
            }
        }
        start
    }

    /// The longest one that the string of a code has; takes the decoder behind it.
    pub(super) fn found(&self, coder: &mut Decoder<'_>) -> &Start {
        let mut start = &self.all[0];
        let head = coder.head();
        while let Some(next) = start
            .next
            .iter()
            .map(|next| &self.all[next.1])
            .find(|next| next.mark.holds(head))
        {
            start = next;
        }
        coder.skip(&start.mark, head);
        start
    }

    /// Works them out.
    pub(super) fn kept<const N: usize>(table: &Dense) -> Self {
        let mut starts = Self::none();
        let mut at = 0;
        while at < starts.all.len() && starts.all.len() < MOST {
            let start = starts.all[at].clone();
            for (byte, share) in likely::<N>(table, &start) {
                let mut next = Start {
                    share,
                    next: Vec::new(),
                    ..start.clone()
                };
                let leaf = usize::from(byte) + 1;
                table.leaf(
                    &mut next.coder,
                    &next.history,
                    &mut Guesses::<N>::new(),
                    leaf,
                );
                next.history.push(byte);
                next.text.push(byte);
                let short = next.text.len() <= LONGEST && starts.all.len() < MOST;
                if let Some(mark) = next.coder.mark().filter(|_| short) {
                    next.mark = mark;
                    let number = starts.all.len();
                    starts.all[at].next.push((byte, number));
                    starts.all.push(next);
                }
            }
            at += 1;
        }
        starts
    }
}

/// The bytes that follow a beginning in enough strings, with the part of all strings.
fn likely<const N: usize>(table: &Dense, start: &Start) -> Vec<(u8, u32)> {
    let mut guesses = Guesses::<N>::new();
    let matched = table.look_up(&start.history, &mut guesses);
    let weights = table.match_weights::<N>(matched, &start.history);
    let mut todo = vec![(0, start.share, guesses)];
    let mut found = Vec::new();
    while let Some((node, share, mut guesses)) = todo.pop() {
        let place = table.tree.node(node);
        let row = node_row(node, start.history.part());
        // The beginnings are far from any surprise.
        let below = table.below(&mut guesses, place, row, weights, 1 << 31);
        for (upper, part) in [(false, below), (true, 65_536 - below)] {
            let share = ((u64::from(share) * u64::from(part)) >> 16) as u32;
            match place.next[usize::from(upper)] {
                _ if share < LEAST => {}
                Next::Leaf(0) => {}
                Next::Leaf(leaf) => found.push(((leaf - 1) as u8, share)),
                Next::Node(next) => {
                    let mut guesses = guesses.clone();
                    guesses.descend((place.middle - 1) as u8, upper);
                    todo.push((usize::from(next), share, guesses));
                }
            }
        }
    }
    found.sort_by_key(|(_, share)| std::cmp::Reverse(*share));
    found
}
