//! How long a server takes to start after a crash, with many tables, on storage that takes its time.
//!
//! ```text
//! make tables ─► change some rows ─► SIGKILL ─► crashed data directory, kept as it is
//!                                                     │ for each round, in random order
//!        put the copy back ─► cold, behind a delay ─► prewarm or not ─► start, watched ─► kill
//! ```
//!
//! All starts of a case recover from the same bytes. What is timed ends when the server greets a
//! client; what is done before it starts, to make it start faster, is timed too.

mod cold;
pub(crate) mod ground;
mod log;
mod make;
mod plot;
mod report;
mod round;
mod steps;
mod storage;
mod tree;

pub use plot::plot;
pub use report::{Bar, Case, Mode, ReadsSeen, RecoveryReport, Round, StepTime, Timing, Warmed};

use crate::Run;
use evenkeel_op::{Error, Result, Unit};
use evenkeel_server::launch::Binary;
use ground::Ground;
use make::Crashed;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Open files below which nothing of this works.
const OPEN_FILES_MIN: u64 = 4096;

/// What is done on a data directory before its server starts, so that it starts faster.
pub type BeforeStart<'a> = dyn Fn(&Path) -> Result<Warmed> + 'a;

/// Where all of it happens.
#[derive(Debug, Clone)]
pub enum Place {
    /// In a new directory below this one, which is removed at the end.
    Below(PathBuf),
    /// In this directory, where crashed data directories stay for the next run.
    Kept(PathBuf),
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct RecoveryRequest {
    /// Each of these servers,
    pub servers: Vec<Binary>,
    /// with each of these numbers of tables.
    pub tables: Vec<usize>,
    /// How many of a hundred tables have changes in the redo log that are not in their files.
    pub changed_percent: f64,
    /// How long a read of the data directory takes, and a write that is waited for; none: the
    /// storage as it is.
    pub latency: Duration,
    /// Starts of each kind.
    pub repeat: usize,
    /// Decides the order of starts.
    pub seed: u64,
    /// Where.
    pub place: Place,
}

/// Measures starts after a crash.
///
/// Errors: `Refused` when there is too little space, or no way to emulate storage here; `Busy` when
/// another run works in the same directory; those of a server that does not start.
pub fn measure(
    request: &RecoveryRequest,
    before_start: &BeforeStart<'_>,
    run: Run<'_>,
) -> Result<RecoveryReport> {
    let begun = Instant::now();
    raise_open_files()?;
    let ground = Ground::prepare(&request.place)?;
    if !request.latency.is_zero() {
        // Rather now than after an hour of making tables.
        storage::probe(&ground)?;
    }
    // The order of starts only has to be without a pattern, and the same for one seed.
    let mut random = fastrand::Rng::with_seed(request.seed);
    let mut cases = Vec::new();
    for binary in &request.servers {
        for tables in &request.tables {
            let crashed = Crashed::made(&ground, binary, *tables, request, run)?;
            let mut order: Vec<Mode> = [Mode::Own, Mode::Prewarmed].repeat(request.repeat);
            random.shuffle(&mut order);
            let what = format!("{}, {tables} tables: starting", crashed.name());
            run.progress
                .phase(&what, Some(order.len() as u64), Unit::Items);
            let mut rounds = Vec::new();
            for mode in order {
                run.cancel.check()?;
                let round = round::of(mode, &crashed, &ground, request, before_start, run)?;
                rounds.push(round);
                run.progress.advance(1);
            }
            run.progress.end();
            cases.push(Case::of(&crashed, rounds));
            ground.forget(&crashed)?;
        }
    }
    Ok(RecoveryReport::of(request, cases, begun.elapsed()))
}

/// Lets this process and the servers it starts have as many open files as it may.
fn raise_open_files() -> Result<()> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where it may not be raised, what there is may do.
    let _ = setrlimit(Resource::Nofile, limit);
    match getrlimit(Resource::Nofile).current {
        Some(few) if few < OPEN_FILES_MIN => Err(Error::refused(format!(
            "only {few} files may be open at once here, and {OPEN_FILES_MIN} are needed"
        ))
        .hint("raise the limit: ulimit -n 65536")),
        _ => Ok(()),
    }
}
