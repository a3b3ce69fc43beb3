//! Finds the generation to begin with, the history that continues from it, and where to stop.

use super::base::{Base, order};
use super::log::{self, ArchivedFile};
use super::report::PointReport;
use super::two_places::TimesGoBack;
use super::typed::Point;
use super::walk::{Verdict, Walk};
use super::way::{Leg, ways};
use crate::archive::{LogPlace, LogPosition};
use crate::facts::{DATA_ROOT, Facts, LOG_ROOT};
use crate::restore::bound_to_their_place;
use evenkeel_op::{Context, Error, Result, Run};
use evenkeel_repository::logs::{Logs, Timeline};
use evenkeel_repository::store::Lock;
use evenkeel_repository::{BlockContent, Location, Manifest, Repository};
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

/// A point, and the way there.
#[derive(Debug, Clone)]
pub struct PointPlan {
    /// The generation to restore.
    pub generation: u32,
    /// What is applied to it.
    pub report: PointReport,
    pub(crate) logs: Logs,
    /// Nothing that the plan needs is pruned while it is there.
    _held: Arc<dyn Lock>,
    /// Through which histories, in order. The last transaction is in the last one.
    pub(crate) legs: Vec<Leg>,
    /// Whether the transactions have GTIDs, and whether some have none.
    pub(crate) gtids: (bool, bool),
}

/// Finds the nearest generation before a point (or takes the one that is named) and the transactions
/// between. Reads the archive up to there; behind a time a bounded stretch more.
///
/// Errors: `Refused` for a point before the first generation, beyond the archive's end or behind a
/// gap, where no archived log continues from a generation, and for a time that is two places in the
/// log unless `go_back` says which.
pub fn find(
    repository: &Location,
    named: Option<u32>,
    point: &Point,
    go_back: TimesGoBack,
    run: Run<'_>,
) -> Result<PointPlan> {
    let opened = Repository::open(repository)?;
    let held: Arc<dyn Lock> = opened.hold(Duration::ZERO)?.into();
    let logs = opened.logs();
    let generations = candidates(&opened, named, run)?;
    let known = logs.timelines(None)?;
    if known.is_empty() {
        return Err(
            Error::refused("no binary log is archived in this repository")
                .hint("without binary logs you can restore a generation only as it is: remove --to")
                .hint(format!(
                    "archive them from now on: 'evenkeel binlog archive {}'",
                    opened.place()
                )),
        );
    }
    let mut reason = None;
    for generation in generations {
        run.cancel.check()?;
        let manifest = opened.manifest(generation)?;
        let base = match base(&opened, &manifest, &known, &logs) {
            Ok(base) => base,
            Err(error) => {
                reason.get_or_insert(error);
                continue;
            }
        };
        match judge(&logs, &base, &manifest, (point, go_back), &known, run)? {
            Verdict::Found(report, gtids, legs) => {
                return Ok(PointPlan {
                    generation,
                    report: *report,
                    logs,
                    _held: held,
                    legs,
                    gtids,
                });
            }
            Verdict::TooLate => {
                reason = Some(too_early(&manifest));
            }
            Verdict::NotThere(error) => {
                // A transaction may lie before this generation; nothing else may.
                let earlier = matches!(point, Point::After(_) | Point::Before(_));
                reason.get_or_insert(error);
                if !earlier {
                    break;
                }
            }
        }
    }
    Err(reason.unwrap_or_else(|| Error::refused("there is no generation to start from")))
}

/// Returns the generations to begin with, the newest first, or the one that is named. One whose manifest is
/// damaged is passed over: an earlier one leads to the same point.
fn candidates(repository: &Repository, named: Option<u32>, run: Run<'_>) -> Result<Vec<u32>> {
    if let Some(named) = named {
        // One that is not there is none to begin with.
        let all = repository.generations()?;
        let all = all.iter().map(|one| one.generation);
        return Ok(all.filter(|generation| *generation == named).collect());
    }
    let mut found = Vec::new();
    for one in repository.generations()?.iter().rev() {
        let generation = one.generation;
        match &one.damage {
            None => found.push(generation),
            Some(damage) => run
                .progress
                .warn(format!("skipping generation {generation}: {damage}")),
        }
    }
    Ok(found)
}

/// Makes the error for a point that no generation is old enough for; `oldest` is the oldest that was asked.
fn too_early(oldest: &Manifest) -> Error {
    let image = image_at(oldest).unwrap_or(oldest.created);
    Error::refused(format!(
        "the point is before generation {}, which has everything until {}",
        oldest.generation,
        image.strftime("%Y-%m-%d %H:%M:%S UTC")
    ))
    .hint(
        "name a later point, or restore that generation without --to: nothing older can be reached",
    )
}

/// Finds the history that continues from a generation.
fn base(
    repository: &Repository,
    manifest: &Manifest,
    known: &[Timeline],
    logs: &Logs,
) -> Result<Base> {
    let generation = manifest.generation;
    let facts = Facts::of(manifest)?;
    let Some(LogPlace { source, at }) = LogPlace::of(manifest)? else {
        return Err(Error::refused(format!(
            "generation {generation} has no binary log coordinates"
        )));
    };
    if let Some((_, place)) = bound_to_their_place(&facts).next() {
        return Err(Error::refused(format!(
            "generation {generation} has tables in {}, and crash recovery needs them at that \
             path: no server can apply transactions until they are there",
            place.display()
        ))
        .hint("restore it without --to, and apply the archived logs yourself"));
    }
    let mut reason = Error::refused(format!(
        "the archive has no binary log of {source} at {at}, the position of generation {generation}"
    ))
    .hint("'evenkeel binlog list' shows what is archived");
    for timeline in known.iter().filter(|one| one.source == source) {
        if !timeline.has(&at) {
            continue;
        }
        if is_same(repository, generation, &at, timeline, logs)? {
            let timeline = timeline.clone();
            return Ok(Base {
                generation,
                at,
                timeline,
            });
        }
        reason = Error::refused(format!(
            "the archived {} is not the log in generation {generation}, although the names \
             match: it is from another server, or from before or after a RESET MASTER",
            at.file
        ));
    }
    Err(reason)
}

/// Whether the log file in a generation begins as the archived one does.
fn is_same(
    repository: &Repository,
    generation: u32,
    at: &LogPosition,
    timeline: &Timeline,
    logs: &Logs,
) -> Result<bool> {
    let reader = repository.reader(generation)?;
    let mut record = None;
    for root in [DATA_ROOT, LOG_ROOT] {
        if record.is_none() {
            record = reader.find(&format!("{root}/{}", at.file))?;
        }
    }
    let Some(record) = record else {
        return Err(Error::refused(format!(
            "generation {generation} does not contain {}, so evenkeel cannot tell whether the \
             archived log continues it",
            at.file
        )));
    };
    let mut ours = Vec::new();
    reader.open_file(&record)?.read_leaf(0, |number, content| {
        let length = record.meta.block_length(number);
        let had = ours.len();
        if let BlockContent::Data(bytes) = content {
            ours.extend_from_slice(bytes);
        }
        ours.resize(had + length, 0);
        Ok(())
    })?;
    ours.truncate(usize::try_from(at.position).unwrap_or(usize::MAX));
    let mut theirs = vec![0; ours.len()];
    let mut file = ArchivedFile::open(logs, timeline, &at.file);
    if file.read_exact(&mut theirs).is_err() {
        return Ok(false);
    }
    // The server marks the file that it writes, in the flags of its first event.
    const IN_USE: usize = 4 + 17;
    for bytes in [&mut ours, &mut theirs] {
        if let Some(flags) = bytes.get_mut(IN_USE) {
            *flags &= !1;
        }
    }
    Ok(ours == theirs)
}

/// Tries each way from a generation to the point.
fn judge(
    logs: &Logs,
    base: &Base,
    manifest: &Manifest,
    (point, go_back): (&Point, TimesGoBack),
    known: &[Timeline],
    run: Run<'_>,
) -> Result<Verdict> {
    if is_too_late(base, manifest, point)? {
        return Ok(Verdict::TooLate);
    }
    let mut ways = ways(base, known);
    if matches!(point, Point::Position(_)) {
        // Another server's files have names of their own: a place is one of the generation's server.
        ways.retain(|way| way.len() == 1);
    }
    let mut reason = None;
    for way in ways {
        match walk(logs, base, way, (point, go_back), run)? {
            Verdict::NotThere(error) => {
                reason.get_or_insert(error);
            }
            other => return Ok(other),
        }
    }
    let none = || Error::refused("no archived log continues from this generation");
    Ok(Verdict::NotThere(reason.unwrap_or_else(none)))
}

/// Walks the archived logs from a generation's place to the point.
fn walk(
    logs: &Logs,
    base: &Base,
    mut legs: Vec<Leg>,
    (point, go_back): (&Point, TimesGoBack),
    run: Run<'_>,
) -> Result<Verdict> {
    let mut walk = Walk::new(base, point);
    for (number, leg) in legs.iter_mut().enumerate() {
        if let Err(error) = walk.enter(number, leg) {
            if walk.is_there() {
                break;
            }
            return Ok(Verdict::NotThere(error));
        }
        leg.known.clone_from(&walk.known);
        match walk_leg(logs, leg, &mut walk, run) {
            Ok(Step::Ends) => break,
            Ok(Step::GoesOn) => {}
            Ok(Step::Missing(error)) if !walk.is_there() => return Ok(Verdict::NotThere(error)),
            Ok(Step::Missing(_)) => break,
            // What is behind the point is only looked at.
            Err(error) if walk.is_there() && !run.cancel.is_cancelled() => {
                run.progress.warn(format!(
                    "the log after the point, which may contain earlier times, cannot be read: {}",
                    error.chain()
                ));
                break;
            }
            Err(error) => return Err(error),
        }
    }
    walk.verdict(base, legs, go_back)
}

enum Step {
    /// The point was found.
    Ends,
    GoesOn,
    /// The log has a gap, or is not what it was taken for.
    Missing(Error),
}

fn walk_leg(logs: &Logs, leg: &mut Leg, walk: &mut Walk<'_>, run: Run<'_>) -> Result<Step> {
    for (number, file) in log::files_from(&leg.timeline, &leg.from.file)
        .iter()
        .enumerate()
    {
        run.cancel.check()?;
        let from = LogPosition {
            file: (*file).to_owned(),
            position: if number == 0 { leg.from.position } else { 4 },
        };
        let until = leg.until.as_ref().filter(|until| until.file == *file);
        let until = until.map(|until| until.position);
        let read = log::read_file(logs, &leg.timeline, &from, until, |item| walk.take(item))?;
        if let Some(error) = walk.wrong.take() {
            return Ok(Step::Missing(error));
        }
        if read.enough {
            return Ok(Step::Ends);
        }
        if until.is_some() {
            leg.whole = Some(read.whole);
            return Ok(Step::GoesOn);
        }
        let mut gaps = leg.timeline.gaps.iter();
        if let Some(gap) = gaps.find(|gap| gap.after.file == *file) {
            let error = Error::refused(format!(
                "binary logs between {} and {}, before the point, are missing",
                gap.after, gap.before
            ));
            return Ok(Step::Missing(error.hint(
                "a point before the gap, or after a later generation, can be restored",
            )));
        }
    }
    Ok(Step::GoesOn)
}

/// Whether a generation may hold what was written after the point.
fn is_too_late(base: &Base, manifest: &Manifest, point: &Point) -> Result<bool> {
    Ok(match point {
        Point::Time(time) => {
            let image = image_at(manifest)?;
            // Logs have whole seconds.
            image.as_second() >= time.as_second()
        }
        Point::Position(place) => order(place) < order(&base.at),
        Point::After(_) | Point::Before(_) => false,
    })
}

/// Returns a time before which everything in a generation was written.
fn image_at(manifest: &Manifest) -> Result<jiff::Timestamp> {
    let facts = Facts::of(manifest)?;
    if let Some(at) = facts.image_at {
        return Ok(at);
    }
    let run = jiff::SignedDuration::try_from_secs_f64(facts.seconds)
        .context(|| "a generation's run has no length")?;
    let ended = manifest.created.checked_add(run);
    ended.context(|| "a run never ended")
}
