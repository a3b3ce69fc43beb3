//! What followed each context: a hash table of short lists.
//!
//! A bucket holds records one behind the other. A record is two bytes, twelve bits to know the
//! context by and four for its number of symbols (15: that many and the next byte), then the
//! symbols in order, then their counts, a byte each.

use crate::format::{Bad, Reader};

/// Contexts for each bucket, about.
pub(super) const CROWD: usize = 4;

/// A context's list, narrowed to the leaves below a node.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Found {
    pub(super) known: bool,
    symbols: u32,
    /// How far its counts lie behind its symbols.
    apart: u32,
    len: u32,
    /// The sum of its counts.
    pub(super) total: u32,
    /// What the last split found: symbols and counts to the left.
    lower: (u32, u32),
}

impl Found {
    /// Continues with one side of the last split.
    #[inline]
    pub(super) fn descend(&mut self, upper: bool) {
        if upper {
            self.symbols += self.lower.0;
            self.len -= self.lower.0;
            self.total -= self.lower.1;
        } else {
            self.len = self.lower.0;
            self.total = self.lower.1;
        }
    }
}

/// All contexts.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) buckets: Vec<u32>,
    pub(super) records: Vec<u8>,
    pub(super) counts: [u32; 256],
}

/// Counts as bytes: exact up to 64, then in steps of 1/16.
fn counts() -> [u32; 256] {
    let mut counts = [0; 256];
    for byte in 1..256 {
        counts[byte] = counts[byte - 1] + 1 + if byte > 64 { counts[byte - 1] / 16 } else { 0 };
    }
    counts
}

/// The byte of a count, rounded down.
pub(super) fn count_byte(count: u32) -> u8 {
    (counts().partition_point(|known| *known <= count) - 1) as u8
}

/// A record's length.
pub(super) fn record_len(symbols: usize) -> usize {
    2 + usize::from(symbols >= 15) + 2 * symbols
}

pub(super) fn check(key: u64) -> u16 {
    (key >> 9) as u16 & 0xFFF
}

impl Store {
    /// Packs contexts, each with its symbols and count bytes.
    pub(super) fn packed(mut contexts: Vec<(u64, Vec<(u8, u8)>)>) -> Self {
        contexts.sort();
        let buckets = (contexts.len() / CROWD).max(1);
        let mut starts = Vec::with_capacity(buckets + 1);
        let mut records = Vec::new();
        for (key, symbols) in &contexts {
            while starts.len() <= bucket_of(*key, buckets) {
                starts.push(records.len() as u32);
            }
            let short = symbols.len().min(15) as u16;
            records.extend_from_slice(&(check(*key) << 4 | short).to_le_bytes());
            if short == 15 {
                records.push((symbols.len() - 1) as u8);
            }
            records.extend(symbols.iter().map(|(symbol, _)| symbol));
            records.extend(symbols.iter().map(|(_, count)| count));
        }
        while starts.len() <= buckets {
            starts.push(records.len() as u32);
        }
        Self {
            buckets: starts,
            records,
            counts: counts(),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.buckets.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.records.len() as u32).to_le_bytes());
        for start in &self.buckets {
            out.extend_from_slice(&start.to_le_bytes());
        }
        out.extend_from_slice(&self.records);
    }

    /// Reads what [`Self::write`] wrote, and checks that every record ends where the next begins.
    pub(super) fn read(from: &mut Reader<'_>) -> Result<Self, Bad> {
        let buckets = from.u32()? as usize;
        let len = from.u32()? as usize;
        let starts: Vec<u32> = from
            .take(buckets.checked_mul(4).ok_or(Bad)?)?
            .chunks_exact(4)
            .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        let store = Self {
            buckets: starts,
            records: from.take(len)?.to_vec(),
            counts: counts(),
        };
        let bounded = store.buckets.first() == Some(&0)
            && store.buckets.len() > 1
            && store.buckets.last() == Some(&(len as u32));
        if !bounded {
            return Err(Bad);
        }
        for pair in store.buckets.windows(2) {
            let (mut at, end) = (pair[0] as usize, pair[1] as usize);
            if at > end || end > len {
                return Err(Bad);
            }
            while at < end {
                let (_, symbols, start) = store.head(at, end).ok_or(Bad)?;
                at = start + 2 * symbols;
                if at > end || symbols == 0 || !store.records[start..start + symbols].is_sorted() {
                    return Err(Bad);
                }
            }
        }
        Ok(store)
    }

    /// A record's head: its check, its number of symbols, where they begin.
    #[inline]
    pub(super) fn head(&self, at: usize, end: usize) -> Option<(u16, usize, usize)> {
        let head = self.records.get(at..at + 2)?;
        let head = u16::from_le_bytes([head[0], head[1]]);
        let short = usize::from(head & 15);
        if short < 15 {
            return Some((head >> 4, short, at + 2));
        }
        let more = self.records[..end].get(at + 2)?;
        Some((head >> 4, usize::from(*more) + 1, at + 3))
    }

    #[inline]
    pub(super) fn find(&self, key: u64) -> Found {
        let bucket = bucket_of(key, self.buckets.len() - 1);
        let mut at = self.buckets[bucket] as usize;
        let end = self.buckets[bucket + 1] as usize;
        let wanted = check(key);
        while at < end {
            let Some((check, symbols, start)) = self.head(at, end) else {
                break;
            };
            if check == wanted {
                let counts = &self.records[start + symbols..start + 2 * symbols];
                return Found {
                    known: true,
                    symbols: start as u32,
                    apart: symbols as u32,
                    len: symbols as u32,
                    total: counts.iter().map(|c| self.counts[usize::from(*c)]).sum(),
                    lower: (0, 0),
                };
            }
            at = start + 2 * symbols;
        }
        Found::default()
    }

    /// Splits the list at a leaf and returns the sum of the counts below.
    #[inline]
    pub(super) fn split(&self, found: &mut Found, middle: u16) -> u32 {
        let start = found.symbols as usize;
        let symbols = &self.records[start..start + found.len as usize];
        let start = start + found.apart as usize;
        let counts = &self.records[start..start + found.len as usize];
        let mut lower = (0, 0);
        for (symbol, count) in symbols.iter().zip(counts) {
            if u16::from(*symbol) >= middle {
                break;
            }
            lower.0 += 1;
            lower.1 += self.counts[usize::from(*count)];
        }
        found.lower = lower;
        lower.1
    }

    /// Takes one occurrence of a leaf out of what was found, as if it had not been trained on.
    pub(super) fn without(&self, found: &Found, leaf: u16, middle: u16) -> (u32, u32) {
        let (lower, upper) = (found.lower.1, found.total - found.lower.1);
        let start = found.symbols as usize;
        let holds = self.records[start..start + found.len as usize]
            .iter()
            .any(|symbol| u16::from(*symbol) == leaf);
        let take = u32::from(holds);
        if leaf < middle {
            (lower.saturating_sub(take), upper)
        } else {
            (lower, upper.saturating_sub(take))
        }
    }
}

#[inline]
pub(super) fn bucket_of(key: u64, buckets: usize) -> usize {
    (((key >> 32) * buckets as u64) >> 32) as usize
}
