//! `prune`.

use crate::args::Prune as Typed;
use crate::show::Face;
use crate::show::answers::PruneAnswer;
use evenkeel_op::{Result, exit};
use evenkeel_repository::{Prune, Repository};
use std::time::Duration;

/// Runs the command.
pub fn run(args: &Typed, face: &Face) -> Result<u8> {
    let repository = Repository::open(face.repository(&args.repository)?)?;
    let how = Prune {
        live_share_min: f64::from(args.min_live) / 100.0,
        ..Prune::default()
    };
    let plan = repository.plan_prune(&how, face.cancel())?;
    let freed = match args.execute {
        true => Some(repository.perform_prune(&plan, Duration::ZERO, face.cancel())?),
        false => None,
    };
    face.answer(&PruneAnswer::new(&plan, freed));
    Ok(exit::DONE)
}
