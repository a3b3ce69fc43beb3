//! A transaction that the SQL thread cannot apply for its rows: they are made as its events need them, one event after
//! the other, until it is applied.

use super::journal::{HealOutcome, rows_directory};
use super::prove::{self, Proof, is_stop};
use super::repair::{LOOK, STEP, Work};
use crate::repair::{EventPlan, EventRequest, may_be_committed, repair_event};
use evenkeel_op::{Error, ErrorKind, Result, units};
use evenkeel_server::replication::{Channel, ReplicaLease, ThreadState};
use std::cell::RefCell;
use std::path::Path;
use std::time::Instant;

/// More events of a replica are not made applicable one by one.
const EVENTS_MAX: usize = 20;

/// Repairs them, and compares.
///
/// Errors: those of [`repair_event`]; what fails after something was committed is in the answer.
pub(super) fn repair(work: &mut Work<'_>) -> Result<Proof> {
    let mut done = Vec::new();
    match apply(work, &mut done).and_then(|()| work.prove()) {
        Ok(proof) => Ok(Proof::new(proof.outcome, said(&done, &proof.why))),
        Err(error) if done.is_empty() || is_stop(error.kind()) => Err(error),
        Err(error) => Ok(Proof::new(
            HealOutcome::NotCompared,
            said(&done, &error.chain()),
        )),
    }
}

fn said(done: &[String], why: &str) -> String {
    match done {
        [] => why.to_owned(),
        done => format!("{}; {why}", done.join("; ")),
    }
}

/// Makes rows as events need them until the transaction is applied; adds to `done` what was done.
fn apply(work: &mut Work<'_>, done: &mut Vec<String>) -> Result<()> {
    let mut was_nothing = false;
    for _ in 0..EVENTS_MAX {
        let then = work.job.channel()?.executed.clone();
        let is_nothing = !one_event(work, done)?;
        if is_nothing && was_nothing {
            return Err(Error::refused(
                "the event still fails, although its rows are as it needs them",
            ));
        }
        was_nothing = is_nothing;
        fail::fail_point!("heal::event_repaired");
        let now = start(work)?;
        if now.applier == ThreadState::Running
            || now.executed != then && now.applier_error.is_none()
        {
            return Ok(());
        }
    }
    Err(Error::refused(format!(
        "{EVENTS_MAX} events in a row needed other rows: that is no accident of some rows"
    ))
    .hint("find out what writes there, and rebuild the replica"))
}

/// Makes the rows of the event that failed as it needs them; returns whether there was anything to do.
fn one_event(work: &mut Work<'_>, done: &mut Vec<String>) -> Result<bool> {
    let request = work.job.request;
    let journal = rows_directory(request.journal.as_deref().unwrap_or(Path::new(".")));
    let channel = work.job.channel()?.name.clone();
    let source = work.job.source()?;
    let wanted = EventRequest {
        comparison: prove::comparison(work.job.replica(), source, &channel, request),
        source: source.options.clone(),
        channel,
        journal,
        rows_max: request.rows_max,
    };
    same_server(work)?;
    work.step("read the event that failed from the source's binary log")?;
    let run = work.run;
    let (work, planned) = (RefCell::new(work), RefCell::new(None::<EventPlan>));
    let repaired = repair_event(
        &wanted,
        &mut |plan| {
            *planned.borrow_mut() = Some(plan.clone());
            let mut work = work.borrow_mut();
            work.step(&words_of(plan))?;
            fail::fail_point!("heal::rows_planned");
            Ok(())
        },
        &mut || work.borrow_mut().may_go_on(),
        run,
    );
    match repaired {
        Ok(None) => Ok(false),
        Ok(Some(repaired)) => {
            let words = words_of(&repaired.plan);
            done.push(format!("{words} (to undo it: {})", repaired.id));
            Ok(true)
        }
        Err(error) => {
            let plan = planned.into_inner();
            let is_unknown = plan.is_some_and(|plan| {
                let unknown = may_be_committed(&wanted.journal, &plan.hash);
                error.kind() == ErrorKind::Partial || unknown.unwrap_or(true)
            });
            if is_unknown && !is_stop(error.kind()) {
                done.push("the rows of the event may have been changed".to_owned());
            }
            Err(error)
        }
    }
}

/// Says what is done, for people.
fn words_of(plan: &EventPlan) -> String {
    let rows = |count: usize| units::count(count, "row");
    match (plan.inserts, plan.deletes) {
        (inserts, 0) => format!("put {} of {} back", rows(inserts), plan.table),
        (_, deletes) => format!("take {} of {} out of the way", rows(deletes), plan.table),
    }
}

/// Takes the lease of the replica, if it is the server that was looked at, and still stands there.
fn same_server(work: &Work<'_>) -> Result<(ReplicaLease, Channel)> {
    let mut replica = ReplicaLease::take(&work.job.replica().options)?;
    let then = work.job.channel()?;
    let now = replica.channel(&then.name)?;
    let is_same = work.is_behind(&mut replica)?
        && (&now.host, now.port, &now.executed) == (&then.host, then.port, &then.executed)
        && now.applier == ThreadState::Stopped;
    // MariaDB by GTID deletes relay logs when a thread starts while both stand.
    match is_same && now.receiver != ThreadState::Stopped {
        true => Ok((replica, now)),
        false => Err(Error::refused(
            "it has changed since it was looked at, so nothing more was done",
        )),
    }
}

/// Starts the SQL thread, and waits until it has applied something or has failed; returns how it is then.
fn start(work: &mut Work<'_>) -> Result<Channel> {
    let until = Instant::now() + work.job.request.settle;
    let (mut replica, then) = same_server(work)?;
    for sql in work.job.statements() {
        work.step(&sql)?;
        replica.run(&sql, STEP)?;
    }
    fail::fail_point!("heal::started");
    loop {
        work.run.cancel.check()?;
        let now = replica.channel(&then.name)?;
        let has_failed = now.applier == ThreadState::Stopped && now.applier_error.is_some();
        if has_failed || now.executed != then.executed || Instant::now() >= until {
            return Ok(now);
        }
        std::thread::sleep(LOOK);
    }
}
