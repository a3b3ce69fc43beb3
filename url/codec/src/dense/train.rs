//! Fitting a dense table: which contexts are worth their bytes, then logits and weights.

use super::parts::{Parts, kinds_for};
use super::shape::{
    FAR, LANES, LASTS, LEAVES, LEVELS, MATCHES, ONE, STATES, WEIGHT_BITS, WEIGHT_MOST, level,
    match_row, node_row,
};
use super::store::{Store, count_byte, record_len};
use super::tree::{Next, Tree};
use crate::history::{BELOW, History, PARTS};
use crate::train::Task;
use evenkeel_op::Result;

/// What followed a context, all kinds alike: keys in order, symbols of key `i` from `starts[i]` on.
struct Seen {
    keys: Vec<u64>,
    /// The key of the context below, whose guess this one has to improve on.
    below: Vec<u64>,
    starts: Vec<u32>,
    symbols: Vec<(u16, u32)>,
}

impl Seen {
    fn of(texts: &[&[u8]], kind: usize) -> Self {
        let mut pairs: Vec<(u64, u64)> = Vec::new();
        let under = BELOW[kind];
        for text in texts {
            let mut history = History::new();
            for leaf in leaves(text) {
                pairs.push((history.key(kind) | leaf as u64, history.key(under)));
                if leaf > 0 {
                    history.push((leaf - 1) as u8);
                }
            }
        }
        pairs.sort_unstable();
        let mut seen = Self {
            keys: Vec::new(),
            below: Vec::new(),
            starts: Vec::new(),
            symbols: Vec::new(),
        };
        for (pair, below) in pairs {
            let (key, leaf) = (pair & !0x1FF, (pair & 0x1FF) as u16);
            if seen.keys.last() != Some(&key) {
                seen.keys.push(key);
                seen.below.push(below);
                seen.starts.push(seen.symbols.len() as u32);
                seen.symbols.push((leaf, 0));
            } else if seen.symbols.last().is_none_or(|last| last.0 != leaf) {
                seen.symbols.push((leaf, 0));
            }
            if let Some(last) = seen.symbols.last_mut() {
                last.1 += 1;
            }
        }
        seen.starts.push(seen.symbols.len() as u32);
        seen
    }

    fn list(&self, at: usize) -> &[(u16, u32)] {
        &self.symbols[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    fn named(&self, key: u64) -> Option<&[(u16, u32)]> {
        self.keys.binary_search(&key).ok().map(|at| self.list(at))
    }
}

/// The leaves of a string, its end included.
fn leaves(text: &[u8]) -> impl Iterator<Item = usize> + '_ {
    text.iter().map(|byte| usize::from(*byte) + 1).chain([0])
}

/// A context that may be kept.
struct Candidate {
    /// Bits it saves for each byte it takes.
    worth: f64,
    key: u64,
    symbols: Vec<(u8, u8)>,
}

/// How many bits a list saves over the one below, each occurrence guessed from the others.
fn gain(list: &[(u16, u32)], below: &[(u16, u32)]) -> f64 {
    let total = f64::from(list.iter().map(|s| s.1).sum::<u32>());
    let under = f64::from(below.iter().map(|s| s.1).sum::<u32>());
    let escape = list.len() as f64 * 0.5;
    let mut bits = 0.0;
    let mut rest = below.iter();
    for (leaf, count) in list {
        let count = f64::from(*count);
        let wide = rest.find(|s| s.0 == *leaf).map_or(0.0, |s| f64::from(s.1));
        let known = (wide - 1.0).max(0.02) / (under - 1.0).max(1.0);
        let guessed = ((count - 1.0) + escape * known) / (total - 1.0 + escape);
        bits += count * (guessed / known).log2();
    }
    bits
}

fn candidates(seen: &Seen, below: Option<&Seen>, out: &mut Vec<Candidate>) {
    for (at, key) in seen.keys.iter().enumerate() {
        let list = seen.list(at);
        let symbols: Vec<(u8, u8)> = list
            .iter()
            .filter(|s| s.0 < 256)
            .map(|s| (s.0 as u8, count_byte(s.1)))
            .collect();
        if symbols.is_empty() {
            continue;
        }
        let gain = match below.and_then(|below| below.named(seen.below[at])) {
            Some(below) => gain(list, below),
            None => 1e9,
        };
        // Where there is room, also those that saved nothing here; not those that were there once.
        if gain > 0.0 || list.iter().map(|s| s.1).sum::<u32>() > 1 {
            out.push(Candidate {
                worth: gain / (record_len(symbols.len()) as f64 + 1.0),
                key: *key,
                symbols,
            });
        }
    }
}

/// Fits a table of at most `bytes`, its other parts included.
pub(crate) fn train(task: &Task<'_>) -> Result<Parts> {
    let kinds = kinds_for(task.bytes);
    let mut weights = vec![0_u64; LEAVES];
    for leaf in task.texts.iter().flat_map(|text| leaves(text)) {
        weights[leaf] += 1;
    }
    let tree = Tree::balanced(&weights);
    let mut needed: Vec<usize> = kinds.iter().flat_map(|k| [*k, BELOW[*k]]).collect();
    needed.sort_unstable();
    needed.dedup();
    let mut seen: Vec<Option<Seen>> = (0..crate::history::KINDS).map(|_| None).collect();
    for kind in needed {
        task.check()?;
        seen[kind] = Some(Seen::of(task.texts, kind));
        task.advance(1);
    }
    let mut all = Vec::new();
    for &kind in &kinds {
        task.check()?;
        if let Some(of) = &seen[kind] {
            let below = seen[BELOW[kind]].as_ref().filter(|_| kind != 0);
            candidates(of, below, &mut all);
        }
    }
    drop(seen);
    let store = chosen(all, task.bytes.saturating_sub(fixed(kinds.len())));
    task.advance(1);
    let mut fit = Fit::new(Parts {
        logits: vec![[0; STATES]; kinds.len()],
        by_node: vec![[0; LANES]; (LEAVES - 1) * PARTS],
        by_match: vec![[0; LANES]; MATCHES * LASTS],
        kinds,
        tree,
        store,
    });
    for round in 0..ROUNDS {
        for (number, text) in task.texts.iter().enumerate() {
            let done = (round as f32 + number as f32 / task.texts.len() as f32) / ROUNDS as f32;
            fit.rate = (1.0 - done).mul_add(RATE.0 - RATE.1, RATE.1);
            if number % 4096 == 0 {
                task.check()?;
            }
            fit.text(text);
        }
        task.advance(1);
    }
    Ok(fit.rounded())
}

/// Rounds over the text when logits and weights are fitted.
const ROUNDS: usize = 2;
/// How far a step goes, in the beginning and at the end.
const RATE: (f32, f32) = (0.02, 0.001);

/// Steps that [`train`] reports.
pub(crate) const STEPS: u64 = 18;

/// Bytes of everything but the contexts.
fn fixed(kinds: usize) -> usize {
    let rows = (LEAVES - 1) * PARTS + MATCHES * LASTS;
    1_024 + 2 * kinds * (STATES + rows)
}

/// Keeps what is worth most for its bytes.
fn chosen(mut all: Vec<Candidate>, room: usize) -> Store {
    all.sort_unstable_by(|a, b| b.worth.total_cmp(&a.worth).then(a.key.cmp(&b.key)));
    let mut used = 0;
    let kept = all.into_iter().take_while(|candidate| {
        used += record_len(candidate.symbols.len()) + 1;
        used + 64 <= room
    });
    Store::packed(kept.map(|c| (c.key, c.symbols)).collect())
}

/// A table whose logits and weights are still moving.
struct Fit {
    table: Parts,
    logits: Vec<[f32; STATES]>,
    by_node: Vec<[f32; LANES]>,
    by_match: Vec<[f32; LANES]>,
    rate: f32,
}

impl Fit {
    fn new(table: Parts) -> Self {
        let mut start = [0.0; STATES];
        for lower in 0..LEVELS {
            for upper in 0..LEVELS {
                let ratio = (typical(upper) + 0.3) / (typical(lower) + 0.3);
                start[lower * LEVELS + upper] = ratio.ln();
            }
        }
        let count = table.kinds.len();
        let mut weights = [0.0; LANES];
        weights[..count].fill(0.15);
        Self {
            logits: vec![start; count],
            by_node: vec![weights; table.by_node.len()],
            by_match: vec![weights; table.by_match.len()],
            rate: RATE.0,
            table,
        }
    }

    fn text(&mut self, text: &[u8]) {
        let mut history = History::new();
        for leaf in leaves(text) {
            self.leaf(&history, leaf as u16);
            if leaf > 0 {
                history.push((leaf - 1) as u8);
            }
        }
    }

    /// Takes one step for each decision on the way to a leaf.
    fn leaf(&mut self, history: &History, leaf: u16) {
        let mut guess = self.table.guess(history);
        for found in &mut guess.found {
            found.known &= found.total > 1;
        }
        let row = match_row(guess.matched, history.last());
        let count = self.table.kinds.len();
        let mut node = 0;
        loop {
            let place = *self.table.tree.node(node);
            let mut inputs = [0.0_f32; LANES];
            let mut states = [STATES; LANES];
            for lane in 0..count {
                let found = &mut guess.found[lane];
                if found.known {
                    self.table.store.split(found, place.middle);
                    let (lower, upper) = self.table.store.without(found, leaf, place.middle);
                    states[lane] = level(lower) * LEVELS + level(upper);
                    inputs[lane] = self.logits[lane][states[lane]];
                }
            }
            let bit = leaf >= place.middle;
            self.step(
                &inputs,
                &states[..count],
                [node_row(node, history.part()), row],
                bit,
            );
            match place.next[usize::from(bit)] {
                Next::Leaf(_) => return,
                Next::Node(next) => node = usize::from(next),
            }
            for found in &mut guess.found[..count] {
                found.descend(bit);
            }
        }
    }

    fn step(&mut self, inputs: &[f32; LANES], states: &[usize], rows: [usize; 2], bit: bool) {
        let by_node = &mut self.by_node[rows[0]];
        let by_match = &mut self.by_match[rows[1]];
        let mut weights = [0.0_f32; LANES];
        let mut logit = 0.0;
        for lane in 0..LANES {
            weights[lane] = by_node[lane] + by_match[lane];
            logit += weights[lane] * inputs[lane];
        }
        let error = f32::from(u8::from(bit)) - 1.0 / (1.0 + (-logit).exp());
        let by = error * self.rate;
        for lane in 0..LANES {
            by_node[lane] += by * inputs[lane];
            by_match[lane] += by * 0.5 * inputs[lane];
        }
        for (lane, state) in states.iter().enumerate().filter(|s| *s.1 < STATES) {
            self.logits[lane][*state] += by * 1.5 * weights[lane];
        }
    }

    /// The table with everything as integers.
    fn rounded(self) -> Parts {
        let mut table = self.table;
        let weight = |w: &f32| {
            (w * (1 << WEIGHT_BITS) as f32)
                .round()
                .clamp(-f32::from(WEIGHT_MOST), f32::from(WEIGHT_MOST)) as i16
        };
        let logit = |l: &f32| (l * ONE as f32).round().clamp(-FAR as f32, FAR as f32) as i16;
        for (to, from) in table.logits.iter_mut().zip(&self.logits) {
            to.iter_mut()
                .zip(from)
                .for_each(|(to, from)| *to = logit(from));
        }
        for (to, from) in table.by_node.iter_mut().zip(&self.by_node) {
            to.iter_mut()
                .zip(from)
                .for_each(|(to, from)| *to = weight(from));
        }
        for (to, from) in table.by_match.iter_mut().zip(&self.by_match) {
            to.iter_mut()
                .zip(from)
                .for_each(|(to, from)| *to = weight(from));
        }
        table
    }
}

/// A count that is typical of a step.
fn typical(level: usize) -> f32 {
    const COUNTS: [f32; LEVELS] = [
        0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.5, 9.0, 12.5, 17.5, 25.0, 36.0, 52.0, 90.0, 180.0, 440.0,
        1_500.0, 8_000.0, 40_000.0,
    ];
    COUNTS[level]
}
