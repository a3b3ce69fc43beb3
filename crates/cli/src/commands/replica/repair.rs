//! `replica repair`.

use super::named::Typed;
use crate::args::ReplicaRepair;
use crate::commands::watch_applier;
use crate::settings;
use crate::show::Ui;
use crate::show::answers::{RepairExecutedAnswer, RepairPlannedAnswer, RepairUndoneAnswer};
use evenkeel_op::paths::absolute;
use evenkeel_op::{Error, Result, Run, exit};
use evenkeel_replica::checksum::{
    ChecksumLimits, ChecksumRequest, ChecksumSelection, TableVerdict,
};
use evenkeel_replica::repair::{
    ExecuteRequest, PlanRequest, UndoRequest, execute, make_plan, undo,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a statement that reads should take.
const CHUNK_TIME: Duration = Duration::from_millis(500);
/// No view of the comparison is kept for longer.
const SNAPSHOT: Duration = Duration::from_secs(600);
/// So many rows are named of each table that differs afterwards.
const NAMED: usize = 100;
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
        comparison: comparison(args, ui)?,
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
        comparison: comparison(args, ui)?,
        plan: plan.to_owned(),
        journal: absolute(&journal),
    };
    let done = execute(&request, during(ui))?;
    let code = match done.compared.verdict() {
        TableVerdict::Differs => exit::DIFFERS,
        TableVerdict::NotCompared => exit::PARTIAL,
        TableVerdict::Equal | TableVerdict::LeftOut => exit::DONE,
    };
    ui.answer(&RepairExecutedAnswer::new(done, &journal));
    Ok(code)
}

fn take_back(args: &ReplicaRepair, id: &str, ui: &Ui) -> Result<u8> {
    let journal = journal(args)?;
    let request = UndoRequest {
        comparison: comparison(args, ui)?,
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

fn comparison(args: &ReplicaRepair, ui: &Ui) -> Result<ChecksumRequest> {
    let typed = Typed {
        verb: "repair",
        replica: &args.replica,
        source: &args.source,
        others: &args.lag_of,
        fleet: &args.fleet,
        connection: &args.connection,
    };
    let servers = typed.servers(ui)?;
    let tables = args.table.iter().map(|name| name.parse());
    Ok(ChecksumRequest {
        replica: servers.replica,
        source: servers.source,
        channel: args.channel.clone(),
        selection: ChecksumSelection {
            databases: args.database.clone(),
            tables: tables.collect::<Result<_>>()?,
        },
        limits: ChecksumLimits {
            threads: usize::from(args.threads),
            chunk_time: CHUNK_TIME,
            lag: Some(args.max_lag),
            other_replicas: servers.others,
            threads_running: args.max_load,
            snapshot: SNAPSHOT,
            deadline: args.lock_deadline,
        },
        watchdog: watch_applier::program(),
        state: None,
        named_rows: NAMED,
    })
}
