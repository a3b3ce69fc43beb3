//! One start that is timed.

use super::log::Watch;
use super::make::Crashed;
use super::report::{Mode, ReadsSeen, Round, Warmed};
use super::request::RecoveryRequest;
use super::run_directory::RunDirectory;
use super::storage::{Reached, Storage};
use super::{cold, steps, tree};
use evenkeel_op::{Context, Result, Run};
use std::path::Path;
use std::time::Instant;

/// What is done on a data directory before its server starts, so that it starts faster.
pub type BeforeStart<'a> = dyn Fn(&Path) -> Result<Warmed> + 'a;

/// Starts the server once.
pub(super) fn of(
    mode: Mode,
    crashed: &Crashed,
    run_directory: &RunDirectory,
    request: &RecoveryRequest,
    before_start: &BeforeStart<'_>,
    run: Run<'_>,
) -> Result<Round> {
    let (copy, latency) = (run_directory.copy(), request.latency);
    tree::put_back(&crashed.datadir(), &copy, run.cancel)?;
    match latency.is_zero() {
        true => cold::forget(&copy, run.cancel)?,
        // Cold because nobody has read it where it is about to be shown.
        false => cold::read(&copy, &crashed.binary.path, run.cancel)?,
    }
    let storage = Storage::of(&copy, latency, &run_directory.slow())?;
    let reached = || storage.reached(&Crashed::is_table);
    let begun = Instant::now();
    let warmed = match mode {
        Mode::Own => None,
        Mode::Prewarmed => Some(before_start(storage.path())?),
    };
    // Nothing is done before a start of the server's own, however long a busy machine takes for nothing.
    let prewarm = warmed.as_ref().map(|_| begun.elapsed());
    let before = reached();
    let launch = crashed.launch(storage.path(), run_directory);
    let started = Instant::now();
    let watch = Watch::start(&run_directory.run_dir(), started)?;
    let server = launch
        .start(crashed.deadline(latency), run.cancel)
        .context(|| format!("{} did not recover", crashed.name()))?;
    let start = started.elapsed();
    let after = reached();
    let lines = watch.lines();
    server.kill();
    storage.take_away()?;
    Ok(Round {
        mode,
        seconds: (prewarm.unwrap_or_default() + start).as_secs_f64(),
        prewarm_seconds: prewarm.map(|prewarm| prewarm.as_secs_f64()),
        start_seconds: start.as_secs_f64(),
        steps: steps::of(&lines, start),
        reads: seen(before, after),
        warmed,
    })
}

/// What the server alone asked for.
fn seen(before: Option<Reached>, after: Option<Reached>) -> Option<ReadsSeen> {
    let (before, after) = (before?, after?);
    Some(ReadsSeen {
        of_tables: after.of_tables.saturating_sub(before.of_tables),
        others: after.others.saturating_sub(before.others),
        bytes: after.bytes.saturating_sub(before.bytes),
    })
}
