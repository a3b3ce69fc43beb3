//! `repository`: care for a repository itself.

use super::waiting;
use crate::args::{Rebuild, RepositoryCare, RepositoryCopy, RepositoryVerb};
use crate::settings;
use crate::show::Ui;
use crate::show::answers::{CopyAnswer, RebuildAnswer};
use evenkeel_op::{Result, exit};
use evenkeel_repository::{Chosen, CopyTo, Repository};
use std::time::{Duration, Instant};

/// Runs the command.
pub fn run(args: &RepositoryCare, ui: &Ui) -> Result<u8> {
    match &args.verb {
        RepositoryVerb::Copy(args) => copy(args, ui),
        RepositoryVerb::Rebuild(args) => {
            waiting::for_others(&args.waiting, ui, || rebuild(args, ui))
        }
    }
}

fn copy(args: &RepositoryCopy, ui: &Ui) -> Result<u8> {
    let begun = Instant::now();
    let from = ui.repository(&args.from)?;
    let from = Repository::open(settings::unlock(
        from,
        &args.keys,
        "repository",
        ui.cancel(),
    )?)?;
    let to = ui.location(&args.to, args.storage_class.as_deref())?;
    let to = match ui.is_far() {
        // The keys that came over the link are those of FROM.
        true => to,
        false => settings::unlock(to, &args.keys, "repository", ui.cancel())?,
    };
    let to = to.encrypted_for(settings::encrypt(&args.encrypt, ui.cancel())?);
    let chosen = match args.latest {
        Some(count) => Chosen::Latest(count),
        None if args.generation.is_empty() => Chosen::New,
        None => Chosen::These(args.generation.clone()),
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let how = CopyTo {
        chosen,
        source: args.source.clone(),
        decrypt: args.decrypt,
        workers: args.workers.map_or(threads, usize::from),
        rate_bytes_per_s: args.rate.unwrap_or(0),
        wait: Duration::ZERO,
    };
    let report = waiting::for_others(&args.waiting, ui, || {
        from.copy_to(&to, &how, ui.progress(), ui.cancel())
    })?;
    ui.answer(&CopyAnswer {
        from: args.from.display().to_string(),
        to: args.to.display().to_string(),
        report,
        seconds: begun.elapsed().as_secs_f64(),
    });
    Ok(exit::DONE)
}

fn rebuild(args: &Rebuild, ui: &Ui) -> Result<u8> {
    let repository = Repository::open(ui.repository(&args.repository)?)?;
    let plan = repository.plan_rebuild()?;
    let execute = args.execute && plan.needed;
    let answer = RebuildAnswer::new(&plan, execute);
    if execute {
        repository.perform_rebuild(plan, Duration::ZERO)?;
    }
    ui.answer(&answer);
    Ok(if execute && !answer.notes.is_empty() {
        exit::PARTIAL
    } else {
        exit::DONE
    })
}
