//! Readers that compare pieces of tables until none is left, or their views are too old.

use super::align::{Pair, View};
use super::catalog::ComparableTable;
use super::report::TableVerdict;
use super::request::{ChecksumLimits, TableName};
use super::rows::{self, Different, both};
use super::sql::{Range, Statements};
use super::state::{Stage, TableProgress};
use evenkeel_op::{Error, Result, Run, workers};
use evenkeel_server::throttle::Throttle;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Rows of the first piece of a table.
const ROWS_FIRST: u64 = 1000;
/// A piece may have.
const ROWS_MAX: u64 = 200_000;
/// By how much a piece may be larger than the one before.
const GROWTH: u64 = 4;
/// Rows of a piece whose rows are compared one by one when its sums differ.
const ROWS_OF_SUSPECTS: u64 = 5000;
/// How often a table begins again after its definition changed under a view.
const RESTARTS_MAX: u32 = 3;
/// How often sums that differ are asked for again where a read may be wrong once.
const AGAIN: usize = 3;
/// How often the state is written down.
const NOTED_EVERY: Duration = Duration::from_secs(5);

/// A table in work.
pub(super) struct Job {
    pub(super) name: TableName,
    statements: Statements,
    work: Mutex<JobWork>,
}

struct JobWork {
    progress: TableProgress,
    /// Pieces that somebody is comparing.
    in_flight: Vec<Range>,
    rows_wanted: u64,
    /// Nothing more is done with these views.
    rests: bool,
}

/// What a piece came to.
struct Piece {
    rows: u64,
    rows_on_replica: u64,
    is_equal: bool,
    different: Different,
    took: Duration,
}

impl Job {
    pub(super) fn new(table: &ComparableTable, backwards: bool, progress: TableProgress) -> Self {
        let rows_wanted = match progress.stage {
            Stage::Second => ROWS_OF_SUSPECTS,
            Stage::First | Stage::Done => ROWS_FIRST,
        };
        Self {
            name: table.name.clone(),
            statements: Statements::of(table, backwards),
            work: Mutex::new(JobWork {
                progress,
                in_flight: Vec::new(),
                rows_wanted,
                rests: false,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, JobWork> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how far it is; what is being compared counts as not done.
    pub(super) fn progress(&self) -> TableProgress {
        let work = self.lock();
        let mut progress = work.progress.clone();
        progress.todo.extend(work.in_flight.iter().cloned());
        progress
    }

    /// Cuts the next piece off.
    fn take(&self, source: &mut View) -> Result<Option<(Range, Stage)>> {
        let mut work = self.lock();
        let work = &mut *work;
        if work.rests {
            return Ok(None);
        }
        let Some(front) = work.progress.todo.first_mut() else {
            return Ok(None);
        };
        let bound = match self.statements.can_cut() {
            true => source.one_row(&self.statements.bound(front, work.rows_wanted))?,
            false => None,
        };
        let bound = bound.map(|row| self.statements.literals(&row));
        let bound = bound.transpose()?.flatten();
        let piece = match bound {
            Some(bound) => {
                let bound = Some(bound);
                let after = std::mem::replace(&mut front.after, bound.clone());
                Range {
                    after,
                    up_to: bound,
                }
            }
            None => work.progress.todo.remove(0),
        };
        work.in_flight.push(piece.clone());
        Ok(Some((piece, work.progress.stage)))
    }

    /// Counts a piece that was compared.
    fn done(&self, range: Range, piece: Piece, limits: &ChecksumLimits, named_max: usize) {
        let mut work = self.lock();
        let work = &mut *work;
        if work.rests {
            return;
        }
        work.in_flight.retain(|one| *one != range);
        let progress = &mut work.progress;
        if progress.stage == Stage::First {
            progress.found.rows += piece.rows;
            progress.found.rows_on_replica += piece.rows_on_replica;
            progress.found.chunks += 1;
            if !piece.is_equal {
                progress.suspect(range);
            }
            let wanted = rows_wanted(work.rows_wanted, piece.took, limits.chunk_time);
            work.rows_wanted = wanted;
        } else {
            let (found, different) = (&mut progress.found, piece.different);
            found.missing += different.missing;
            found.extra += different.extra;
            found.changed += different.changed;
            found.differences.extend(different.named);
            found.differences.sort();
            found.differences.truncate(named_max);
        }
        if progress.todo.is_empty() && work.in_flight.is_empty() {
            // The second look needs other views.
            progress.advance();
            work.rests = true;
        }
    }

    /// Takes an error about this table.
    fn failed(&self, error: &Error) {
        let mut work = self.lock();
        if work.rests {
            return;
        }
        work.in_flight.clear();
        work.rests = true;
        let progress = &mut work.progress;
        if is_about_definition(error) && progress.restarts < RESTARTS_MAX {
            progress.restart(&self.name);
            return;
        }
        let why = match is_about_definition(error) {
            true => "it was altered, truncated or dropped again and again meanwhile".to_owned(),
            false => error.chain(),
        };
        // What is known to differ stays so, whatever became of the rest.
        let verdict = match progress.found.different() {
            0 => TableVerdict::NotCompared,
            _ => TableVerdict::Differs,
        };
        progress.end(verdict, Some(why));
    }
}

/// Returns how many rows the next piece should have.
fn rows_wanted(now: u64, took: Duration, target: Duration) -> u64 {
    let factor = target.as_secs_f64() / took.as_secs_f64().max(1e-6);
    let wanted = (now as f64 * factor) as u64;
    wanted.clamp(now / GROWTH, now * GROWTH).clamp(1, ROWS_MAX)
}

/// "ComparableTable definition has changed", "doesn't exist", "unknown column", "key doesn't exist", "no such table in engine".
fn is_about_definition(error: &Error) -> bool {
    let text = error.chain();
    ["1412", "1146", "1054", "1176", "1932", "1051"]
        .iter()
        .any(|code| text.contains(&format!("ERROR {code} ")))
}

/// What all readers share.
pub(super) struct Shared<'a> {
    pub(super) jobs: &'a [Job],
    pub(super) limits: &'a ChecksumLimits,
    pub(super) named_max: usize,
    /// Of the source with all replicas, and of the replica itself.
    pub(super) throttles: [&'a Throttle; 2],
    /// When the views were made.
    pub(super) since: Instant,
    /// Writes down how far all tables are.
    pub(super) note: &'a (dyn Fn() -> Result<()> + Sync),
    pub(super) run: Run<'a>,
}

/// Compares until no piece is left for these views, or they are too old. What fails for one table ends that table; a
/// lost connection ends all.
pub(super) fn compare_all(pairs: Vec<Pair>, shared: &Shared<'_>) -> Result<()> {
    let stop = AtomicBool::new(false);
    let noted = Mutex::new(Instant::now());
    std::thread::scope(|scope| {
        let readers: Vec<_> = pairs
            .into_iter()
            .map(|pair| {
                let (stop, noted) = (&stop, &noted);
                scope.spawn(move || {
                    let ended = read(pair, shared, stop, noted);
                    if ended.is_err() {
                        stop.store(true, Ordering::SeqCst);
                    }
                    ended
                })
            })
            .collect();
        workers::first_error(Ok(()), readers)
    })?;
    (shared.note)()
}

fn read(
    mut pair: Pair,
    shared: &Shared<'_>,
    stop: &AtomicBool,
    noted: &Mutex<Instant>,
) -> Result<()> {
    let mut is_first = true;
    loop {
        shared.run.cancel.check()?;
        // One piece at least: else nothing would ever be done.
        let is_old = shared.since.elapsed() >= shared.limits.snapshot && !is_first;
        if stop.load(Ordering::SeqCst) || is_old {
            return Ok(());
        }
        for throttle in shared.throttles {
            throttle.wait(stop, shared.run.progress, shared.run.cancel)?;
        }
        let _reading = shared.throttles.map(Throttle::reading);
        let Some((job, range, stage)) = next(&mut pair, shared)? else {
            return Ok(());
        };
        is_first = false;
        match compare(&mut pair, job, &range, stage, shared.named_max) {
            Ok(piece) => {
                shared.run.progress.advance(piece.rows);
                job.done(range, piece, shared.limits, shared.named_max);
            }
            Err(error) => give_up(&mut pair, job, error, shared)?,
        }
        let is_due = noted.try_lock().is_ok_and(|mut at| {
            at.elapsed() >= NOTED_EVERY && {
                *at = Instant::now();
                true
            }
        });
        if is_due {
            (shared.note)()?;
        }
    }
}

/// Returns the next piece of the first table that has one.
fn next<'a>(pair: &mut Pair, shared: &'a Shared<'_>) -> Result<Option<(&'a Job, Range, Stage)>> {
    for job in shared.jobs {
        match job.take(&mut pair.source) {
            Ok(Some((range, stage))) => return Ok(Some((job, range, stage))),
            Ok(None) => {}
            Err(error) => give_up(pair, job, error, shared)?,
        }
    }
    Ok(None)
}

/// Gives a table up, or everything when a connection was lost or the user wants an end.
fn give_up(pair: &mut Pair, job: &Job, error: Error, shared: &Shared<'_>) -> Result<()> {
    shared.run.cancel.check()?;
    let are_there = pair.source.settle().is_ok() && pair.replica.settle().is_ok();
    if !are_there {
        return Err(error);
    }
    job.failed(&error);
    Ok(())
}

fn compare(
    pair: &mut Pair,
    job: &Job,
    range: &Range,
    stage: Stage,
    named_max: usize,
) -> Result<Piece> {
    let begun = Instant::now();
    let sql = job.statements.sums(range);
    let sums = |view: &mut View| {
        view.one_row(&sql)?
            .ok_or_else(|| Error::failed("a sum has no row"))
    };
    let (mut here, mut there) = both(pair, sums)?;
    let took = begun.elapsed();
    for _ in 0..AGAIN {
        if here == there || !job.statements.may_be_wrong_once() {
            break;
        }
        (here, there) = both(pair, sums)?;
    }
    let is_equal = here == there;
    let count = |sums: &[String]| {
        let count = sums.first().and_then(|count| count.parse().ok());
        count.ok_or_else(|| Error::failed("a count is no number"))
    };
    let counts = (count(&here)?, count(&there)?);
    let mut different = Different::default();
    if !is_equal && stage == Stage::Second {
        different = rows::different(pair, &job.statements, range, counts, named_max)?;
        if different.count() == 0 {
            return Err(Error::failed(
                "sums differ, but no row does: two different rows have the same number",
            ));
        }
    }
    Ok(Piece {
        rows: counts.0,
        rows_on_replica: counts.1,
        is_equal,
        different,
        took,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_grow_and_shrink_towards_their_time() {
        let target = Duration::from_millis(500);
        assert_eq!(rows_wanted(1000, Duration::from_millis(1), target), 4000);
        assert_eq!(rows_wanted(1000, Duration::from_millis(250), target), 2000);
        assert_eq!(rows_wanted(1000, Duration::from_secs(60), target), 250);
        assert_eq!(rows_wanted(1, Duration::from_secs(60), target), 1);
        assert_eq!(
            rows_wanted(ROWS_MAX, Duration::from_millis(1), target),
            ROWS_MAX
        );
    }

    #[test]
    fn only_changed_definitions_begin_again() {
        assert!(is_about_definition(&Error::failed("ERROR 1412 (HY000): x")));
        assert!(!is_about_definition(&Error::failed(
            "ERROR 1142 (42000): x"
        )));
    }
}
