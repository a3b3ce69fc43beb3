//! `baseline`.

use crate::args::{
    BaselineCare, BaselineDrop, BaselineList, BaselineOf, BaselineRollback, BaselineSave,
    BaselineVerb,
};
use crate::settings;
use crate::show::Face;
use evenkeel_op::{Result, Run, exit};
use evenkeel_recovery::baseline::{self, RollbackRequest, SaveRequest, Whose};
use evenkeel_server::service::Commands;

/// Runs the command.
pub fn run(args: &BaselineCare, face: &Face) -> Result<u8> {
    match &args.verb {
        BaselineVerb::Save(args) => save(args, face),
        BaselineVerb::Rollback(args) => rollback(args, face),
        BaselineVerb::List(args) => list(args, face),
        BaselineVerb::Drop(args) => drop_(args, face),
    }
}

fn whose(of: &BaselineOf, face: &Face) -> Result<Whose> {
    if let Some(datadir) = &of.datadir {
        let server = settings::stopped_server_at(datadir, &of.connection, face)?;
        return Ok(Whose::Stopped {
            datadir: server.datadir,
            settings: server.settings,
        });
    }
    let options = settings::connect(&of.connection, "baseline", face)?;
    super::resume::resume(&options, face);
    Ok(Whose::Running(Box::new(options)))
}

fn watched(face: &Face) -> Run<'_> {
    Run {
        progress: face.progress(),
        cancel: face.cancel(),
    }
}

fn save(args: &BaselineSave, face: &Face) -> Result<u8> {
    let mut request = SaveRequest::new(whose(&args.of, face)?, &args.name);
    request.replace = args.replace;
    request.pause_limit = args.pause_limit;
    face.answer(&baseline::save(&request, watched(face))?);
    Ok(exit::DONE)
}

fn rollback(args: &BaselineRollback, face: &Face) -> Result<u8> {
    let mut request = RollbackRequest::new(whose(&args.of, face)?, &args.name);
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
        face.answer(&baseline::rollback(&request, watched(face))?);
    } else {
        face.answer(&baseline::plan_rollback(&request)?);
    }
    Ok(exit::DONE)
}

fn list(args: &BaselineList, face: &Face) -> Result<u8> {
    face.answer(&baseline::list(&whose(&args.of, face)?)?);
    Ok(exit::DONE)
}

fn drop_(args: &BaselineDrop, face: &Face) -> Result<u8> {
    let whose = whose(&args.of, face)?;
    face.answer(&match args.execute {
        true => baseline::drop_(&whose, &args.name, watched(face))?,
        false => baseline::plan_drop(&whose, &args.name)?,
    });
    Ok(exit::DONE)
}
