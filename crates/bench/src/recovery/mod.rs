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
mod log;
mod make;
mod plot;
mod report;
mod request;
mod round;
pub(crate) mod run_directory;
mod steps;
mod storage;
mod tree;

pub use plot::plot;
pub use report::{Bar, Case, Mode, ReadsSeen, RecoveryReport, Round, StepTime, Timing, Warmed};
pub use request::{RecoveryRequest, WorkLocation};
pub use round::BeforeStart;

use evenkeel_op::{Error, Result, Run, Unit, open_files};
use make::Crashed;
use run_directory::RunDirectory;
use std::time::Instant;

/// Open files below which nothing of this works.
const OPEN_FILES_MIN: u64 = 4096;

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
    let run_directory = RunDirectory::prepare(&request.place)?;
    if !request.latency.is_zero() {
        // Rather now than after an hour of making tables.
        storage::probe(&run_directory)?;
    }
    // The order of starts only has to be without a pattern, and the same for one seed.
    let mut random = fastrand::Rng::with_seed(request.seed);
    let mut cases = Vec::new();
    for binary in &request.servers {
        for tables in &request.tables {
            let crashed = Crashed::made(&run_directory, binary, *tables, request, run)?;
            let mut order: Vec<Mode> = [Mode::Own, Mode::Prewarmed].repeat(request.repeat);
            random.shuffle(&mut order);
            let what = format!("{}, {tables} tables: starting", crashed.name());
            run.progress
                .phase(&what, Some(order.len() as u64), Unit::Items);
            let mut rounds = Vec::new();
            for mode in order {
                run.cancel.check()?;
                let round = round::of(mode, &crashed, &run_directory, request, before_start, run)?;
                rounds.push(round);
                run.progress.advance(1);
            }
            run.progress.end();
            cases.push(Case::of(&crashed, rounds));
            run_directory.forget(&crashed)?;
        }
    }
    Ok(RecoveryReport::of(request, cases, begun.elapsed()))
}

/// Lets this process and the servers it starts have as many open files as it may.
fn raise_open_files() -> Result<()> {
    match open_files::raise() {
        Some(few) if few < OPEN_FILES_MIN => Err(Error::refused(format!(
            "only {few} files may be open at once here, and {OPEN_FILES_MIN} are needed"
        ))
        .hint("raise the limit: ulimit -n 65536")),
        _ => Ok(()),
    }
}
