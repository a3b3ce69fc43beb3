//! The verbs, one file each. A command turns what was typed into a request, lets an operation do
//! the work, gives the answer to the face and returns the exit code.

mod around;
pub mod backup;
pub mod baseline;
pub mod bench;
pub mod binlog;
pub mod capture;
pub mod check;
pub mod cron;
pub mod demo;
pub mod digest;
pub mod doctor;
pub mod dump;
mod far_side;
mod fleet;
pub mod forget;
pub mod generations;
pub mod import;
pub mod keys;
pub mod load;
pub mod lock;
mod metrics;
pub mod mount;
mod over_ssh;
mod page_file;
mod piped;
pub mod plugin;
pub mod prewarm;
pub mod prune;
pub mod queue;
mod replay;
pub mod repository;
pub mod restore;
mod resume;
mod retention;
mod rounds;
pub mod settings;
mod traffic_file;
pub mod url;
pub mod verify;
mod waiting;
pub mod watch_applier;

pub use around::Onlookers;

pub use rounds::GroundPlan;

use crate::args::Verb;
use crate::show::Face;
use evenkeel_op::Result;
use metrics::Watch;
use std::ffi::OsString;

/// Returns whether the verb's work itself goes to standard output, where no document belongs then.
pub fn writes_a_stream(verb: &Verb) -> bool {
    match verb {
        Verb::Dump(args) => dump::is_stream(args),
        Verb::Capture(_) => true,
        _ => false,
    }
}

/// Returns whether what the verb writes holds what a server holds, and is for this user alone. Restored files
/// have the modes that they had.
pub fn writes_for_itself(verb: &Verb) -> bool {
    matches!(
        verb,
        Verb::Backup(_)
            | Verb::Binlog(_)
            | Verb::Check(_)
            | Verb::Digest(_)
            | Verb::Dump(_)
            | Verb::Forget(_)
            | Verb::Keys(_)
            | Verb::Prune(_)
            | Verb::Queue(_)
            | Verb::Replay(_)
            | Verb::Repository(_)
    )
}

/// Runs the verb on the host that is meant, with what the user wants run around it, and returns its exit code.
/// `words` are the command line.
pub fn run_here_or_there(verb: &Verb, words: &[OsString], face: &Face) -> Result<u8> {
    around::run(verb, face, || {
        let watch = Watch::of(verb);
        if let Some(watch) = &watch {
            watch.refuse_others()?;
        }
        match (verb, watch) {
            (Verb::Backup(args), _) => backup::run_here_or_there(args, verb, words, face),
            (Verb::Doctor(args), _) => doctor::run_here_or_there(args, verb, words, face),
            (_, Some(watch)) => watch.over(face, || run_where_meant(verb, words, face)),
            (_, None) => run_where_meant(verb, words, face),
        }
    })
}

fn run_where_meant(verb: &Verb, words: &[OsString], face: &Face) -> Result<u8> {
    match verb.remote().filter(|remote| remote.ssh.is_some()) {
        Some(remote) => over_ssh::run(verb, remote, words, face),
        None => run(verb, face),
    }
}

/// Runs the verb on this host and returns its exit code.
pub fn run(verb: &Verb, face: &Face) -> Result<u8> {
    match verb {
        Verb::Backup(args) => backup::run(args, face),
        Verb::Generations(args) => generations::run(args, face),
        Verb::Restore(args) => restore::run(args, face),
        Verb::Mount(args) => mount::run(args, face),
        Verb::Verify(args) => verify::run(args, face),
        Verb::Check(args) => check::run(args, face),
        Verb::Binlog(args) => binlog::run(args, face),
        Verb::Forget(args) => forget::run(args, face),
        Verb::Prune(args) => prune::run(args, face),
        Verb::Prewarm(args) => prewarm::run(args, face),
        Verb::Replay(args) => replay::run(args, face),
        Verb::Repository(args) => repository::run(args, face),
        Verb::Keys(args) => keys::run(args, face),
        Verb::Baseline(args) => baseline::run(args, face),
        Verb::Capture(args) => capture::run(args, face),
        Verb::Bench(args) => bench::run(args, face),
        Verb::Dump(args) => dump::run(args, face),
        Verb::Load(args) => load::run(args, face),
        Verb::Import(args) => import::run(args, face),
        Verb::Digest(args) => digest::run(args, face),
        Verb::Url(args) => url::run(args, face),
        Verb::Plugin(args) => plugin::run(args, face),
        Verb::Queue(args) => queue::run(args, face),
        Verb::Lock(args) => lock::run(args, face),
        Verb::Cron(args) => cron::run(args, face),
        Verb::Fleet(args) => fleet::run(args, face),
        Verb::Settings(args) => settings::run(args, face),
        Verb::Doctor(args) => doctor::run(args, face),
        Verb::Demo(args) => demo::run(args, face),
        Verb::Helper(args) => far_side::run(args, face),
    }
}
