//! Which names there were, of so many at most.

use std::collections::BTreeMap;

/// How many are kept by name.
const NAMES_MAX: usize = 10;
/// How much of each; no server knows longer ones.
const NAME_MAX: usize = 256;

/// Names with how often each came.
#[derive(Debug, Clone, Default)]
pub struct Names {
    kept: BTreeMap<String, u64>,
    /// How often others came than those kept.
    pub others: u64,
}

impl Names {
    /// Counts one.
    pub(super) fn add(&mut self, name: Option<&str>) {
        if let Some(name) = name {
            self.count(&name[..name.floor_char_boundary(NAME_MAX)], 1);
        }
    }

    pub(crate) fn count(&mut self, name: &str, times: u64) {
        if let Some(count) = self.kept.get_mut(name) {
            *count += times;
        } else if self.kept.len() < NAMES_MAX {
            self.kept.insert(name.to_owned(), times);
        } else {
            self.others += times;
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (name, times) in &other.kept {
            self.count(name, *times);
        }
        self.others += other.others;
    }

    /// Returns them, the most frequent first.
    #[must_use]
    pub fn all(&self) -> Vec<(&str, u64)> {
        let mut all: Vec<_> = self
            .kept
            .iter()
            .map(|(name, count)| (name.as_str(), *count))
            .collect();
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all
    }
}
