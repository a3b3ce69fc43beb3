//! `prune`.

use crate::args::Prune as Typed;
use crate::settings;
use crate::show::Face;
use crate::show::answers::PruneAnswer;
use evenkeel_op::{Result, exit};
use evenkeel_repository::{Prune, Repository};
use std::time::Duration;

/// Runs the command.
pub fn run(args: &Typed, face: &Face) -> Result<u8> {
    let repository = Repository::open(settings::unlock(
        face.repository(&args.repository)?,
        &args.keys,
        "prune",
    )?)?;
    let how = Prune {
        live_share_min: f64::from(args.min_live) / 100.0,
        ..Prune::default()
    };
    let plan = repository.plan_prune(&how, face.cancel())?;
    let freed = match args.execute {
        true => Some(repository.perform_prune(&plan, Duration::ZERO, face.cancel())?),
        false => None,
    };
    if plan.unreadable > 0 {
        face.warn(&format!(
            "{} packs are mostly dead, but rewriting them takes a reader's key",
            plan.unreadable
        ));
    }
    face.answer(&PruneAnswer::new(&plan, freed));
    Ok(exit::DONE)
}
