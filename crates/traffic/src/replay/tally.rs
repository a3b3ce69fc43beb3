//! What came out, class by class, and where it is not what came out when it was captured.

use super::returns::Returns;
use super::step::{Did, Step};
use crate::digest::fingerprint::{Mode, redacted};
use crate::digest::{Class, Grid, Summary};
use crate::{Command, Statement};
use evenkeel_wire::{Checksum, Played};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The numbers of errors that depend on who came first: a deadlock, and a lock that was not to be had in time.
const LOCKS: [u16; 4] = [1205, 1213, 3572, 3058];
/// How much of a statement is shown with a difference.
const SAMPLE: usize = 1000;

/// How an outcome differs from the original's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Difference {
    /// It failed, and did not before.
    ErrorNew,
    /// It failed, and whether it did before is not known.
    ErrorUnknown,
    /// It failed before, and does not now.
    ErrorGone,
    /// It failed otherwise.
    ErrorChanged,
    /// It met a lock, or met one before: who comes first is chance.
    Lock,
    /// It returned another number of rows.
    Rows,
    /// It changed another number of rows.
    Affected,
    /// It returned as many rows, and not the same.
    Values,
    /// It returned the same rows in another order than it had them sorted in.
    Order,
    /// It returned the same rows in another order, and did not ask for any.
    FreeOrder,
}

/// Why rows are not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Incomparable {
    /// They depend on when the statement runs, in which session, or on chance.
    Varying,
    /// They are about the server.
    OfServer,
    /// A change of the same tables committed at the same time: the statement may or may not see it.
    Concurrent,
    /// What they were is not known.
    Unseen,
}

impl Incomparable {
    /// Returns its name in answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Varying => "varying",
            Self::OfServer => "of-server",
            Self::Concurrent => "concurrent",
            Self::Unseen => "unseen",
        }
    }

    /// Says it in words, after a number of statements.
    #[must_use]
    pub fn says(self) -> &'static str {
        match self {
            Self::Varying => "depend on the time, the session or chance",
            Self::OfServer => "are about the server",
            Self::Concurrent => "ran at the same time as a change of their tables",
            Self::Unseen => "returned rows that were not captured",
        }
    }
}

/// All of them, in the order in which reports have them.
pub const DIFFERENCES: [Difference; 10] = [
    Difference::ErrorNew,
    Difference::ErrorUnknown,
    Difference::ErrorGone,
    Difference::ErrorChanged,
    Difference::Rows,
    Difference::Affected,
    Difference::Values,
    Difference::Order,
    Difference::FreeOrder,
    Difference::Lock,
];

impl Difference {
    /// Returns its name in answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ErrorNew => "error-new",
            Self::ErrorUnknown => "error-unknown",
            Self::ErrorGone => "error-gone",
            Self::ErrorChanged => "error-changed",
            Self::Lock => "lock",
            Self::Rows => "rows",
            Self::Affected => "affected",
            Self::Values => "values",
            Self::Order => "order",
            Self::FreeOrder => "free-order",
        }
    }

    /// Says it in words, after a number of statements.
    #[must_use]
    pub fn says(self) -> &'static str {
        match self {
            Self::ErrorNew => "failed",
            Self::ErrorUnknown => "failed, and the capture does not know whether they did there",
            Self::ErrorGone => "did not fail again",
            Self::ErrorChanged => "failed with another error",
            Self::Rows => "returned another number of rows",
            Self::Affected => "changed another number of rows",
            Self::Values => "returned other rows",
            Self::Order => "returned the same rows in another order, despite ORDER BY",
            Self::FreeOrder => "returned the same rows in another order, without ORDER BY",
            Self::Lock => "met a lock, or met one before",
        }
    }

    /// Whether it says that the server does something else, and not only that it was busier, or free to choose.
    #[must_use]
    pub fn counts(self) -> bool {
        !matches!(self, Self::Lock | Self::FreeOrder)
    }
}

/// A statement with another outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The statement, or its beginning, without secrets.
    pub sql: String,
    /// Error number, rows and changed rows when it was captured, as far as known.
    pub before: (Option<u16>, Option<u64>, Option<u64>),
    /// The same now.
    pub now: (Option<u16>, u64, u64),
}

/// How often outcomes of a class differ, and an example of each difference.
#[derive(Debug, Clone, Default)]
pub struct Differences {
    counts: [u64; DIFFERENCES.len()],
    examples: [Option<Example>; DIFFERENCES.len()],
    /// Statements whose outcome was compared.
    pub compared: u64,
    /// Of these, those whose rows were, too.
    pub results_compared: u64,
    /// Those whose rows were not, by the reason, with the first of them.
    incomparable: BTreeMap<Incomparable, (u64, String)>,
}

impl Differences {
    /// Returns those that there are, with how often and the first example.
    pub fn all(&self) -> impl Iterator<Item = (Difference, u64, Option<&Example>)> {
        let counts = DIFFERENCES.into_iter().zip(self.counts);
        counts
            .zip(&self.examples)
            .filter(|((_, count), _)| *count > 0)
            .map(|((difference, count), example)| (difference, count, example.as_ref()))
    }

    /// Returns how many statements differ by what the server does.
    #[must_use]
    pub fn counted(&self) -> u64 {
        let all = self.all().filter(|(difference, ..)| difference.counts());
        all.map(|(_, count, _)| count).sum()
    }

    /// Returns why rows were not compared, how often, and the first statement.
    pub fn incomparable(&self) -> impl Iterator<Item = (Incomparable, u64, &str)> {
        let all = self.incomparable.iter();
        all.map(|(why, (count, sql))| (*why, *count, sql.as_str()))
    }

    fn add(&mut self, step: &Step, played: &Played, mode: Mode) {
        let difference = match difference(&step.did, played) {
            None if played.error.is_none() => self.compare_rows(step, played, mode),
            found => found,
        };
        let Some(difference) = difference else {
            return;
        };
        let place = DIFFERENCES.iter().position(|it| *it == difference);
        let place = place.expect("one of all");
        self.counts[place] += 1;
        self.examples[place].get_or_insert_with(|| Example {
            sql: sample(&step.text, mode),
            before: (step.did.error, step.did.rows, step.did.affected),
            now: (played.error, played.rows, played.affected),
        });
    }

    /// Compares rows of which there are as many.
    fn compare_rows(&mut self, step: &Step, played: &Played, mode: Mode) -> Option<Difference> {
        let now = played.checksum?;
        match contents(&step.did, now) {
            Ok(difference) => {
                self.results_compared += u64::from(step.did.returns != Returns::Ignored);
                difference
            }
            Err(why) => {
                let first = || (0, sample(&step.text, mode));
                self.incomparable.entry(why).or_insert_with(first).0 += 1;
                None
            }
        }
    }

    /// Adds those of another class.
    pub fn merge(&mut self, other: &Self) {
        self.compared += other.compared;
        self.results_compared += other.results_compared;
        for (why, (count, sql)) in &other.incomparable {
            let first = || (0, sql.clone());
            self.incomparable.entry(*why).or_insert_with(first).0 += count;
        }
        for place in 0..self.counts.len() {
            self.counts[place] += other.counts[place];
            if self.examples[place].is_none() {
                self.examples[place].clone_from(&other.examples[place]);
            }
        }
    }
}

/// Returns a statement, or its beginning, without secrets.
fn sample(text: &[u8], mode: Mode) -> String {
    let safe = redacted(text, mode);
    String::from_utf8_lossy(&safe[..safe.len().min(SAMPLE)]).into_owned()
}

/// Whether it returned or changed rows, and so did not fail.
fn came_to_something(did: &Did) -> bool {
    did.rows.is_some_and(|rows| rows > 0) || did.affected.is_some_and(|rows| rows > 0)
}

/// Returns how an outcome differs.
fn difference(before: &Did, now: &Played) -> Option<Difference> {
    let is_lock = |number: Option<u16>| number.is_some_and(|number| LOCKS.contains(&number));
    let is_other = |before: Option<u64>, now| before.is_some_and(|before| before != now);
    match (before.error, now.error) {
        (before, now) if before != now && (is_lock(before) || is_lock(now)) => {
            Some(Difference::Lock)
        }
        // A log that knows no errors, and a statement that nothing came of.
        (None, Some(_)) if !before.is_error_known && !came_to_something(before) => {
            Some(Difference::ErrorUnknown)
        }
        (None, Some(_)) => Some(Difference::ErrorNew),
        (Some(_), None) => Some(Difference::ErrorGone),
        (Some(before), Some(now)) if before != now => Some(Difference::ErrorChanged),
        (Some(_), Some(_)) => None,
        (None, None) if is_other(before.rows, now.rows) => Some(Difference::Rows),
        (None, None) if is_other(before.affected, now.affected) => Some(Difference::Affected),
        (None, None) => None,
    }
}

/// Returns how rows differ of which there are as many.
fn contents(before: &Did, now: Checksum) -> Result<Option<Difference>, Incomparable> {
    let is_sorted = match before.returns {
        Returns::Ignored => return Ok(None),
        Returns::Varying => return Err(Incomparable::Varying),
        Returns::OfServer => return Err(Incomparable::OfServer),
        Returns::Concurrent => return Err(Incomparable::Concurrent),
        Returns::Sorted => true,
        Returns::Rows => false,
    };
    let before = before.checksum.ok_or(Incomparable::Unseen)?;
    Ok(match before.any_order == now.any_order {
        _ if before == now => None,
        false => Some(Difference::Values),
        true if is_sorted => Some(Difference::Order),
        true => Some(Difference::FreeOrder),
    })
}

/// One class.
#[derive(Debug, Clone)]
struct Sums {
    class: Class,
    differences: Differences,
}

/// Sums that many threads add to.
#[derive(Debug)]
pub(super) struct Tally {
    grid: Grid,
    mode: Mode,
    /// One for each class of the original, then one for all others.
    sums: Vec<Mutex<Sums>>,
    late: Mutex<Histogram<u32>>,
    pub(super) done: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) waits: AtomicU64,
    pub(super) gave_up: AtomicU64,
    pub(super) warm_up: AtomicU64,
}

/// What a replay came to.
#[derive(Debug)]
pub struct Outcome {
    /// What the statements came to now, by the original's classes.
    pub summary: Summary,
    /// For each of its classes, then for all others: how outcomes differ.
    pub differences: Vec<Differences>,
    /// Statements replayed and counted.
    pub statements: u64,
    /// Statements replayed to warm the server up.
    pub warm_up: u64,
    /// Statements that were to be replayed and were not: their session was lost or had to stop.
    pub lost: u64,
    /// Sessions that could not be opened or broke, with the first reason.
    pub lost_sessions: u64,
    /// Why the first of them was lost.
    pub loss: Option<String>,
    /// How many statements waited for those of other sessions.
    pub waits: u64,
    /// How often a statement was sent though one that it waited for was not done.
    pub gave_up: u64,
    /// How much later than planned statements were sent, in microseconds.
    pub late_us: Histogram<u32>,
    /// How long it took.
    pub seconds: f64,
}

impl Tally {
    pub(super) fn new(original: &Summary, mode: Mode) -> Self {
        let grid = Grid::of(original);
        let sums = |class: &Class| Sums {
            class: class.fresh(&grid),
            differences: Differences::default(),
        };
        let classes = original.classes.iter().chain([&original.others]);
        let mut late = Histogram::new(2).expect("two digits are allowed");
        late.auto(true);
        Self {
            sums: classes.map(|class| Mutex::new(sums(class))).collect(),
            grid,
            mode,
            late: Mutex::new(late),
            done: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            gave_up: AtomicU64::new(0),
            warm_up: AtomicU64::new(0),
        }
    }

    /// Counts a statement of the class at `place`, or of the others.
    pub(super) fn add(
        &self,
        place: Option<usize>,
        step: &Step,
        played: &Played,
        took: Option<Duration>,
    ) {
        self.done.fetch_add(1, Ordering::Relaxed);
        let others = self.sums.len() - 1;
        let Some(sums) = self.sums.get(place.unwrap_or(others)) else {
            return;
        };
        let statement = Statement {
            at_ns: step.at_ns,
            connection: 0,
            session: None,
            user: None,
            host: None,
            schema: None,
            command: Command::Query,
            sql: &step.text,
            sql_bytes: step.text.len() as u64,
            is_unseen: false,
            first_ns: None,
            total_ns: took.map(|took| took.as_nanos() as u64),
            lock_ns: None,
            rows_sent: Some(played.rows),
            rows_examined: None,
            rows_affected: Some(played.affected),
            bytes_in: None,
            bytes_out: Some(played.bytes),
            warnings: Some(played.warnings),
            error: played.error,
            checksum: None,
            statement: None,
            values: None,
        };
        let slot = self.grid.slot(step.at_ns);
        let mut sums = sums
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        sums.class.count(&statement, slot);
        sums.differences.compared += 1;
        sums.differences.add(step, played, self.mode);
    }

    /// Counts how much later than planned a statement was sent.
    pub(super) fn late(&self, by: Duration) {
        let mut late = self
            .late
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // It grows by itself: nothing is out of its range.
        let _ = late.record(by.as_micros() as u64);
    }

    /// Returns what came out.
    pub(super) fn end(self, original: &Summary) -> Outcome {
        let unpoisoned = |sums: Mutex<Sums>| {
            sums.into_inner()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
        };
        let mut total = original.total.fresh(&self.grid);
        let mut classes = Vec::new();
        let mut differences = Vec::new();
        for sums in self.sums.into_iter().map(unpoisoned) {
            total.merge(&sums.class);
            classes.push(sums.class);
            differences.push(sums.differences);
        }
        let others = classes.pop().unwrap_or_default();
        Outcome {
            summary: Summary {
                classes,
                total,
                others,
                folded: original.folded,
                left_out: 0,
                series_from_ns: original.series_from_ns,
                series_width_ns: original.series_width_ns,
            },
            differences,
            statements: self.done.into_inner(),
            warm_up: self.warm_up.into_inner(),
            lost: self.lost.into_inner(),
            lost_sessions: 0,
            loss: None,
            waits: self.waits.into_inner(),
            gave_up: self.gave_up.into_inner(),
            late_us: self
                .late
                .into_inner()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
            seconds: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn did(error: Option<u16>, rows: u64, affected: u64) -> Did {
        Did {
            total_ns: None,
            rows: Some(rows),
            affected: Some(affected),
            error,
            is_error_known: true,
            ..Did::default()
        }
    }

    fn now(error: Option<u16>, rows: u64, affected: u64) -> Played {
        Played {
            rows,
            affected,
            error,
            ..Played::default()
        }
    }

    #[test]
    fn outcomes_are_told_apart() {
        let unknown = Did::default();
        for (before, now, expected) in [
            (did(None, 1, 0), now(None, 1, 0), None),
            (did(None, 1, 0), now(None, 2, 0), Some(Difference::Rows)),
            (did(None, 0, 1), now(None, 0, 2), Some(Difference::Affected)),
            (
                did(None, 1, 0),
                now(Some(1146), 0, 0),
                Some(Difference::ErrorNew),
            ),
            (
                did(Some(1146), 0, 0),
                now(None, 1, 0),
                Some(Difference::ErrorGone),
            ),
            (
                did(Some(1146), 0, 0),
                now(Some(1062), 0, 0),
                Some(Difference::ErrorChanged),
            ),
            (did(Some(1146), 0, 0), now(Some(1146), 0, 0), None),
            (
                did(None, 1, 0),
                now(Some(1213), 0, 0),
                Some(Difference::Lock),
            ),
            (
                did(Some(1205), 0, 0),
                now(None, 1, 0),
                Some(Difference::Lock),
            ),
            (unknown, now(None, 7, 7), None),
            (
                unknown,
                now(Some(1146), 0, 0),
                Some(Difference::ErrorUnknown),
            ),
        ] {
            assert_eq!(difference(&before, &now), expected, "{before:?} {now:?}");
        }
    }

    #[test]
    fn rows_are_told_apart() {
        let sum = |in_order, any_order| Checksum {
            in_order,
            any_order,
        };
        let before = |returns| Did {
            checksum: Some(sum(1, 10)),
            returns,
            ..Did::default()
        };
        for (returns, now, expected) in [
            (Returns::Rows, sum(1, 10), Ok(None)),
            (Returns::Rows, sum(2, 20), Ok(Some(Difference::Values))),
            (Returns::Rows, sum(2, 10), Ok(Some(Difference::FreeOrder))),
            (Returns::Sorted, sum(2, 10), Ok(Some(Difference::Order))),
            (Returns::Varying, sum(2, 20), Err(Incomparable::Varying)),
            (Returns::OfServer, sum(2, 20), Err(Incomparable::OfServer)),
            (Returns::Ignored, sum(2, 20), Ok(None)),
        ] {
            assert_eq!(contents(&before(returns), now), expected, "{returns:?}");
        }
        let unseen = contents(&Did::default(), sum(1, 1));
        assert_eq!(unseen, Err(Incomparable::Unseen));
    }

    #[test]
    fn examples_have_no_secrets() {
        let text = sample(
            b"SELECT 1 FROM t WHERE password = 'hunter2'",
            Mode::default(),
        );
        assert_eq!(text, "SELECT 1 FROM t WHERE password = '***'");
    }
}
