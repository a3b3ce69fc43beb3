//! Who waits for whom: a statement for those of other sessions that were done before it, if one of the two changed what
//! the other reads or changes.
//!
//! So who had seen another's commit sees it again, at whatever speed. A change counts from its transaction's commit on.
//! What only reads does so as of its beginning, and waits for what was answered by then. What changes or locks reads
//! the latest, and waits for all that took effect before it was done itself: so locks are taken in the order in which
//! they were, and nobody who has one waits for somebody who needs it. Of those that a statement has to wait for, the
//! ones are left out for which another one waits already.

use foldhash::fast::RandomState;
use std::collections::HashMap;

/// A session, and the number of its step.
pub(super) type At = (u32, u32);

/// More of one table are not kept; then those go that the others waited for.
const MOST: usize = 1024;

/// When something was there for others.
#[derive(Debug, Clone, Copy)]
pub(super) struct There {
    /// It had taken effect.
    pub(super) effect_ns: i64,
    /// The client knew.
    pub(super) known_ns: i64,
}

/// What a statement waits for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sees {
    /// What clients knew by then: it reads as of that time.
    Known(i64),
    /// What had taken effect by then.
    Effects(i64),
}

impl Sees {
    fn sees(self, there: There) -> bool {
        match self {
            Self::Known(ns) => there.known_ns <= ns,
            Self::Effects(ns) => there.effect_ns <= ns,
        }
    }
}

/// What somebody did.
#[derive(Debug, Clone, Copy)]
struct Deed {
    by: At,
    there: There,
    /// From when on another deed stands for this one: it waited for it.
    covered: There,
}

/// What was done to a table.
#[derive(Debug, Default)]
struct Deeds {
    reads: Vec<Deed>,
    writes: Vec<Deed>,
}

/// A statement, for the order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Doing {
    pub(super) by: At,
    pub(super) sees: Sees,
    /// When others could see what it did.
    pub(super) there: There,
}

/// What was done so far.
#[derive(Debug, Default)]
pub(super) struct Order {
    tables: HashMap<u64, Deeds, RandomState>,
    /// The last steps of each session, and those of them that may have changed anything.
    last: HashMap<u32, Deed, RandomState>,
    anything: Vec<Deed>,
}

impl Order {
    /// Adds to `after` whom a statement waits for that reads or changes a table.
    pub(super) fn waits(&self, table: u64, is_written: bool, doing: Doing, after: &mut Vec<At>) {
        if let Some(deeds) = self.tables.get(&table) {
            gather(&deeds.writes, doing, after);
            if is_written {
                gather(&deeds.reads, doing, after);
            }
        }
        gather(&self.anything, doing, after);
    }

    /// Adds whom a commit waits for: those who read a table that the transaction changed, and did not see the change,
    /// and the commits that stand for them.
    pub(super) fn waits_for_readers(&self, table: u64, commit: Doing, after: &mut Vec<At>) {
        if let Some(deeds) = self.tables.get(&table) {
            gather(&deeds.reads, commit, after);
            gather(&deeds.writes, commit, after);
        }
    }

    /// Adds whom a statement waits for that may change anything.
    pub(super) fn waits_for_all(&self, doing: Doing, after: &mut Vec<At>) {
        for deed in self.last.values() {
            gather(std::slice::from_ref(deed), doing, after);
        }
        gather(&self.anything, doing, after);
    }

    /// Takes note that a statement read a table.
    pub(super) fn read(&mut self, table: u64, doing: Doing) {
        let deeds = self.tables.entry(table).or_default();
        // What a session did before is done when this is: who waits for the last waits for all. Of one session, only
        // the last has nothing yet that stands for it.
        let mut latest = deeds.reads.iter_mut().rev();
        let last = latest.find(|deed| deed.by.0 == doing.by.0 && deed.covered.known_ns == i64::MAX);
        if let Some(deed) = last {
            deed.cover(doing.there);
        }
        add(&mut deeds.reads, doing);
    }

    /// Takes note that a change of a table is committed; the change itself had waited for what it saw.
    pub(super) fn written(&mut self, table: u64, change: Sees, commit: Doing) {
        let deeds = self.tables.entry(table).or_default();
        for deed in deeds.reads.iter_mut().chain(&mut deeds.writes) {
            if change.sees(deed.there) || deed.by.0 == commit.by.0 {
                deed.cover(commit.there);
            }
        }
        add(&mut deeds.writes, commit);
    }

    /// Whether a change of a table by another session became visible after a time.
    pub(super) fn is_changed_since(&self, table: u64, session: u32, since_ns: i64) -> bool {
        let writes = self.tables.get(&table).map(|deeds| &deeds.writes[..]);
        let mut all = writes.unwrap_or_default().iter().chain(&self.anything);
        all.any(|deed| deed.by.0 != session && deed.there.known_ns > since_ns)
    }

    /// Returns the statements of other sessions that read a table, or any if none is given, and were not done by then.
    pub(super) fn readers_at(&self, table: Option<u64>, session: u32, at_ns: i64) -> Vec<At> {
        let deeds = self.tables.iter();
        let deeds = deeds.filter(|(one, _)| table.is_none_or(|table| **one == table));
        let reads = deeds.flat_map(|(_, deeds)| &deeds.reads);
        reads
            .filter(|deed| deed.by.0 != session && deed.there.known_ns > at_ns)
            .map(|deed| deed.by)
            .collect()
    }

    /// Takes note that a statement may have changed anything.
    pub(super) fn changed_anything(&mut self, doing: Doing) {
        for deed in &mut self.anything {
            if doing.sees.sees(deed.there) || deed.by.0 == doing.by.0 {
                deed.cover(doing.there);
            }
        }
        add(&mut self.anything, doing);
    }

    /// Takes note of a session's step, whatever it is.
    pub(super) fn did(&mut self, doing: Doing) {
        self.last.insert(doing.by.0, deed(doing));
    }

    /// Forgets a session that ended.
    pub(super) fn forget(&mut self, session: u32) {
        self.last.remove(&session);
    }
}

impl Deed {
    /// Another deed stands for this one from when on it is there.
    fn cover(&mut self, by: There) {
        let covered = &mut self.covered;
        covered.effect_ns = covered.effect_ns.min(by.effect_ns);
        covered.known_ns = covered.known_ns.min(by.known_ns);
    }
}

fn deed(doing: Doing) -> Deed {
    Deed {
        by: doing.by,
        there: doing.there,
        covered: There {
            effect_ns: i64::MAX,
            known_ns: i64::MAX,
        },
    }
}

fn add(deeds: &mut Vec<Deed>, doing: Doing) {
    if deeds.len() >= MOST {
        // The oldest of those that another stands for; without any, the oldest.
        deeds.sort_unstable_by_key(|deed| (deed.covered.known_ns, deed.there.known_ns));
        deeds.drain(..MOST / 2);
    }
    deeds.push(deed(doing));
}

fn gather(deeds: &[Deed], doing: Doing, after: &mut Vec<At>) {
    let before = deeds.iter().filter(|deed| {
        let sees = |there| doing.sees.sees(there);
        deed.by.0 != doing.by.0 && sees(deed.there) && !sees(deed.covered)
    });
    after.extend(before.map(|deed| deed.by));
}

/// Leaves the last step of each session: who waits for it waits for all before.
pub(super) fn tidy(after: &mut Vec<At>) {
    after.sort_unstable_by(|a, b| b.cmp(a));
    after.dedup_by_key(|(session, _)| *session);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A statement that waits for what was done by a time, and is done at another.
    fn doing(session: u32, step: u32, sees_ns: i64, to_ns: i64) -> Doing {
        Doing {
            by: (session, step),
            sees: Sees::Known(sees_ns),
            there: There {
                effect_ns: to_ns,
                known_ns: to_ns,
            },
        }
    }

    fn waits(order: &Order, is_written: bool, doing: Doing) -> Vec<At> {
        let mut after = Vec::new();
        order.waits(1, is_written, doing, &mut after);
        tidy(&mut after);
        after
    }

    #[test]
    fn who_saw_a_commit_waits_for_it() {
        let mut order = Order::default();
        order.written(1, Sees::Known(10), doing(1, 5, 20, 30));
        assert_eq!(waits(&order, false, doing(2, 0, 30, 40)), [(1, 5)]);
        // It was not done yet.
        assert!(waits(&order, false, doing(2, 0, 29, 40)).is_empty());
        // It is its own.
        assert!(waits(&order, false, doing(1, 6, 31, 40)).is_empty());
    }

    #[test]
    fn who_got_the_locks_of_a_commit_waits_for_it() {
        let mut order = Order::default();
        let there = There {
            effect_ns: 10,
            known_ns: 30,
        };
        order.written(
            1,
            Sees::Effects(5),
            Doing {
                there,
                ..doing(1, 5, 0, 0)
            },
        );
        let sees = |sees| Doing {
            sees,
            ..doing(2, 0, 0, 0)
        };
        assert_eq!(waits(&order, true, sees(Sees::Effects(20))), [(1, 5)]);
        assert!(waits(&order, false, sees(Sees::Known(20))).is_empty());
    }

    #[test]
    fn who_changes_waits_for_readers_too() {
        let mut order = Order::default();
        order.read(1, doing(1, 0, 0, 10));
        order.read(1, doing(1, 1, 11, 20));
        order.read(1, doing(2, 7, 0, 50));
        assert!(waits(&order, false, doing(3, 0, 60, 70)).is_empty());
        assert_eq!(waits(&order, true, doing(3, 0, 60, 70)), [(2, 7), (1, 1)]);
        assert_eq!(waits(&order, true, doing(3, 0, 15, 70)), [(1, 0)]);
    }

    #[test]
    fn who_is_waited_for_already_is_left_out() {
        let mut order = Order::default();
        order.written(1, Sees::Known(0), doing(1, 0, 0, 10));
        order.written(1, Sees::Known(20), doing(2, 0, 20, 30));
        assert_eq!(waits(&order, false, doing(3, 0, 40, 50)), [(2, 0)]);
        // Before the second was done, the first stands for itself.
        assert_eq!(waits(&order, false, doing(3, 0, 25, 50)), [(1, 0)]);
    }

    #[test]
    fn what_may_change_anything_is_waited_for_by_all() {
        let mut order = Order::default();
        order.did(doing(1, 3, 0, 10));
        order.changed_anything(doing(2, 0, 20, 30));
        assert_eq!(waits(&order, false, doing(3, 0, 40, 50)), [(2, 0)]);
        let mut after = Vec::new();
        order.waits_for_all(doing(4, 0, 25, 26), &mut after);
        assert_eq!(after, [(1, 3)]);
    }

    #[test]
    fn who_reads_beside_a_commit_is_known() {
        let mut order = Order::default();
        order.read(1, doing(1, 0, 0, 10));
        order.read(1, doing(2, 0, 5, 30));
        order.read(2, doing(3, 0, 5, 30));
        assert_eq!(order.readers_at(Some(1), 9, 20), [(2, 0)]);
        assert_eq!(order.readers_at(None, 3, 20), [(2, 0)]);
        order.written(1, Sees::Known(0), doing(9, 4, 20, 40));
        assert!(order.is_changed_since(1, 2, 39));
        assert!(!order.is_changed_since(1, 2, 40));
        assert!(!order.is_changed_since(1, 9, 0), "its own");
        assert!(!order.is_changed_since(2, 2, 0), "another table");
    }

    #[test]
    fn memory_is_bounded() {
        let mut order = Order::default();
        for step in 0..10_000 {
            order.read(1, doing(step, 0, i64::from(step), i64::from(step) + 1));
        }
        assert!(order.tables[&1].reads.len() <= MOST);
    }
}
