//! The verbs, one file each. A command turns what was typed into a request, lets an operation do
//! the work, gives the answer to the face and returns the exit code.

pub mod backup;
pub mod cron;
pub mod demo;
pub mod doctor;
pub mod forget;
pub mod generations;
pub mod lock;
pub mod prune;
pub mod repository;
pub mod restore;
mod resume;
pub mod settings;
pub mod verify;

use crate::args::Verb;
use crate::show::Face;
use evenkeel_op::Result;

/// Runs the verb and returns its exit code.
pub fn run(verb: &Verb, face: &Face) -> Result<u8> {
    match verb {
        Verb::Backup(args) => backup::run(args, face),
        Verb::Generations(args) => generations::run(args, face),
        Verb::Restore(args) => restore::run(args, face),
        Verb::Verify(args) => verify::run(args, face),
        Verb::Forget(args) => forget::run(args, face),
        Verb::Prune(args) => prune::run(args, face),
        Verb::Repository(args) => repository::run(args, face),
        Verb::Lock(args) => lock::run(args, face),
        Verb::Cron(args) => cron::run(args, face),
        Verb::Settings(args) => settings::run(args, face),
        Verb::Doctor(args) => doctor::run(args, face),
        Verb::Demo(args) => demo::run(args, face),
    }
}
