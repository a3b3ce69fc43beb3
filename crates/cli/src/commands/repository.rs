//! `repository`: care for a repository itself.

use crate::args::{Rebuild, RepositoryCare, RepositoryVerb};
use crate::show::Face;
use crate::show::answers::RebuildAnswer;
use evenkeel_op::{Result, exit};
use evenkeel_repository::Repository;
use std::time::Duration;

/// Runs the command.
pub fn run(args: &RepositoryCare, face: &Face) -> Result<u8> {
    match &args.verb {
        RepositoryVerb::Rebuild(args) => rebuild(args, face),
    }
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
