//! `replica repair`.

use super::named::comparison;
use crate::args::ReplicaRepair;
use crate::settings;
use crate::show::Ui;
use crate::show::answers::{RepairExecutedAnswer, RepairPlannedAnswer, RepairUndoneAnswer};
use evenkeel_op::paths::absolute;
use evenkeel_op::{Error, Result, Run, exit};
use evenkeel_replica::checksum::TableVerdict;
use evenkeel_replica::repair::{
    ExecuteRequest, PlanRequest, UndoRequest, execute, make_plan, undo,
};
use std::path::{Path, PathBuf};

/// Of `replica`, as messages name it.
const VERB: &str = "repair";
/// The journal, below a state directory.
const JOURNAL: &str = "repairs";

/// Runs the command.
pub(super) fn run(args: &ReplicaRepair, ui: &Ui) -> Result<u8> {
    match (&args.output, &args.execute, &args.undo) {
        (Some(output), _, _) => plan(args, output, ui),
        (_, Some(plan), _) => carry_out(args, plan, ui),
        (_, _, Some(id)) => take_back(args, id, ui),
        (None, None, None) => Err(Error::usage("--output, --execute or --undo is missing")),
    }
}

fn plan(args: &ReplicaRepair, output: &Path, ui: &Ui) -> Result<u8> {
    let request = PlanRequest {
        comparison: comparison(&args.comparison, VERB, ui)?,
        rows_max: usize::try_from(args.max_rows).unwrap_or(usize::MAX),
        output: output.to_owned(),
    };
    let made = make_plan(&request, during(ui))?;
    let code = match (made.plan.not_planned.is_empty(), made.plan.rows()) {
        (false, _) => exit::PARTIAL,
        (true, 0) if made.compared.verdict() == TableVerdict::NotCompared => exit::PARTIAL,
        (true, 0) => exit::DONE,
        (true, _) => exit::DIFFERS,
    };
    ui.answer(&RepairPlannedAnswer::new(&made, output));
    Ok(code)
}

fn carry_out(args: &ReplicaRepair, plan: &Path, ui: &Ui) -> Result<u8> {
    let journal = journal(args)?;
    let request = ExecuteRequest {
        comparison: comparison(&args.comparison, VERB, ui)?,
        plan: plan.to_owned(),
        journal: absolute(&journal),
    };
    let done = execute(&request, &mut || Ok(()), during(ui))?;
    let code = match done.compared.verdict() {
        TableVerdict::Differs => exit::DIFFERS,
        TableVerdict::NotCompared => exit::PARTIAL,
        _ if !done.not_planned.is_empty() => exit::PARTIAL,
        TableVerdict::Equal | TableVerdict::LeftOut => exit::DONE,
    };
    ui.answer(&RepairExecutedAnswer::new(done, &journal));
    Ok(code)
}

fn take_back(args: &ReplicaRepair, id: &str, ui: &Ui) -> Result<u8> {
    let journal = journal(args)?;
    let request = UndoRequest {
        comparison: comparison(&args.comparison, VERB, ui)?,
        journal: absolute(&journal),
        id: id.to_owned(),
    };
    let done = undo(&request, during(ui))?;
    ui.answer(&RepairUndoneAnswer::new(&done, &journal));
    Ok(exit::DONE)
}

fn during(ui: &Ui) -> Run<'_> {
    Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    }
}

fn journal(args: &ReplicaRepair) -> Result<PathBuf> {
    if let Some(path) = &args.journal {
        return Ok(path.clone());
    }
    let state = settings::state_directory();
    state.map(|state| state.join(JOURNAL)).ok_or_else(|| {
        Error::usage("where is the journal of repairs?").hint(
            "name a directory with --journal: the rows as they were are kept there, for --undo",
        )
    })
}
