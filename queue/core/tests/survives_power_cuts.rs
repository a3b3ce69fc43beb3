//! Does a power cut between any two calls to the disk lose nothing acknowledged, and bring nothing back?

mod scene;

use evenkeel_queue::io::simulated::Simulated;
use evenkeel_queue::{Append, Options, Queue, Source, Sync};
use scene::{create, open, rows, small};
use std::collections::{BTreeMap, BTreeSet};

/// What was done: between which calls to the disk, and what it was.
struct Done {
    from: usize,
    until: usize,
    what: What,
}

enum What {
    Appended(Vec<(u64, Vec<u8>)>),
    Removed(Vec<u64>),
}

struct Script {
    disk: Simulated,
    table: std::sync::Arc<Queue>,
    done: Vec<Done>,
    random: fastrand::Rng,
}

impl Script {
    fn note(&mut self, from: usize, what: What) {
        let until = self.disk.calls();
        self.done.push(Done { from, until, what });
    }

    fn append(&mut self, source: Option<Source>) {
        let count = self.random.usize(1..6);
        let rows: Vec<Vec<u8>> = (0..count)
            .map(|_| vec![self.random.u8(..); self.random.usize(0..200)])
            .collect();
        let from = self.disk.calls();
        let appended = self.table.append(rows.clone(), source).unwrap();
        if let Append::First(first) = appended {
            self.note(from, What::Appended((first..).zip(rows).collect()));
        }
    }

    fn consume(&mut self, most: usize) {
        let ids = self.table.take(1, None, most).unwrap();
        let from = self.disk.calls();
        self.table.remove(1, &ids).unwrap();
        self.note(from, What::Removed(ids));
    }
}

fn play(seed: u64, options: Options) -> Script {
    let disk = Simulated::new();
    let table = create(&disk, options);
    let random = fastrand::Rng::with_seed(seed);
    let mut script = Script {
        disk,
        table,
        done: Vec::new(),
        random,
    };
    for round in 0..25 {
        let slot = 3;
        let id = round / 2;
        let is_reset = false;
        let source = Source { slot, id, is_reset };
        script.append((round % 4 == 3).then_some(source));
        if round % 3 > 0 {
            script.consume(1 + round as usize % 5);
        }
        if round % 5 == 4 {
            script.table.compact_slice().unwrap();
        }
        if round % 9 == 8 {
            script.table.compact(true).unwrap();
        }
        if round == 12 {
            let before: Vec<u64> = rows(&script.table)
                .unwrap()
                .iter()
                .map(|row| row.0)
                .collect();
            let from = script.disk.calls();
            script.table.truncate().unwrap();
            script.note(from, What::Removed(before));
        }
    }
    script
}

/// Checks what is there after power went after so many calls.
fn check(script: &Script, calls: usize, table: &Queue, context: &str) {
    let mut must = BTreeMap::new();
    let mut may = BTreeMap::new();
    let mut gone = BTreeSet::new();
    for done in script.done.iter().filter(|done| done.from <= calls) {
        let is_sure = done.until <= calls;
        match &done.what {
            What::Appended(rows) if is_sure => must.extend(rows.iter().cloned()),
            What::Appended(rows) => may.extend(rows.iter().cloned()),
            What::Removed(ids) => {
                for id in ids {
                    let row = must.remove(id);
                    if is_sure {
                        gone.insert(*id);
                    } else {
                        may.extend(row.map(|row| (*id, row)));
                    }
                }
            }
        }
    }
    let found: BTreeMap<u64, Vec<u8>> = rows(table).unwrap().into_iter().collect();
    for (id, row) in &must {
        assert_eq!(found.get(id), Some(row), "{context}: row {id}");
    }
    for (id, row) in &found {
        assert!(!gone.contains(id), "{context}: row {id} came back");
        let known = must.get(id).or(may.get(id));
        assert_eq!(known, Some(row), "{context}: row {id} was never there");
    }
}

#[test]
fn at_every_call() {
    let torn: usize = (1..=4).map(every_call).sum();
    assert!(torn > 100, "only {torn} cuts tore something");
}

fn every_call(seed: u64) -> usize {
    println!("seed {seed}");
    let script = play(seed, small());
    let calls = script.disk.calls();
    assert!(calls > 100, "{calls}");
    let first = script.done[0].from;
    let mut torn = 0;
    for cut in first..=calls {
        for seed in 0..10 {
            let context = format!("cut after {cut} of {calls} calls, seed {seed}");
            let mut random = fastrand::Rng::with_seed(seed << 32 | cut as u64);
            let disk = script.disk.power_cut(cut, &mut random);
            let (table, report) = open(&disk).unwrap_or_else(|error| panic!("{context}: {error}"));
            torn += usize::from(report.torn_bytes > 0);
            check(&script, cut, &table, &context);
            // It goes on, and a second crash right now loses nothing of that.
            let last = table.append(vec![b"later".to_vec()], None).unwrap();
            let Append::First(last) = last else {
                panic!("{context}: it has no source");
            };
            let again = disk.power_cut_now(&mut random);
            let (table, _) = open(&again).unwrap_or_else(|error| panic!("{context}: {error}"));
            assert_eq!(
                table.read(last).unwrap().as_deref(),
                Some(&b"later"[..]),
                "{context}"
            );
        }
    }
    torn
}

/// Then rows may be lost and come again, but what is there is what was written, and it always opens.
#[test]
fn at_every_call_when_nothing_is_synced() {
    let options = Options {
        rows: Sync::Never,
        removals: Sync::Never,
        ..small()
    };
    let script = play(5, options);
    let calls = script.disk.calls();
    let written: BTreeMap<u64, Vec<u8>> =
        script.done.iter().fold(BTreeMap::new(), |mut all, done| {
            if let What::Appended(rows) = &done.what {
                all.extend(rows.iter().cloned());
            }
            all
        });
    for cut in script.done[0].from..=calls {
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed << 32 | cut as u64);
            let disk = script.disk.power_cut(cut, &mut random);
            let context = format!("cut after {cut} of {calls} calls, seed {seed}");
            let (table, _) = open(&disk).unwrap_or_else(|error| panic!("{context}: {error}"));
            for (id, row) in rows(&table).unwrap() {
                assert_eq!(written.get(&id), Some(&row), "{context}: row {id}");
            }
        }
    }
}
