//! One round of one method.

use super::load::{self, Servers};
use super::method::{From, Method};
use super::report::{Response, Round, Setting};
use super::run_directory::DATA;
use super::stage::Stage;
use super::{NONE, replica, restore, serve};
use crate::machine;
use evenkeel_op::{Error, ErrorKind, Result, Run};

/// Runs it. Failures are recorded in the round.
///
/// Errors: an interruption only.
pub(super) fn of(
    method: &Method,
    repetition: usize,
    stage: &Stage<'_>,
    run: Run<'_>,
) -> Result<Round> {
    let mut round = Round {
        method: method.name.clone(),
        repetition,
        ..Round::default()
    };
    let ended = measured(method, stage, run, &mut round);
    // What a backup left goes in any case, but a failure to remove it is not the method's.
    let cleared = stage.run_directory.clear_output();
    match ended {
        Err(error) if is_interruption(&error) => return Err(error),
        Err(error) => round.failed = Some(error.chain()),
        Ok(()) => (),
    }
    cleared.map(|()| round)
}

fn is_interruption(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::Terminated)
}

fn measured(method: &Method, stage: &Stage<'_>, run: Run<'_>, round: &mut Round) -> Result<()> {
    stage.run_directory.renew()?;
    let datadir = stage.run_directory.round(DATA);
    stage.baseline.loaded(&datadir, run.cancel)?;
    let source = serve::start(stage, &datadir, 1, run)?;
    if method.name == NONE {
        let facts = machine::server(&mut source.session()?)?.into_iter();
        round.settings = facts
            .map(|fact| Setting {
                name: fact.name,
                value: fact.value,
            })
            .collect();
    }
    let replica = match method.from {
        From::Source => None,
        From::Replica => Some(replica::follow(stage, &source, run)?),
    };
    let mut servers = Servers { source, replica };
    let (load, looped) = load::with(method, round.repetition, &mut servers, stage, run)?;
    // What it did is of no use any more; the next round has its own.
    drop(servers);
    round.tpmc = load.tpmc;
    round.stall_ms = load.longest_stall_ms;
    if let Some(new_order) = load.kinds.first() {
        round.new_order = Response {
            p50_ms: new_order.p50_ms,
            p95_ms: new_order.p95_ms,
            p99_ms: new_order.p99_ms,
            max_ms: new_order.max_ms,
        };
    }
    // The last one of the ramp-up ends a little after zero.
    let intervals = load.intervals.iter();
    round.new_orders_per_s = intervals
        .filter(|sample| sample.seconds > 0.0 && sample.at_s > sample.seconds / 2.0)
        .map(|sample| sample.new_orders as f64 / sample.seconds)
        .collect();
    round.command = looped.command;
    round.backups = looped.backups;
    if let Some(newest) = looped.newest.filter(|_| stage.request.restore) {
        round.restored = restore::of(method, &newest, stage, run)?;
    }
    Ok(())
}
