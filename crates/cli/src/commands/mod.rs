//! The verbs, one file each. A command turns what was typed into a request, lets an operation do
//! the work, gives the answer to the UI and returns the exit code.

mod around;
pub mod backup;
pub mod baseline;
pub mod bench;
pub mod binlog;
pub mod capture;
pub mod check;
pub mod clone;
pub mod cron;
pub mod demo;
pub mod digest;
pub mod doctor;
pub mod dump;
mod far_side;
mod fleet;
pub mod forget;
pub mod generations;
mod health;
pub mod import;
pub mod keys;
pub mod load;
pub mod lock;
mod metrics;
pub mod mount;
mod named_files;
mod over_ssh;
mod page_file;
mod piped;
pub mod plugin;
pub mod prewarm;
pub mod prune;
mod qps;
pub mod queue;
mod remembered;
mod replay;
mod replica;
pub mod repository;
pub mod restore;
mod resume;
mod retention;
mod rounds;
pub mod settings;
mod top;
mod traffic_file;
pub mod url;
pub mod verify;
mod waiting;
pub mod watch_applier;
mod watching;

pub use around::Onlookers;

pub(crate) use health::refused;
pub use rounds::RoundServerPlan;

use crate::args::{HealthVerb, ReplicaVerb, Verb};
use crate::show::Ui;
use evenkeel_op::Result;
use evenkeel_server::connect::told_by_files;
use metrics::Watch;
use std::ffi::OsString;

/// Returns whether the verb's work itself goes to standard output, where no document belongs then.
pub fn writes_a_stream(verb: &Verb) -> bool {
    match verb {
        Verb::Dump(args) => dump::is_stream(args),
        Verb::Capture(_) | Verb::Qps(_) | Verb::Top(_) => true,
        Verb::Health(args) => matches!(args.verb, HealthVerb::Run(_)),
        Verb::Replica(args) => {
            matches!(&args.verb, ReplicaVerb::Heal(heal) if heal.every.is_some())
        }
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
pub fn run_here_or_there(verb: &Verb, words: &[OsString], ui: &Ui) -> Result<u8> {
    around::run(verb, ui, || {
        let watch = Watch::of(verb);
        if let Some(watch) = &watch {
            watch.refuse_others()?;
        }
        match (verb, watch) {
            (Verb::Backup(args), _) => backup::run_here_or_there(args, verb, words, ui),
            (Verb::Clone(args), _) => clone::run_here_or_there(args, verb, words, ui),
            (Verb::Doctor(args), _) => doctor::run_here_or_there(args, verb, words, ui),
            (Verb::Replica(args), _) if matches!(args.verb, ReplicaVerb::Resync(_)) => {
                replica::run_here(args, words, ui)
            }
            (_, Some(watch)) => watch.over(ui, || run_where_meant(verb, words, ui)),
            (_, None) => run_where_meant(verb, words, ui),
        }
    })
}

fn run_where_meant(verb: &Verb, words: &[OsString], ui: &Ui) -> Result<u8> {
    match verb.remote().filter(|remote| remote.ssh.is_some()) {
        Some(remote) => over_ssh::run(verb, remote, words, ui),
        None => run(verb, ui),
    }
}

/// Runs the verb on this host and returns its exit code.
pub fn run(verb: &Verb, ui: &Ui) -> Result<u8> {
    match verb {
        Verb::Backup(args) => backup::run(args, ui),
        Verb::Generations(args) => generations::run(args, ui),
        Verb::Restore(args) => restore::run(args, ui),
        Verb::Clone(args) => clone::run(args, ui),
        Verb::Mount(args) => mount::run(args, ui),
        Verb::Verify(args) => verify::run(args, ui),
        Verb::Check(args) => check::run(args, ui),
        Verb::Binlog(args) => binlog::run(args, ui),
        Verb::Forget(args) => forget::run(args, ui),
        Verb::Prune(args) => prune::run(args, ui),
        Verb::Prewarm(args) => prewarm::run(args, ui),
        Verb::Replay(args) => replay::run(args, ui),
        Verb::Repository(args) => repository::run(args, ui),
        Verb::Keys(args) => keys::run(args, ui),
        Verb::Baseline(args) => baseline::run(args, ui),
        // Their --user and --host choose statements.
        Verb::Capture(args) => capture::run(args, ui).map_err(told_by_files),
        Verb::Qps(args) => qps::run(args, ui),
        Verb::Top(args) => top::run(args, ui),
        Verb::Replica(args) => replica::run(args, ui),
        Verb::Health(args) => health::run(args, ui),
        Verb::Bench(args) => bench::run(args, ui),
        Verb::Dump(args) => dump::run(args, ui),
        Verb::Load(args) => load::run(args, ui),
        Verb::Import(args) => import::run(args, ui),
        Verb::Digest(args) => digest::run(args, ui).map_err(told_by_files),
        Verb::Url(args) => url::run(args, ui),
        Verb::Plugin(args) => plugin::run(args, ui),
        Verb::Queue(args) => queue::run(args, ui),
        Verb::Lock(args) => lock::run(args, ui),
        Verb::Cron(args) => cron::run(args, ui),
        Verb::Fleet(args) => fleet::run(args, ui),
        Verb::Settings(args) => settings::run(args, ui),
        Verb::Doctor(args) => doctor::run(args, ui),
        Verb::Demo(args) => demo::run(args, ui),
        Verb::Helper(args) => far_side::run(args, ui),
    }
}
