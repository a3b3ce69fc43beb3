//! Fitting a fast table: which contexts become states, and what each expects.

use super::{BITS, FOLLOWED, Fast, HIGH, LOW, Row, STATE_BYTES, SYMBOLS, symbol};
use crate::train::Task;
use evenkeel_op::Result;
use std::collections::{BTreeMap, BTreeSet};

/// The longest context in symbols.
const DEEPEST: usize = 6;
/// Bits of a symbol in a key. A key is the context's symbols plus one, the last one lowest; a
/// string's beginning counts as a symbol.
const WIDTH: u32 = 7;
const BEGIN: u64 = SYMBOLS as u64 + 1;
/// What each symbol that was seen gives to the shorter context.
const DISCOUNT: f64 = 0.7;
/// The smallest part of a symbol that many bytes share: it bounds what they can cost.
const SHARED_LEAST: u32 = 16;

/// Steps that [`train`] reports.
pub(crate) const STEPS: u64 = DEEPEST as u64 + 4;

/// What followed the contexts of one length.
struct Seen {
    keys: Vec<u64>,
    starts: Vec<u32>,
    symbols: Vec<(u8, u32)>,
}

impl Seen {
    fn of(texts: &[&[u8]], order: usize) -> Self {
        let mut pairs = Vec::new();
        for text in texts {
            let mut key = BEGIN;
            for (at, symbol) in symbols(text).enumerate() {
                if at + 1 >= order {
                    pairs.push(last(key, order) << WIDTH | symbol as u64);
                }
                key = last(key, DEEPEST) << WIDTH | (symbol as u64 + 1);
            }
        }
        pairs.sort_unstable();
        let mut seen = Self {
            keys: Vec::new(),
            starts: Vec::new(),
            symbols: Vec::new(),
        };
        for pair in pairs {
            let (key, symbol) = (pair >> WIDTH, (pair & 0x7F) as u8);
            if seen.keys.last() != Some(&key) {
                seen.keys.push(key);
                seen.starts.push(seen.symbols.len() as u32);
                seen.symbols.push((symbol, 0));
            } else if seen.symbols.last().is_none_or(|last| last.0 != symbol) {
                seen.symbols.push((symbol, 0));
            }
            if let Some(last) = seen.symbols.last_mut() {
                last.1 += 1;
            }
        }
        seen.starts.push(seen.symbols.len() as u32);
        seen
    }

    fn list(&self, key: u64) -> &[(u8, u32)] {
        match self.keys.binary_search(&key) {
            Ok(at) => &self.symbols[self.starts[at] as usize..self.starts[at + 1] as usize],
            Err(_) => &[],
        }
    }
}

fn symbols(text: &[u8]) -> impl Iterator<Item = usize> + '_ {
    text.iter().map(|byte| symbol(*byte)).chain([0])
}

/// The last symbols of a context.
fn last(key: u64, order: usize) -> u64 {
    key & ((1 << (WIDTH * order as u32)) - 1)
}

fn order(key: u64) -> usize {
    (64 - key.leading_zeros()).div_ceil(WIDTH) as usize
}

/// The context without its oldest symbol.
fn shorter(key: u64) -> u64 {
    last(key, order(key).saturating_sub(1))
}

/// What follows a context, guessed from all that was seen after it and after shorter ones.
fn expected(seen: &[Seen], key: u64) -> Vec<f64> {
    let mut shares = vec![1.0 / SYMBOLS as f64; SYMBOLS];
    for (length, of) in seen.iter().enumerate().take(order(key) + 1) {
        mix(&mut shares, of.list(last(key, length)));
    }
    shares
}

fn mix(shares: &mut [f64], list: &[(u8, u32)]) {
    let total = f64::from(list.iter().map(|s| s.1).sum::<u32>());
    if list.is_empty() {
        return;
    }
    let given = DISCOUNT * list.len() as f64 / total;
    shares.iter_mut().for_each(|share| *share *= given);
    for (symbol, count) in list {
        shares[usize::from(*symbol)] += (f64::from(*count) - DISCOUNT) / total;
    }
}

/// Bits that a context saves over the shorter one.
fn gain(list: &[(u8, u32)], below: &[f64]) -> f64 {
    let total = f64::from(list.iter().map(|s| s.1).sum::<u32>());
    let escape = DISCOUNT * list.len() as f64;
    let saved = list.iter().map(|(symbol, count)| {
        let count = f64::from(*count);
        let known = below[usize::from(*symbol)];
        let guessed = ((count - 1.0).max(0.0) + escape * known) / (total - 1.0 + escape);
        count * (guessed / known).log2()
    });
    saved.sum()
}

/// Chooses contexts by what they save, each with all that lead to it.
fn chosen(seen: &[Seen], states: usize) -> Vec<u64> {
    let mut worth = Vec::new();
    for length in 1..=DEEPEST {
        let of = &seen[length];
        let mut below = (u64::MAX, Vec::new());
        // By their ends, so that each shorter context is worked out once.
        let mut keys: Vec<u64> = of.keys.clone();
        keys.sort_unstable_by_key(|key| (shorter(*key), *key));
        for key in keys {
            let list = of.list(key);
            if list.iter().map(|s| s.1).sum::<u32>() < 8 {
                continue;
            }
            if below.0 != shorter(key) {
                below = (shorter(key), expected(seen, shorter(key)));
            }
            let gain = gain(list, &below.1);
            if gain > 0.0 {
                worth.push((gain, key));
            }
        }
    }
    worth.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut kept = BTreeSet::from([BEGIN, 0]);
    for (_, key) in worth {
        let mut path = vec![];
        let mut key = key;
        while kept.len() + path.len() < states && !kept.contains(&key) {
            path.push(key);
            key >>= WIDTH;
        }
        if !kept.contains(&key) {
            break;
        }
        kept.extend(path);
    }
    // The beginning of a string is state 0.
    let mut keys: Vec<u64> = kept.into_iter().filter(|key| *key != BEGIN).collect();
    keys.insert(0, BEGIN);
    keys
}

/// For each state, where each symbol leads: to the longest context that is a state.
fn automaton(keys: &[u64]) -> Vec<[u16; FOLLOWED]> {
    let states: BTreeMap<u64, u16> = keys.iter().zip(0..).map(|(key, at)| (*key, at)).collect();
    let following = |key: u64, symbol: usize| {
        let whole = key << WIDTH | (symbol as u64 + 1);
        let lengths = (0..=DEEPEST.min(order(whole))).rev();
        let mut found = lengths.filter_map(|length| states.get(&last(whole, length)));
        found.next().copied().unwrap_or(0)
    };
    keys.iter()
        .map(|key| std::array::from_fn(|at| following(*key, at + 1)))
        .collect()
}

/// Fits a table of at most `bytes`.
pub(crate) fn train(task: &Task<'_>) -> Result<Fast> {
    let mut seen = Vec::new();
    for order in 0..=DEEPEST {
        task.check()?;
        seen.push(Seen::of(task.texts, order));
        task.advance(1);
    }
    let states = ((task.bytes - 4) / STATE_BYTES).clamp(2, 1 << 16);
    let keys = chosen(&seen, states);
    task.advance(1);
    task.check()?;
    let next = automaton(&keys);
    let mut counts = vec![[0_u32; SYMBOLS]; keys.len()];
    for text in task.texts {
        let mut state = 0;
        for symbol in symbols(text) {
            counts[state][symbol] += 1;
            if symbol > 0 {
                state = usize::from(next[state][symbol - 1]);
            }
        }
    }
    task.advance(1);
    let mut rows = Vec::new();
    for (key, counts) in keys.iter().zip(&counts) {
        let mut shares = expected(&seen, if *key == 0 { 0 } else { shorter(*key) });
        let list: Vec<(u8, u32)> = (0..)
            .zip(counts.iter().copied())
            .filter(|s| s.1 > 0)
            .collect();
        mix(&mut shares, &list);
        rows.push(Row::of(&starts(&shares)));
    }
    task.advance(1);
    Ok(Fast::of(rows, next))
}

/// A distribution in whole parts, each symbol with one at least.
fn starts(shares: &[f64]) -> [u16; SYMBOLS] {
    let least = |symbol: usize| {
        if symbol == LOW || symbol == HIGH {
            SHARED_LEAST
        } else {
            1
        }
    };
    let reserved: u32 = (0..SYMBOLS).map(least).sum();
    let free = f64::from((1 << BITS) - reserved);
    let mut parts: Vec<u32> = (0..SYMBOLS)
        .map(|symbol| least(symbol) + (shares[symbol].clamp(0.0, 1.0) * free) as u32)
        .collect();
    let most = (0..SYMBOLS)
        .max_by_key(|symbol| parts[*symbol])
        .unwrap_or(0);
    let used: u32 = parts.iter().sum();
    // Rounding down leaves some; a sum a hair above one may take some.
    parts[most] = (parts[most] + (1 << BITS)).saturating_sub(used);
    let mut sum = 0;
    std::array::from_fn(|symbol| {
        let start = sum;
        sum += parts[symbol];
        start as u16
    })
}
