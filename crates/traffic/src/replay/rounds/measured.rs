//! What is kept of a run, and how the runs of two variants differ.

use super::super::tally::Difference;
use super::super::{DIFFERENCES, Differences};
use crate::digest::Class;
use evenkeel_report::compare::{Spread, Verdict, compare};

/// What the statements of a class came to in one run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measured {
    /// How many ran.
    pub count: u64,
    /// How long one took on average, in microseconds.
    pub avg_us: Option<f64>,
    /// The time within which 95 % were done.
    pub p95_us: Option<u64>,
    /// How many failed.
    pub errors: u64,
    /// Of these, how many met a lock: who comes first is chance.
    pub locks: u64,
    /// Rows returned.
    pub rows: u64,
    /// Rows changed.
    pub affected: u64,
}

impl Measured {
    fn of(class: &Class) -> Self {
        Self {
            count: class.count,
            avg_us: (class.timed > 0).then(|| class.sum_ns as f64 / class.timed as f64 / 1000.0),
            p95_us: class.within_us(0.95),
            errors: class.errors,
            locks: 0,
            rows: class.rows_sent.unwrap_or(0),
            affected: class.rows_affected.unwrap_or(0),
        }
    }
}

/// Something that the runs of both variants always have, and never alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// What: `errors`, `rows`, `affected`, or the name of a difference from the capture.
    pub name: &'static str,
    /// In words.
    pub says: &'static str,
    /// The least and the most of each variant's runs.
    pub ranges: [(u64, u64); 2],
}

impl Other {
    /// Compares a value of the runs of A and B.
    fn of(name: &'static str, says: &'static str, values: [Vec<u64>; 2]) -> Option<Self> {
        let ranges = values.map(|values| {
            let least = values.iter().copied().min().unwrap_or(0);
            (least, values.iter().copied().max().unwrap_or(0))
        });
        let is_apart = ranges[0].1 < ranges[1].0 || ranges[1].1 < ranges[0].0;
        is_apart.then_some(Self { name, says, ranges })
    }
}

/// A class in all runs.
#[derive(Debug, Clone)]
pub struct ClassRuns {
    /// Its identifier.
    pub id: String,
    /// What its statements have in common.
    pub fingerprint: String,
    /// What they came to when they were captured.
    pub captured: Measured,
    /// By variant, what they came to in each run.
    pub runs: Vec<Vec<Measured>>,
    /// By variant, how outcomes differ from the capture's, over all runs.
    pub differences: Vec<Differences>,
    /// How many differences of each kind each run had, by variant.
    kinds: Vec<Vec<[u64; DIFFERENCES.len()]>>,
    /// Whether one takes longer with B, from the averages of the runs; none with one variant or without times.
    pub verdict: Option<Verdict>,
    /// Whether that is more than chance.
    pub is_real: bool,
    /// Where the results of A and B differ.
    pub others: Vec<Other>,
}

impl ClassRuns {
    pub(super) fn of(class: &Class, variants: usize) -> Self {
        Self {
            id: class.id.clone(),
            fingerprint: class.fingerprint.clone(),
            captured: Measured::of(class),
            runs: vec![Vec::new(); variants],
            differences: vec![Differences::default(); variants],
            kinds: vec![Vec::new(); variants],
            verdict: None,
            is_real: false,
            others: Vec::new(),
        }
    }

    /// Counts a run, and how its outcomes differ from the capture's.
    pub(super) fn add(&mut self, variant: usize, class: &Class, differences: &Differences) {
        let counts = DIFFERENCES.map(|kind| {
            let mut all = differences.all();
            let found = all.find(|(difference, ..)| *difference == kind);
            found.map_or(0, |(_, count, _)| count)
        });
        let locks = DIFFERENCES.iter().zip(counts);
        let locks = locks
            .filter(|(kind, _)| !kind.counts())
            .map(|(_, n)| n)
            .sum();
        self.kinds[variant].push(counts);
        self.runs[variant].push(Measured {
            locks,
            ..Measured::of(class)
        });
        self.merge_differences(variant, differences);
    }

    /// Counts a run of all classes.
    pub(super) fn add_run(&mut self, variant: usize, class: &Class) {
        self.runs[variant].push(Measured::of(class));
    }

    pub(super) fn merge_differences(&mut self, variant: usize, differences: &Differences) {
        self.differences[variant].merge(differences);
    }

    /// Compares the variants.
    pub(super) fn compare(&mut self) {
        let [a, b] = self.runs.as_slice() else { return };
        let averages =
            |runs: &[Measured]| -> Option<Vec<f64>> { runs.iter().map(|run| run.avg_us).collect() };
        let averages = averages(a).zip(averages(b));
        self.verdict = averages.and_then(|(a, b)| compare(&a, &b).ok());
        self.others = self.other_results();
    }

    fn other_results(&self) -> Vec<Other> {
        let [a, b] = self.runs.as_slice() else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let mut look = |name, says, values| found.extend(Other::of(name, says, values));
        let of = |value: fn(&Measured) -> u64| [a, b].map(|runs| runs.iter().map(value).collect());
        // Who meets a lock is chance, and so is what such a statement then returns.
        if a.iter().chain(b).all(|run| run.locks == 0) {
            look("errors", "failed", of(|run| run.errors));
            look("rows", "rows returned", of(|run| run.rows));
            look("affected", "rows changed", of(|run| run.affected));
        }
        let said: Vec<&str> = found.iter().map(|one: &Other| one.name).collect();
        let mut look = |name, says, values| found.extend(Other::of(name, says, values));
        for (place, kind) in DIFFERENCES.iter().enumerate() {
            if kind.counts() && !is_said_above(*kind, &said, &self.kinds) {
                let counts = |variant: usize| {
                    let runs = self.kinds[variant].iter();
                    runs.map(|counts| counts[place]).collect()
                };
                look(kind.name(), kind.says(), [counts(0), counts(1)]);
            }
        }
        found
    }

    /// Returns median and range of a variant's averages, in microseconds.
    #[must_use]
    pub fn spread(&self, variant: usize) -> Option<Spread> {
        let runs = self.runs.get(variant)?.iter();
        Spread::of(&runs.filter_map(|run| run.avg_us).collect::<Vec<_>>())
    }

    /// Returns the median of the times within which 95 % of a variant's statements were done, in microseconds.
    #[must_use]
    pub fn p95_us(&self, variant: usize) -> Option<f64> {
        let runs = self.runs.get(variant)?.iter();
        let all: Vec<f64> = runs.filter_map(|run| Some(run.p95_us? as f64)).collect();
        evenkeel_report::median(&all)
    }

    /// Returns how much longer B takes than A, in percent, if that is more than chance.
    #[must_use]
    pub fn change_percent(&self) -> Option<f64> {
        let verdict = self.verdict.as_ref().filter(|_| self.is_real)?;
        verdict.change_percent
    }
}

/// Whether a kind of difference from the capture says nothing new: `said` has the sums that differ. New and missing
/// errors are among the errors already, if no run had locks.
fn is_said_above(kind: Difference, said: &[&str], kinds: &[Vec<[u64; DIFFERENCES.len()]>]) -> bool {
    let is_error = matches!(kind, Difference::ErrorNew | Difference::ErrorGone);
    let locks = DIFFERENCES.iter().position(|kind| !kind.counts());
    let has_locks = |counts: &[u64; DIFFERENCES.len()]| locks.is_some_and(|at| counts[at] > 0);
    said.contains(&kind.name()) || is_error && !kinds.iter().flatten().any(has_locks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(runs: [&[(u64, u64)]; 2]) -> ClassRuns {
        let mut class = ClassRuns::of(&Class::default(), 2);
        for (variant, runs) in runs.into_iter().enumerate() {
            for (rows, locks) in runs {
                class.runs[variant].push(Measured {
                    rows: *rows,
                    locks: *locks,
                    ..Measured::default()
                });
                class.kinds[variant].push([0; DIFFERENCES.len()]);
            }
        }
        class.compare();
        class
    }

    #[test]
    fn results_differ_where_no_run_of_one_is_like_one_of_the_other() {
        let found = class([&[(3, 0), (4, 0)], &[(6, 0), (5, 0)]]).others;
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].name, found[0].ranges), ("rows", [(3, 4), (5, 6)]));
        assert_eq!(class([&[(3, 0), (5, 0)], &[(5, 0), (6, 0)]]).others, []);
        assert_eq!(class([&[(3, 0), (4, 0)], &[(6, 1), (5, 0)]]).others, []);
    }
}
