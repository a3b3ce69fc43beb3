//! Which way to back up disturbs a server least, and which is restored fastest.
//!
//! ```text
//! load TPC-C once ─► baseline
//!                       │ for each repetition, for each method, in random order
//!    copy it back ─► start ─► ramp up TPC-C ─► measure, the method in a loop
//!                                                 └─► restore the last backup ─► start ─► conditions
//! ```
//!
//! Each method is a child process of this one, by the command that the report shows; evenkeel's own too.
//! Operations of other crates are not called.
//!
//! | file | what |
//! |---|---|
//! | `request`, `stage` | what is asked, and what each round works with |
//! | `method` | the ways, as data |
//! | `run_directory`, `baseline` | where it happens, and what each round begins with |
//! | `able` | what of it can be done here |
//! | `serve`, `replica`, `account` | the private servers |
//! | `process` | commands, timed |
//! | `round`, `load`, `restore` | one round, its load, what became of its backup |
//! | `report`, `verdict` | what it came to, and who won |
//! | `page` | for people who were not there |

mod able;
mod account;
mod baseline;
mod load;
mod method;
mod page;
mod process;
mod replica;
mod report;
mod request;
mod restore;
mod round;
mod run_directory;
mod serve;
mod stage;
mod verdict;

pub use crate::recovery::WorkLocation;
pub use method::{From, Leaves, Method, NONE, Needs};
pub use page::{page, throughput};
pub use report::{MeasurementState, Once, Response, Restored, Round, ShowdownReport, Standing};
pub use request::{Filesystem, ServerSettings, ShowdownRequest};
pub use verdict::{Bar, Verdict};

use able::Able;
use baseline::Baseline;
use evenkeel_op::{Error, ErrorKind, Result, Run, Unit, units};
use run_directory::RunDirectory;
use stage::Stage;
use std::time::{Duration, Instant};

/// Measures all methods.
///
/// A method that fails is reported, and the others continue.
///
/// Errors: `Usage` without the undisturbed server among the methods; `Refused` when there is too little
/// space, or no right to make a filesystem; `Busy` when another run works there; those of a server that
/// does not start, and of the undisturbed round.
pub fn measure(request: &ShowdownRequest, run: Run<'_>) -> Result<ShowdownReport> {
    let begun = Instant::now();
    if request.methods.iter().all(|method| method.name != NONE) || request.repeat == 0 {
        return Err(Error::usage(
            "without an undisturbed round there is nothing to compare with",
        ));
    }
    let run_directory =
        RunDirectory::prepare(&request.place, request.filesystem, request.image_bytes)?;
    run_directory.renew()?;
    let able = Able::look(request, &run_directory)?;
    let standing: Vec<Option<String>> = request.methods.iter().map(|m| able.lacks(m)).collect();
    for (method, lacks) in request.methods.iter().zip(&standing) {
        if let Some(lacks) = lacks {
            run.progress
                .warn(format!("{} is left out: {lacks}", method.name));
        }
    }
    let baseline = Baseline::made(&run_directory, request, run)?;
    let stage = Stage {
        request,
        run_directory: &run_directory,
        baseline: &baseline,
    };
    let rounds = rounds(&stage, &standing, run)?;
    Ok(ShowdownReport::of(
        &stage,
        &standing,
        rounds,
        begun.elapsed(),
    ))
}

/// Every repetition has each method once, in an order of its own: what drifts falls on all alike.
fn rounds(stage: &Stage<'_>, left_out: &[Option<String>], run: Run<'_>) -> Result<Vec<Round>> {
    let request = stage.request;
    let methods = request.methods.iter().zip(left_out);
    let methods: Vec<&Method> = methods
        .filter_map(|(method, lacks)| lacks.is_none().then_some(method))
        .collect();
    let all = methods.len() * request.repeat;
    let mut random = fastrand::Rng::with_seed(request.seed);
    let mut rounds: Vec<Round> = Vec::new();
    let mut took = Vec::new();
    for repetition in 0..request.repeat {
        let mut order = methods.clone();
        random.shuffle(&mut order);
        for method in order {
            run.cancel.check()?;
            if rounds
                .iter()
                .any(|round| round.method == method.name && round.failed.is_some())
            {
                continue;
            }
            let left = time_left(request, all - rounds.len(), &took);
            let what = format!(
                "round {} of {all}, {left}: {}",
                rounds.len() + 1,
                method.name
            );
            let begun = Instant::now();
            run.progress.phase(&what, None, Unit::Items);
            let round = round::of(method, repetition, stage, run)?;
            run.progress.end();
            took.push(begun.elapsed());
            tell(&round, run);
            if let Some(why) = round.failed.as_ref().filter(|_| method.name == NONE) {
                let noted = format!("the undisturbed round failed: {why}");
                return Err(Error::new(ErrorKind::Failed, noted));
            }
            rounds.push(round);
        }
    }
    Ok(rounds)
}

/// Says how long it will still take, by what it took so far.
fn time_left(request: &ShowdownRequest, rounds: usize, took: &[Duration]) -> String {
    let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
    // Whole seconds: nobody knows it better.
    let whole = |time: Duration| units::duration(Duration::from_secs(time.as_secs()));
    match u32::try_from(took.len()) {
        Ok(some) if some > 0 => {
            let mean = took.iter().sum::<Duration>() / some;
            format!("about {} left", whole(mean.saturating_mul(rounds)))
        }
        _ => {
            let least = request.ramp_up + request.measure;
            format!("more than {} left", whole(least.saturating_mul(rounds)))
        }
    }
}

fn tell(round: &Round, run: Run<'_>) {
    let name = &round.method;
    match &round.failed {
        Some(why) => run.progress.warn(format!("{name} failed: {why}")),
        None => {
            let restored = round.restored.as_ref().map_or(String::new(), |restored| {
                let seconds = Duration::from_secs_f64(restored.seconds);
                format!(", restored in {}", units::duration(seconds))
            });
            run.progress.note(format!(
                "{name}: {:.0} TpmC, {}{restored}",
                round.tpmc,
                units::count(round.backups.len(), "backup")
            ));
        }
    }
}
