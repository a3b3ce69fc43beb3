//! What the kept clones differ in from the generation that they were last complete for.
//!
//! ```text
//! changes := "EVKCHG1\n" entry* end
//! entry   := u32 length of the name, name, u64 count of ranges, count × (u64 start, u64 end)
//!            count 2^64-1: anything may differ, and no ranges follow
//! end     := u32 0, u32 CRC-32C of everything before it
//! ```
//!
//! Numbers are little-endian, positions in bytes. Files that have no entry do not differ.

use crate::Changed;
use std::collections::HashMap;
use std::ops::Range;

const MAGIC: &[u8; 8] = b"EVKCHG1\n";
const ANYTHING: u64 = u64::MAX;
/// Ranges that are held in memory, 16 bytes each. With more of them, a file's are reported as one.
const HELD_MAX: usize = if cfg!(test) { 100 } else { 1 << 22 };

/// Changes by file name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Changes {
    files: HashMap<String, Changed>,
    /// How many ranges there are in all files.
    held: usize,
}

impl Changes {
    /// Adds what became different in a file.
    pub(super) fn add(&mut self, name: &str, more: Changed) {
        let known = match self.files.remove(name) {
            None => Changed::Ranges(Vec::new()),
            Some(known) => known,
        };
        self.held -= count(&known);
        let mut both = match (known, more) {
            (Changed::Ranges(one), Changed::Ranges(other)) => Changed::Ranges(union(one, other)),
            _ => Changed::Unknown,
        };
        if let Changed::Ranges(ranges) = &mut both
            && self.held + ranges.len() > HELD_MAX
            && let (Some(first), Some(last)) = (ranges.first(), ranges.last())
        {
            let whole = first.start..last.end;
            *ranges = vec![whole];
        }
        self.held += count(&both);
        self.files.insert(name.to_owned(), both);
    }

    /// Returns what is different in a file of `size` bytes.
    pub(super) fn of(&self, name: &str, size: u64) -> Changed {
        match self.files.get(name) {
            None => Changed::Ranges(Vec::new()),
            Some(Changed::Unknown) => Changed::Unknown,
            // It may have been longer when the range was noted.
            Some(Changed::Ranges(ranges)) => Changed::Ranges(
                ranges
                    .iter()
                    .map(|range| range.start.min(size)..range.end.min(size))
                    .filter(|range| !range.is_empty())
                    .collect(),
            ),
        }
    }

    /// Writes everything down.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for (name, changed) in &self.files {
            let length = u32::try_from(name.len()).unwrap_or(u32::MAX);
            bytes.extend(length.to_le_bytes());
            bytes.extend(name.as_bytes());
            match changed {
                Changed::Unknown => bytes.extend(ANYTHING.to_le_bytes()),
                Changed::Ranges(ranges) => {
                    bytes.extend((ranges.len() as u64).to_le_bytes());
                    for range in ranges {
                        bytes.extend(range.start.to_le_bytes());
                        bytes.extend(range.end.to_le_bytes());
                    }
                }
            }
        }
        bytes.extend(0u32.to_le_bytes());
        let sum = crc32c::crc32c(&bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    /// Reads what `to_bytes` wrote; `None` when it is anything else.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<4>()?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*sum) {
            return None;
        }
        let mut rest = body.strip_prefix(MAGIC)?;
        let mut changes = Self::default();
        loop {
            let length = u32::from_le_bytes(take(&mut rest)?) as usize;
            if length == 0 {
                return rest.is_empty().then_some(changes);
            }
            let name;
            (name, rest) = rest.split_at_checked(length)?;
            let changed = match u64::from_le_bytes(take(&mut rest)?) {
                ANYTHING => Changed::Unknown,
                count => Changed::Ranges(
                    (0..count)
                        .map(|_| range(&mut rest))
                        .collect::<Option<_>>()?,
                ),
            };
            changes.add(std::str::from_utf8(name).ok()?, changed);
        }
    }
}

fn count(changed: &Changed) -> usize {
    match changed {
        Changed::Unknown => 0,
        Changed::Ranges(ranges) => ranges.len(),
    }
}

fn range(rest: &mut &[u8]) -> Option<Range<u64>> {
    let start = u64::from_le_bytes(take(rest)?);
    let end = u64::from_le_bytes(take(rest)?);
    (start < end).then_some(start..end)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let first;
    (first, *rest) = rest.split_first_chunk::<N>()?;
    Some(*first)
}

/// Joins two lists of sorted, disjoint ranges into one.
fn union(one: Vec<Range<u64>>, other: Vec<Range<u64>>) -> Vec<Range<u64>> {
    if one.is_empty() {
        return other;
    }
    let mut all = one;
    all.extend(other);
    all.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(all.len());
    for range in all {
        match joined.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn changed() -> impl Strategy<Value = Changed> {
        let ranges = proptest::collection::btree_set(0u64..200, 0..12).prop_map(|bounds| {
            let bounds: Vec<u64> = bounds.into_iter().collect();
            Changed::Ranges(
                bounds
                    .chunks_exact(2)
                    .map(|pair| pair[0]..pair[1])
                    .collect(),
            )
        });
        prop_oneof![1 => Just(Changed::Unknown), 6 => ranges]
    }

    fn has(changed: &Changed, at: u64) -> bool {
        match changed {
            Changed::Unknown => true,
            Changed::Ranges(ranges) => ranges.iter().any(|range| range.contains(&at)),
        }
    }

    proptest! {
        #[test]
        fn additions_are_a_union(parts in proptest::collection::vec(changed(), 0..4)) {
            let mut changes = Changes::default();
            parts.iter().for_each(|part| changes.add("data/a", part.clone()));
            let all = changes.of("data/a", 200);
            for at in 0..200 {
                prop_assert_eq!(has(&all, at), parts.iter().any(|part| has(part, at)), "{}", at);
            }
            if let Changed::Ranges(ranges) = &all {
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
            prop_assert_eq!(changes.of("data/b", 200), Changed::Ranges(Vec::new()));
        }

        #[test]
        fn what_is_written_is_read(parts in proptest::collection::vec(("[a-z/]{1,9}", changed()), 0..6)) {
            let mut changes = Changes::default();
            parts.into_iter().for_each(|(name, part)| changes.add(&name, part));
            let bytes = changes.to_bytes();
            prop_assert_eq!(Changes::from_bytes(&bytes), Some(changes));
            for end in 0..bytes.len() {
                prop_assert_eq!(Changes::from_bytes(&bytes[..end]), None);
            }
            for bit in 0..bytes.len() * 8 {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                prop_assert_eq!(Changes::from_bytes(&flipped), None);
            }
        }
    }

    #[test]
    fn far_too_many_ranges_are_reported_as_one() {
        let many = |from: u64, n: u64| {
            Changed::Ranges((from..from + n).map(|i| i * 2..i * 2 + 1).collect())
        };
        let mut changes = Changes::default();
        changes.add("data/a", many(0, 90));
        changes.add("data/b", many(5, 20));
        let whole = 10..49;
        assert_eq!(changes.of("data/b", 1000), Changed::Ranges(vec![whole]));
        assert_eq!(changes.of("data/a", 1000), many(0, 90));
        changes.add("data/a", Changed::Unknown);
        changes.add("data/c", many(0, 90));
        assert_eq!(
            (changes.of("data/c", 1000), changes.held),
            (many(0, 90), 91)
        );
    }

    #[test]
    fn ranges_end_with_the_file() {
        let mut changes = Changes::default();
        changes.add("data/a", Changed::Ranges(vec![0..10, 20..30, 40..50]));
        assert_eq!(
            changes.of("data/a", 25),
            Changed::Ranges(vec![0..10, 20..25])
        );
    }
}
