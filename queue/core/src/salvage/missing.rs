//! Row ids of which nothing is there, as ranges.

use std::collections::BTreeMap;

/// Ranges of ids that do not overlap: the first of each, and its end.
#[derive(Debug, Default)]
pub(super) struct Missing(BTreeMap<u64, u64>);

impl Missing {
    /// Adds the ids from `first` to below `end`.
    pub(super) fn add(&mut self, first: u64, end: u64) {
        if first < end {
            self.remove(first, end);
            self.0.insert(first, end);
        }
    }

    /// Takes out the ids from `first` to below `end`.
    pub(super) fn remove(&mut self, first: u64, end: u64) {
        // Ranges do not overlap: the last that begins below the end comes first from behind.
        while let Some((from, to)) = self.0.range(..end).next_back().map(|(a, b)| (*a, *b)) {
            if to <= first {
                break;
            }
            self.0.remove(&from);
            if end < to {
                self.0.insert(end, to);
            }
            if from < first {
                self.0.insert(from, first);
                break;
            }
        }
    }

    /// The ranges in the order of their ids: (first, how many).
    pub(super) fn ranges(&self) -> Vec<(u64, u64)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for (first, end) in &self.0 {
            match ranges.last_mut() {
                Some((from, count)) if *from + *count == *first => *count += end - first,
                _ => ranges.push((*first, end - first)),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_what_a_set_of_ids_is() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..300 {
            let mut missing = Missing::default();
            let mut model = std::collections::BTreeSet::new();
            for _ in 0..30 {
                let first = random.u64(0..60);
                let end = first + random.u64(0..12);
                if random.bool() {
                    missing.add(first, end);
                    model.extend(first..end);
                } else {
                    missing.remove(first, end);
                    model.retain(|id| *id < first || *id >= end);
                }
            }
            let ids = missing.ranges().into_iter();
            let ids: Vec<u64> = ids
                .flat_map(|(first, count)| first..first + count)
                .collect();
            assert_eq!(ids, model.into_iter().collect::<Vec<_>>());
        }
    }
}
