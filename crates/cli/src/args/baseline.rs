//! `baseline`: states of a data directory to roll back to.

use super::Connection;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  evenkeel baseline save before-upgrade                 A running server, within a second
  evenkeel baseline rollback before-upgrade             The plan
  evenkeel baseline rollback before-upgrade --execute   Stop the server, swap the files, start it
  evenkeel baseline list
  evenkeel baseline drop before-upgrade --execute

On XFS and btrfs, a baseline shares its data with the data directory, so it takes space only for what changes.
On other filesystems, a baseline is a copy, made while the server is stopped.";

/// Save the state of a data directory, and roll back to it in a second.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub struct BaselineCare {
    /// What to do.
    #[command(subcommand)]
    pub verb: BaselineVerb,
}

/// What to do with baselines.
#[derive(Subcommand, Debug)]
pub enum BaselineVerb {
    /// Save the state of a data directory under a name.
    Save(Box<BaselineSave>),
    /// Roll a data directory back to a baseline. The baseline is kept.
    Rollback(Box<BaselineRollback>),
    /// List the baselines of a data directory.
    List(Box<BaselineList>),
    /// Drop a baseline.
    Drop(Box<BaselineDrop>),
}

/// The data directory.
#[derive(Args, Debug, Clone, Default)]
pub struct BaselineOf {
    /// The data directory of a stopped server [default: the running server's].
    #[arg(long, value_name = "DIR")]
    pub datadir: Option<PathBuf>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

const SAVE: &str = "\
Examples:
  evenkeel baseline save before-upgrade
  evenkeel baseline save run --replace --datadir /srv/bench/data    The server is stopped

A running server is paused while its files are cloned (about 100 microseconds per file). If its data directory
is a btrfs subvolume, it is paused while one snapshot is taken. After a rollback, the server starts as it
would after a crash.";

/// Save the state of a data directory under a name.
#[derive(Args, Debug)]
#[command(after_help = SAVE)]
pub struct BaselineSave {
    /// The baseline's name.
    #[arg(default_value = "baseline")]
    pub name: String,
    /// Replace an existing baseline of that name.
    #[arg(long)]
    pub replace: bool,
    /// How long a running server may be paused; if that is too short, nothing is saved.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = super::span)]
    pub pause_limit: Duration,
    /// The data directory.
    #[command(flatten)]
    pub of: BaselineOf,
}

const ROLLBACK: &str = "\
Examples:
  evenkeel baseline rollback before-upgrade             The plan
  evenkeel baseline rollback before-upgrade --execute
  evenkeel baseline rollback run --keep-replaced after-run --execute
  evenkeel baseline rollback run --datadir /srv/bench/data --execute    The server is stopped
  evenkeel baseline rollback run --stop-with 'docker stop db' --start-with 'docker start db' --execute

A running server is stopped, and later started the same way: by its systemd unit, or with the arguments and
environment of its process. Under mysqld_safe, a container or another supervisor, give --stop-with and
--start-with. All changes since the save are lost, including binary logs in the data directory; error and
query logs stay. If a rollback is interrupted, the next save, rollback or drop finishes it, or undoes it if it
had not changed anything.";

/// Roll a data directory back to a baseline. The baseline is kept.
#[derive(Args, Debug)]
#[command(after_help = ROLLBACK)]
pub struct BaselineRollback {
    /// The baseline's name.
    #[arg(default_value = "baseline")]
    pub name: String,
    /// Carry out the plan; without this the plan is only shown.
    #[arg(long)]
    pub execute: bool,
    /// Stop the server with this command, run by `sh -c`.
    #[arg(long, value_name = "COMMAND", requires = "start_with")]
    pub stop_with: Option<String>,
    /// Start the server with this command, run by `sh -c`.
    #[arg(long, value_name = "COMMAND", requires = "stop_with")]
    pub start_with: Option<String>,
    /// Leave the server stopped.
    #[arg(long)]
    pub no_start: bool,
    /// Keep the replaced state as a baseline of this name.
    #[arg(long, value_name = "NAME")]
    pub keep_replaced: Option<String>,
    /// How long the server may take to stop.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = super::span)]
    pub stop_deadline: Duration,
    /// How long the server may take to answer again, including crash recovery.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = super::span)]
    pub start_deadline: Duration,
    /// The data directory.
    #[command(flatten)]
    pub of: BaselineOf,
}

const LIST: &str = "\
Examples:
  evenkeel baseline list
  evenkeel baseline list --datadir /srv/bench/data --json | jq -r '.baselines[].name'";

/// List the baselines of a data directory.
#[derive(Args, Debug)]
#[command(after_help = LIST)]
pub struct BaselineList {
    /// The data directory.
    #[command(flatten)]
    pub of: BaselineOf,
}

const DROP: &str = "\
Examples:
  evenkeel baseline drop before-upgrade             The plan
  evenkeel baseline drop before-upgrade --execute";

/// Drop a baseline.
#[derive(Args, Debug)]
#[command(after_help = DROP)]
pub struct BaselineDrop {
    /// The baseline's name.
    pub name: String,
    /// Carry out the plan; without this the plan is only shown.
    #[arg(long)]
    pub execute: bool,
    /// The data directory.
    #[command(flatten)]
    pub of: BaselineOf,
}
