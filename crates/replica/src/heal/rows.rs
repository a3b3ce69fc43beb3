//! Rows that differ, made those of the source: planned, carried out if nothing has changed, and compared.

use super::journal::{HealEvent, HealOutcome, now, rows_directory};
use super::known::key_of;
use super::past::Past;
use super::prove::{self, Proof, is_stop};
use super::repair::Work;
use crate::repair::{ExecuteRequest, Made, PlanRequest, execute, make_plan, may_be_committed};
use evenkeel_op::own_directory::make_unshared;
use evenkeel_op::{Error, ErrorKind, Result, units};
use std::path::Path;

/// Repairs them.
///
/// Errors: those of a plan and of carrying it out.
pub(super) fn repair(work: &mut Work<'_>) -> Result<Proof> {
    let request = work.job.request;
    let journal = request.journal.as_deref().unwrap_or(Path::new("."));
    let directory = rows_directory(journal);
    make_unshared(&directory)?;
    let plan = directory.join(format!("{}.plan", work.id));
    let channel = work.job.channel()?.name.clone();
    let comparison = prove::comparison(work.job.replica(), work.job.source()?, &channel, request);
    work.step("compare it with its source, and write down the rows that differ")?;
    let wanted = PlanRequest {
        comparison: comparison.clone(),
        rows_max: request.rows_max,
        output: plan.clone(),
    };
    let made = make_plan(&wanted, work.run)?;
    if made.plan.rows() == 0 {
        return Ok(nothing_to_do(&made));
    }
    refuse_again(work, &made)?;
    let tables = tables_of(&made);
    work.journal.add(HealEvent::Rows {
        id: work.id.to_owned(),
        plan: plan.display().to_string(),
        hash: made.plan.hash.clone(),
        tables: tables.clone(),
    })?;
    let rows = units::count(made.plan.rows(), "row");
    work.step(&format!(
        "make {rows} of {} the source's",
        tables.join(", ")
    ))?;
    fail::fail_point!("heal::rows_planned");
    let carried = ExecuteRequest {
        comparison,
        plan,
        journal: directory,
    };
    let run = work.run;
    let done = match execute(&carried, &mut || work.may_go_on(), run) {
        Err(error) if was_committed(&error, &carried, &made) => {
            return Ok(Proof::new(HealOutcome::NotCompared, error.chain()));
        }
        done => done?,
    };
    let proof = prove::verdict(&done.compared);
    let undo = done
        .id
        .map_or_else(String::new, |id| format!("; to undo it: {id}"));
    let left = done.not_planned.len();
    let all = format!("{rows} of {}; {}{undo}", tables.join(", "), proof.why);
    Ok(match (proof.outcome, left) {
        (HealOutcome::Repaired, 1..) => Proof::new(
            HealOutcome::Differs,
            format!("{all}; {left} tables were left alone: evenkeel replica repair names them"),
        ),
        (outcome, _) => Proof::new(outcome, all),
    })
}

/// Whether a repair that failed was committed, or nobody knows whether it was.
fn was_committed(error: &Error, carried: &ExecuteRequest, made: &Made) -> bool {
    let is_unknown = || may_be_committed(&carried.journal, &made.plan.hash).unwrap_or(true);
    !is_stop(error.kind()) && (error.kind() == ErrorKind::Partial || is_unknown())
}

fn tables_of(made: &Made) -> Vec<String> {
    let each = made.plan.tables.iter();
    each.map(|table| format!("{}.{}", table.database, table.table))
        .collect()
}

fn nothing_to_do(made: &Made) -> Proof {
    match made.plan.not_planned.first() {
        Some(left) => Proof::new(
            HealOutcome::Failed,
            format!(
                "{}.{} is not repaired: {}",
                left.database, left.table, left.why
            ),
        ),
        None => prove::verdict(&made.compared),
    }
}

/// Refuses tables that were repaired within a day: whatever writes there does so again.
fn refuse_again(work: &Work<'_>, made: &Made) -> Result<()> {
    let past = Past::of(work.journal.records(), now());
    let key = key_of(work.job.facts()?);
    let again = past.tables_of_today(&key);
    match tables_of(made).into_iter().find(|table| again.contains(table)) {
        None => Ok(()),
        Some(table) => Err(Error::refused(format!(
            "rows of {table} on this replica were repaired within the last day: something writes there, and does so again"
        ))
        .hint("find out what: read_only that is off, events, triggers, statements that are unsafe")),
    }
}
