//! What a dense table consists of, as training makes it and as its file has it.

use super::shape::{FAR, LANES, LASTS, LEAVES, Lanes, MATCHES, STATES, WEIGHT_MOST};
use super::store::{Found, Store};
use super::tree::Tree;
use crate::format::{Bad, Reader};
use crate::history::{History, KINDS, PARTS};

/// A table's parts.
pub(crate) struct Parts {
    pub(super) kinds: Vec<usize>,
    pub(super) tree: Tree,
    pub(super) store: Store,
    /// For each kind in use, the logits of its states.
    pub(super) logits: Vec<[i16; STATES]>,
    pub(super) by_node: Vec<Lanes>,
    pub(super) by_match: Vec<Lanes>,
}

/// What the contexts know about the next byte.
pub(super) struct Guess {
    pub(super) found: [Found; LANES],
    pub(super) matched: usize,
}

/// Which kinds a table of that many bytes uses: more are worth their time only where they fit.
pub(super) fn kinds_for(bytes: usize) -> Vec<usize> {
    if bytes < 5_000_000 {
        vec![1, 2, 3, 4, 6, 10, 11]
    } else {
        (0..KINDS).collect()
    }
}

impl Parts {
    /// What is known, as training asks for it: counts can be taken out of it.
    pub(super) fn guess(&self, history: &History) -> Guess {
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
            kinds,
            tree,
            store,
            logits,
            by_node,
            by_match,
        })
    }
}
