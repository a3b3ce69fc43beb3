//! `baseline`.

use crate::args::{
    BaselineCare, BaselineDrop, BaselineList, BaselineOf, BaselineRollback, BaselineSave,
    BaselineVerb,
};
use crate::settings;
use crate::show::Ui;
use evenkeel_op::{Result, Run, exit};
use evenkeel_recovery::baseline::{self, RollbackRequest, SaveRequest, Whose};
use evenkeel_server::service::Commands;

/// Runs the command.
pub fn run(args: &BaselineCare, ui: &Ui) -> Result<u8> {
    match &args.verb {
        BaselineVerb::Save(args) => save(args, ui),
        BaselineVerb::Rollback(args) => rollback(args, ui),
        BaselineVerb::List(args) => list(args, ui),
        BaselineVerb::Drop(args) => drop_(args, ui),
    }
}

fn whose(of: &BaselineOf, ui: &Ui) -> Result<Whose> {
    if let Some(datadir) = &of.datadir {
        let server = settings::stopped_server_at(datadir, &of.connection, ui)?;
        return Ok(Whose::Stopped {
            datadir: server.datadir,
            settings: server.settings,
        });
    }
    let options = settings::connect(&of.connection, "baseline", ui)?;
    super::resume::resume(&options, ui);
    Ok(Whose::Running(Box::new(options)))
}

fn watched(ui: &Ui) -> Run<'_> {
    Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    }
}

fn save(args: &BaselineSave, ui: &Ui) -> Result<u8> {
    let mut request = SaveRequest::new(whose(&args.of, ui)?, &args.name);
    request.replace = args.replace;
    request.pause_limit = args.pause_limit;
    ui.answer(&baseline::save(&request, watched(ui))?);
    Ok(exit::DONE)
}

fn rollback(args: &BaselineRollback, ui: &Ui) -> Result<u8> {
    let mut request = RollbackRequest::new(whose(&args.of, ui)?, &args.name);
    request.commands = args
        .stop_with
        .clone()
        .zip(args.start_with.clone())
        .map(|(stop, start)| Commands { stop, start });
    request.start = !args.no_start;
    request.keep_replaced.clone_from(&args.keep_replaced);
    request.stop_deadline = args.stop_deadline;
    request.start_deadline = args.start_deadline;
    if args.execute {
        ui.answer(&baseline::rollback(&request, watched(ui))?);
    } else {
        ui.answer(&baseline::plan_rollback(&request)?);
    }
    Ok(exit::DONE)
}

fn list(args: &BaselineList, ui: &Ui) -> Result<u8> {
    ui.answer(&baseline::list(&whose(&args.of, ui)?)?);
    Ok(exit::DONE)
}

fn drop_(args: &BaselineDrop, ui: &Ui) -> Result<u8> {
    let whose = whose(&args.of, ui)?;
    ui.answer(&match args.execute {
        true => baseline::drop_(&whose, &args.name, watched(ui))?,
        false => baseline::plan_drop(&whose, &args.name)?,
    });
    Ok(exit::DONE)
}
