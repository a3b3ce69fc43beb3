//! Does a table do what a list of rows with owners does, through crashes, compaction and failing disks?

mod scene;

use evenkeel_queue::io::simulated::{Fault, Simulated};
use evenkeel_queue::{Append, Condition, Error, Queue, Source};
use proptest::prelude::*;
use scene::{create, open, rows, small};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Clone)]
enum Op {
    Append(Vec<u8>),
    Sourced(u8, u64, bool),
    Take(u64, usize, bool),
    End(u64),
    Abort(u64),
    Own(u64, usize),
    Truncate,
    Slice,
    Compact,
    Close,
    Clock(u64),
    Crash(u64),
    Fail(usize, Fault, bool),
    Heal,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let fault = prop_oneof![
        Just(Fault::Refused),
        Just(Fault::Half),
        Just(Fault::HalfFull)
    ];
    let one = prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 1..8).prop_map(Op::Append),
        2 => (0..3u8, 0..6u64, any::<bool>()).prop_map(|(slot, id, reset)| Op::Sourced(slot, id, reset)),
        8 => (1..4u64, 1..4usize, any::<bool>()).prop_map(|(owner, most, odd)| Op::Take(owner, most, odd)),
        8 => (1..4u64).prop_map(Op::End),
        3 => (1..4u64).prop_map(Op::Abort),
        2 => (1..4u64, 0..20usize).prop_map(|(owner, at)| Op::Own(owner, at)),
        1 => Just(Op::Truncate),
        5 => Just(Op::Slice),
        1 => Just(Op::Compact),
        1 => Just(Op::Close),
        4 => (0..4u64).prop_map(Op::Clock),
        2 => any::<u64>().prop_map(Op::Crash),
        2 => (0..6usize, fault, any::<bool>()).prop_map(|(calls, how, on)| Op::Fail(calls, how, on)),
        4 => Just(Op::Heal),
    ];
    prop::collection::vec(one, 1..120)
}

/// What should be there.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    rows: BTreeMap<u64, Vec<u8>>,
    /// Of every row that ever was; 0 where nobody knows.
    came: BTreeMap<u64, u64>,
    owners: BTreeMap<u64, u64>,
    sources: [u64; 3],
}

impl Model {
    fn free(&self, odd: bool) -> Vec<u64> {
        let rows = self.rows.iter();
        rows.filter(|(id, row)| !self.owners.contains_key(id) && (!odd || row[0] % 2 == 1))
            .map(|(id, _)| *id)
            .collect()
    }

    fn of(&self, owner: u64) -> Vec<u64> {
        let owners = self.owners.iter();
        owners
            .filter(|(_, of)| **of == owner)
            .map(|(id, _)| *id)
            .collect()
    }

    fn remove(&mut self, ids: &[u64]) {
        for id in ids {
            self.rows.remove(id);
            self.owners.remove(id);
        }
    }
}

struct Both {
    disk: Simulated,
    table: Arc<Queue>,
    model: Model,
    odd: Condition,
    next: u64,
    unix_s: u64,
}

impl Both {
    /// Opens the table again, on what the disk has. It is `model`, or `other` if that is in doubt.
    fn reopen(&mut self, disk: Simulated, other: Option<Model>) {
        disk.heal();
        self.disk = disk;
        self.table = open(&self.disk).expect("it opens").0;
        self.model.owners.clear();
        let found: BTreeMap<u64, Vec<u8>> = rows(&self.table).unwrap().into_iter().collect();
        if let Some(other) = other.filter(|other| other.rows == found) {
            self.next = self
                .next
                .max(other.rows.last_key_value().map_or(0, |row| row.0 + 1));
            self.model = other;
            self.model.owners.clear();
        }
        assert_eq!(found, self.model.rows, "after it was opened");
    }

    /// What a write came to: `after` if it succeeded, if it failed nothing; in doubt, either.
    fn write(&mut self, result: Result<(), Error>, after: Model) {
        match result {
            Ok(()) => self.model = after,
            Err(Error::Poisoned(_)) => {
                let disk = self.disk.clone();
                self.reopen(disk, Some(after));
            }
            Err(_) => {}
        }
    }

    fn append(&mut self, rows: Vec<Vec<u8>>, source: Option<Source>) {
        let mut after = self.model.clone();
        let repeated = source.is_some_and(|source| {
            !source.is_reset && source.id <= after.sources[usize::from(source.slot)]
        });
        let appended = self.table.append(rows.clone(), source);
        if let Ok(appended) = appended {
            assert_eq!(appended == Append::Repeated, repeated);
        }
        if repeated && appended.is_ok() {
            return;
        }
        let first = match appended {
            Ok(Append::First(first)) => {
                assert!(first >= self.next, "ids only grow");
                first
            }
            _ => self.next,
        };
        if appended.is_ok() {
            self.next = first + rows.len() as u64;
        }
        after
            .came
            .extend((first..).zip(rows.iter().map(|_| self.unix_s)));
        after.rows.extend((first..).zip(rows));
        if let Some(source) = source {
            after.sources[usize::from(source.slot)] = source.id;
        }
        self.write(appended.map(|_| ()), after);
    }

    fn own(&mut self, owner: u64, at: usize) {
        if let Some(id) = self.model.rows.keys().nth(at).copied() {
            let free = !self.model.owners.contains_key(&id);
            assert_eq!(self.table.own(id, owner), free);
            self.model.owners.entry(id).or_insert(owner);
        }
    }

    fn abort(&mut self, owner: u64) {
        self.table.give_back(owner, &self.model.of(owner));
        self.model.owners.retain(|_, of| *of != owner);
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Append(lens) => {
                let rows = lens.iter().map(|len| vec![*len; 1 + usize::from(*len)]);
                self.append(rows.collect(), None);
            }
            Op::Sourced(slot, id, is_reset) => {
                let source = Source { slot, id, is_reset };
                self.append(vec![vec![slot + 1; 40]], Some(source));
            }
            Op::Take(owner, most, odd) => {
                let condition = odd.then(|| self.odd.clone());
                let taken = self.table.take(owner, condition.as_ref(), most).unwrap();
                let free = self.model.free(odd);
                assert_eq!(taken, free[..most.min(free.len())], "the oldest first");
                self.model
                    .owners
                    .extend(taken.iter().map(|id| (*id, owner)));
            }
            Op::Own(owner, at) => self.own(owner, at),
            Op::End(owner) => {
                let ids = self.model.of(owner);
                let mut after = self.model.clone();
                after.remove(&ids);
                let removed = self.table.remove(owner, &ids);
                self.write(removed, after);
            }
            Op::Abort(owner) => self.abort(owner),
            Op::Truncate => {
                let mut after = self.model.clone();
                (after.rows, after.owners) = Default::default();
                let truncated = self.table.truncate();
                self.write(truncated, after);
            }
            Op::Slice => {
                let _ = self.table.compact_slice();
            }
            Op::Compact => {
                let compacted = self.table.compact(true);
                let same = self.model.clone();
                self.write(compacted, same);
            }
            Op::Close => {
                let closed = self.table.close();
                if closed.is_ok() {
                    let disk = self.disk.clone();
                    self.reopen(disk, None);
                } else {
                    let same = self.model.clone();
                    self.write(closed, same);
                }
            }
            Op::Clock(unix_s) => {
                self.disk.set_clock(unix_s);
                self.unix_s = unix_s;
            }
            Op::Crash(seed) => {
                let mut random = fastrand::Rng::with_seed(seed);
                let disk = self.disk.power_cut_now(&mut random);
                self.reopen(disk, None);
            }
            Op::Fail(calls, how, on) => self.disk.fail_after(calls, how, on),
            Op::Heal => self.disk.heal(),
        }
    }

    fn compare(&self) {
        let found: BTreeMap<u64, Vec<u8>> = rows(&self.table).unwrap().into_iter().collect();
        let free = self.model.free(false);
        assert_eq!(found.keys().copied().collect::<Vec<u64>>(), free);
        for (id, row) in &found {
            assert_eq!(self.model.rows.get(id), Some(row));
        }
        for owner in 1..4 {
            assert_eq!(self.table.owned_by(owner), self.model.of(owner));
        }
        for id in self.model.rows.keys() {
            assert_eq!(self.table.came(*id), self.model.came[id], "row {id}");
        }
        let oldest = self.model.rows.keys().next();
        let waited = oldest.map_or(Some(0), |id| match self.model.came[id] {
            0 => None,
            came => Some(self.unix_s.saturating_sub(came)),
        });
        assert_eq!(self.table.oldest_s(), waited);
        let stats = self.table.stats();
        assert_eq!(stats.rows, self.model.rows.len());
        assert_eq!(stats.owned, self.model.owners.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_done(ops in ops()) {
        let disk = Simulated::new();
        let table = create(&disk, small());
        let odd = Condition::new(|row| row[0] % 2 == 1);
        let mut both = Both { disk, table, model: Model::default(), odd, next: 1, unix_s: 0 };
        for op in ops {
            both.step(op);
            both.compare();
        }
    }
}
