//! Whose rows are, and which row is next.

use super::index::Index;
use std::collections::{BTreeSet, HashMap};

/// Conditions that are remembered, besides none.
const CURSORS: usize = 100;

/// Rows given back that a cursor remembers one by one; above it looks again from the oldest of them.
const RETURNED: usize = 1 << 16;

/// Rows with an owner for which memory is kept, whether there are so many or not.
const OWNED: usize = 1 << 12;

/// The cursor of those who take any row.
pub(crate) const ANY: u64 = 0;

/// Who owns rows, and how far each condition has been looked for.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    owned: HashMap<u64, u64>,
    by_owner: HashMap<u64, BTreeSet<u64>>,
    cursors: HashMap<u64, Cursor>,
    uses: u64,
}

/// What one condition has seen: all rows before `next`, except those that came back.
#[derive(Debug, Default)]
struct Cursor {
    next: u64,
    returned: BTreeSet<u64>,
    used: u64,
}

impl Ready {
    /// The oldest row that is nobody's and that this condition has not been asked about. Whoever calls
    /// takes it, or the condition does not hold for it.
    pub(crate) fn next(&mut self, condition: u64, index: &Index) -> Option<u64> {
        self.make_room(condition);
        self.uses += 1;
        let cursor = self.cursors.entry(condition).or_default();
        cursor.used = self.uses;
        while let Some(id) = cursor.returned.pop_first() {
            if index.is_live(id) && !self.owned.contains_key(&id) {
                return Some(id);
            }
        }
        while let Some(id) = index.next_live(cursor.next) {
            cursor.next = id + 1;
            if !self.owned.contains_key(&id) {
                return Some(id);
            }
        }
        None
    }

    /// Forgets the condition that was not used for longest, if there are too many.
    fn make_room(&mut self, condition: u64) {
        if self.cursors.len() <= CURSORS || self.cursors.contains_key(&condition) {
            return;
        }
        let others = self.cursors.iter().filter(|(key, _)| **key != ANY);
        let oldest = others
            .min_by_key(|(_, cursor)| cursor.used)
            .map(|(key, _)| *key);
        oldest.map(|key| self.cursors.remove(&key));
    }

    /// Whether a row is somebody's.
    pub(crate) fn owner(&self, id: u64) -> Option<u64> {
        self.owned.get(&id).copied()
    }

    /// How many rows are somebody's.
    pub(crate) fn owned(&self) -> usize {
        self.owned.len()
    }

    /// The rows of an owner, oldest first.
    pub(crate) fn of(&self, owner: u64) -> Vec<u64> {
        let rows = self.by_owner.get(&owner);
        rows.map(|rows| rows.iter().copied().collect())
            .unwrap_or_default()
    }

    /// The first row of an owner from this id on.
    pub(crate) fn next_of(&self, owner: u64, from: u64) -> Option<u64> {
        self.by_owner.get(&owner)?.range(from..).next().copied()
    }

    /// All owners, in their order, and how many rows each has.
    pub(crate) fn counts(&self) -> Vec<(u64, usize)> {
        let owners = self.by_owner.iter();
        let mut counts: Vec<(u64, usize)> =
            owners.map(|(owner, rows)| (*owner, rows.len())).collect();
        counts.sort_unstable();
        counts
    }

    /// All rows that are somebody's, each with its owner, in no order.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (u64, u64)> {
        self.owned.iter().map(|(id, owner)| (*id, *owner))
    }

    /// Makes a row somebody's. False if it is so already.
    pub(crate) fn own(&mut self, id: u64, owner: u64) -> bool {
        if self.owned.contains_key(&id) {
            return false;
        }
        self.owned.insert(id, owner);
        self.by_owner.entry(owner).or_default().insert(id);
        true
    }

    fn disown(&mut self, id: u64) {
        let Some(owner) = self.owned.remove(&id) else {
            return;
        };
        if let Some(rows) = self.by_owner.get_mut(&owner) {
            rows.remove(&id);
            if rows.is_empty() {
                self.by_owner.remove(&owner);
            }
        }
        // One statement may have owned millions.
        if self.owned.capacity() > OWNED && self.owned.len() * 8 < self.owned.capacity() {
            self.owned.shrink_to(OWNED.max(self.owned.len() * 2));
        }
    }

    /// Forgets a row that is gone.
    pub(crate) fn forget(&mut self, id: u64) {
        self.disown(id);
        for cursor in self.cursors.values_mut() {
            cursor.returned.remove(&id);
        }
    }

    /// Puts a row back where it was: whoever has passed it sees it again, before all younger ones.
    pub(crate) fn give_back(&mut self, id: u64) {
        self.disown(id);
        for cursor in self.cursors.values_mut() {
            if cursor.next > id {
                cursor.returned.insert(id);
            }
            if cursor.returned.len() > RETURNED {
                cursor.next = cursor.returned.first().copied().unwrap_or(id);
                cursor.returned.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Disk;
    use crate::log::Name;
    use crate::table::file::DataFile;
    use crate::table::index::Rows;
    use std::sync::Arc;

    fn ten() -> (tempfile::TempDir, Index) {
        let dir = tempfile::tempdir().unwrap();
        let file = DataFile::create(&Disk, dir.path(), Name::Segment(1)).unwrap();
        let mut index = Index::default();
        index.push_file(Rows::new(Arc::new(file), 1));
        (1..=10).for_each(|id| index.push(id, 0, true));
        (dir, index)
    }

    #[test]
    fn a_row_given_back_comes_before_younger_ones_for_every_condition() {
        let (_dir, index) = ten();
        let mut ready = Ready::default();
        for id in 1..=5 {
            assert_eq!(ready.next(ANY, &index), Some(id));
            assert!(ready.own(id, id));
        }
        assert_eq!(ready.next(7, &index), Some(6), "owned ones are passed over");
        ready.give_back(4);
        ready.give_back(2);
        assert_eq!(ready.next(ANY, &index), Some(2));
        assert_eq!(ready.next(7, &index), Some(2));
        assert!(ready.own(2, 9));
        assert_eq!(ready.next(ANY, &index), Some(4));
        assert_eq!(
            ready.next(ANY, &index),
            Some(6),
            "a condition's look takes nothing"
        );
        assert_eq!(ready.of(9), [2]);
    }

    #[test]
    fn conditions_that_nobody_uses_are_forgotten() {
        let (_dir, index) = ten();
        let mut ready = Ready::default();
        (0..1000).for_each(|condition| {
            ready.next(condition, &index);
        });
        assert!(ready.cursors.len() <= CURSORS + 1);
        assert!(ready.cursors.contains_key(&ANY));
    }

    #[test]
    fn many_rows_given_back_are_found_again_in_bounded_memory() {
        let (_dir, mut index) = ten();
        let many = RETURNED as u64 + 100;
        (11..=many).for_each(|id| index.push(id, 0, true));
        let mut ready = Ready::default();
        while let Some(id) = ready.next(ANY, &index) {
            ready.own(id, 1);
        }
        (1..=many).rev().for_each(|id| ready.give_back(id));
        assert!(ready.cursors[&ANY].returned.len() <= RETURNED);
        for id in 1..=many {
            assert_eq!(ready.next(ANY, &index), Some(id));
        }
        assert_eq!(ready.next(ANY, &index), None);
    }
}
