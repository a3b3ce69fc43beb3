//! `check`.

use crate::args::Check;
use crate::settings;
use crate::show::Ui;
use evenkeel_op::{Result, exit};
use evenkeel_recovery::check::{self, CheckReport, CheckRequest, Target};
use evenkeel_repository::Location;
use std::path::Path;

/// Runs the command.
pub fn run(args: &Check, ui: &Ui) -> Result<u8> {
    let mut request = CheckRequest::new(target(args, ui)?);
    if let Some(repository) = &args.heal_from {
        request.copies = Some(place(repository, args, ui)?);
        request.copies_generation = args.generation;
    }
    request.execute = args.execute;
    request.keep_damaged.clone_from(&args.keep_damaged);
    request.rate_bytes_per_s = args.rate.unwrap_or(0);
    if let Some(workers) = args.workers {
        request.workers = usize::from(workers);
    }
    let report = check::check(&request, ui.progress(), ui.cancel())?;
    ui.answer(&report);
    Ok(code(&report))
}

fn target(args: &Check, ui: &Ui) -> Result<Target> {
    if let Some(datadir) = &args.datadir {
        let server = settings::stopped_server_at(datadir, &args.connection, ui)?;
        return Ok(Target::Stopped {
            datadir: server.datadir,
            settings: server.settings,
        });
    }
    if let Some(repository) = &args.repository {
        let place = place(repository, args, ui)?;
        return Ok(Target::Generation(place, args.generation));
    }
    if !args.paths.is_empty() {
        return Ok(Target::Paths(args.paths.clone()));
    }
    let options = settings::connect(&args.connection, "check", ui)?;
    Ok(Target::Live(Box::new(options)))
}

fn place(path: &Path, args: &Check, ui: &Ui) -> Result<Location> {
    settings::unlock(ui.repository(path)?, &args.keys, "check", ui.cancel())
}

fn code(report: &CheckReport) -> u8 {
    match report.sound {
        false => exit::DIFFERS,
        true if report.files_unreadable.is_empty() => exit::DONE,
        true => exit::PARTIAL,
    }
}
