//! `repository`: care for a repository itself.

use super::waiting;
use crate::args::{Rebuild, RepositoryCare, RepositoryCopy, RepositoryVerb};
use crate::settings;
use crate::show::Face;
use crate::show::answers::{CopyAnswer, RebuildAnswer};
use evenkeel_op::{Result, exit};
use evenkeel_repository::{Chosen, CopyTo, Repository};
use std::time::{Duration, Instant};

/// Runs the command.
pub fn run(args: &RepositoryCare, face: &Face) -> Result<u8> {
    match &args.verb {
        RepositoryVerb::Copy(args) => copy(args, face),
        RepositoryVerb::Rebuild(args) => {
            waiting::for_others(&args.waiting, face, || rebuild(args, face))
        }
    }
}

fn copy(args: &RepositoryCopy, face: &Face) -> Result<u8> {
    let begun = Instant::now();
    let from = face.repository(&args.from)?;
    let from = Repository::open(settings::unlock(from, &args.keys, "repository")?)?;
    let to = face.location(&args.to, args.storage_class.as_deref())?;
    let to = match face.is_far() {
        // The keys that came over the link are those of FROM.
        true => to,
        false => settings::unlock(to, &args.keys, "repository")?,
    };
    let to = to.encrypted_for(settings::encrypt(&args.encrypt)?);
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
    let report = waiting::for_others(&args.waiting, face, || {
        from.copy_to(&to, &how, face.progress(), face.cancel())
    })?;
    face.answer(&CopyAnswer {
        from: args.from.display().to_string(),
        to: args.to.display().to_string(),
        report,
        seconds: begun.elapsed().as_secs_f64(),
    });
    Ok(exit::DONE)
}

fn rebuild(args: &Rebuild, face: &Face) -> Result<u8> {
    let repository = Repository::open(face.repository(&args.repository)?)?;
    let plan = repository.plan_rebuild()?;
    let execute = args.execute && plan.needed;
    let answer = RebuildAnswer::new(&plan, execute);
    if execute {
        repository.perform_rebuild(plan, Duration::ZERO)?;
    }
    face.answer(&answer);
    Ok(if execute && !answer.notes.is_empty() {
        exit::PARTIAL
    } else {
        exit::DONE
    })
}
