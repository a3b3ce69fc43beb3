//! `restore`.

use super::waiting;
use crate::args::{GoBack, Restore};
use crate::settings;
use crate::show::Ui;
use evenkeel_backup::point::{self, Point, Replay, TimesGoBack};
use evenkeel_backup::restore::{self, OntoRequest, RestoreReport, RestoreRequest};
use evenkeel_op::{Error, Result, Run, exit};
use evenkeel_repository::Repository;
use std::path::Path;

/// Runs the command.
pub fn run(args: &Restore, ui: &Ui) -> Result<u8> {
    if let Some(target) = &args.onto {
        return onto(args, target, ui);
    }
    let target = args
        .target
        .as_ref()
        .ok_or_else(|| Error::usage("no target was given").hint("--target DIR or --onto PATH"))?;
    let report = waiting::for_others(&args.waiting, ui, || restore_to(target, args, ui))?;
    let point = report.point.as_ref();
    let is_less = point.is_some_and(|point| point.two_places.is_some() || !point.unmade.is_empty());
    ui.answer(&report);
    Ok(match is_less {
        true => exit::PARTIAL,
        false => exit::DONE,
    })
}

fn restore_to(target: &Path, args: &Restore, ui: &Ui) -> Result<RestoreReport> {
    let place = settings::unlock(
        ui.repository(&args.repository)?,
        &args.keys,
        "restore",
        ui.cancel(),
    )?;
    let mut request = RestoreRequest::new(place, args.generation, target);
    for root in &args.map_root {
        request.map_roots.insert(root.id.clone(), root.dir.clone());
    }
    if let Some(workers) = args.workers {
        request.workers = usize::from(workers);
    }
    request.engine_tool.clone_from(&args.engine_tool);
    if let Some(text) = &args.to {
        resume_to(text, args, &mut request, ui)?;
    }
    request.owner = args.owner.as_deref().map(settings::owner).transpose()?;
    let run = Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    };
    restore::restore(&request, run)
}

/// Finds the way to a point in time.
fn resume_to(text: &str, args: &Restore, request: &mut RestoreRequest, ui: &Ui) -> Result<()> {
    let point = Point::parse(text, &jiff::tz::TimeZone::system())?;
    let run = Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    };
    let go_back = match args.times_go_back {
        None => TimesGoBack::Refuse,
        Some(GoBack::First) => TimesGoBack::First,
        Some(GoBack::Last) => TimesGoBack::Last,
    };
    let plan = point::find(&request.repository, args.generation, &point, go_back, run)?;
    let repository = Repository::open(&request.repository)?;
    let binary =
        super::verify::binary(args.server_binary.as_deref(), &repository, plan.generation)?;
    request.generation = Some(plan.generation);
    request.replay = Some(Replay { plan, binary });
    Ok(())
}

/// Writes a volume over a device or file, or shows what that would overwrite.
fn onto(args: &Restore, target: &Path, ui: &Ui) -> Result<u8> {
    let place = settings::unlock(
        ui.repository(&args.repository)?,
        &args.keys,
        "restore",
        ui.cancel(),
    )?;
    let mut request = OntoRequest::new(place, args.generation, target);
    request.volume.clone_from(&args.volume);
    if let Some(workers) = args.workers {
        request.workers = usize::from(workers);
    }
    // Once it is made, nobody can be in its way.
    let plan = waiting::for_others(&args.waiting, ui, || restore::plan_onto(&request))?;
    if !args.execute {
        ui.answer(&plan.report);
        return Ok(exit::DONE);
    }
    let run = Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    };
    ui.answer(&restore::onto(plan, run)?);
    Ok(exit::DONE)
}
