//! `baseline`: states of a data directory to roll back to.

use super::Connection;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  evenkeel baseline save before-upgrade                 Of a running server, in a moment
  evenkeel baseline rollback before-upgrade             The plan
  evenkeel baseline rollback before-upgrade --execute   Stop, swap, start
  evenkeel baseline list
  evenkeel baseline drop before-upgrade --execute

XFS and btrfs share the bytes of a baseline with the data directory, so it takes room only for what
changes. Elsewhere a baseline is a copy, made while the server is stopped.";

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
    /// Roll a data directory back to a baseline, which stays.
    Rollback(Box<BaselineRollback>),
    /// List the baselines of a data directory.
    List(Box<BaselineList>),
    /// Drop a baseline.
    Drop(Box<BaselineDrop>),
}

/// Which data directory.
#[derive(Args, Debug, Clone, Default)]
pub struct BaselineOf {
    /// The data directory of a server that is stopped [default: that of the server that answers].
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

A running server stands still while its files are cloned (about 100 microseconds for each), or for
one snapshot where its data directory is a btrfs subvolume. A rollback then starts as after a crash.";

/// Save the state of a data directory under a name.
#[derive(Args, Debug)]
#[command(after_help = SAVE)]
pub struct BaselineSave {
    /// What to call it.
    #[arg(default_value = "baseline")]
    pub name: String,
    /// Put it in the place of the one that has the name.
    #[arg(long)]
    pub replace: bool,
    /// How long a running server may stand still; nothing is saved when that is not enough.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = super::span)]
    pub pause_limit: Duration,
    /// Which data directory.
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

A server that runs is stopped, and started again as it was: by its systemd unit, or with the words and
environment of its process. One that mysqld_safe, a container or another supervisor looks after needs
--stop-with and --start-with. Everything done since the save is gone, binary logs in the data
directory too; error and query logs stay. A rollback that was interrupted is finished, or undone if it
had not begun, by the next save, rollback or drop.";

/// Roll a data directory back to a baseline, which stays.
#[derive(Args, Debug)]
#[command(after_help = ROLLBACK)]
pub struct BaselineRollback {
    /// Which one.
    #[arg(default_value = "baseline")]
    pub name: String,
    /// Do it; without this the plan is shown and nothing happens.
    #[arg(long)]
    pub execute: bool,
    /// Stop the server with this command, given to `sh -c`.
    #[arg(long, value_name = "COMMAND", requires = "start_with")]
    pub stop_with: Option<String>,
    /// Start the server with this command, given to `sh -c`.
    #[arg(long, value_name = "COMMAND", requires = "stop_with")]
    pub start_with: Option<String>,
    /// Leave the server stopped.
    #[arg(long)]
    pub no_start: bool,
    /// Keep the state that is replaced as a baseline of this name.
    #[arg(long, value_name = "NAME")]
    pub keep_replaced: Option<String>,
    /// How long the server may take to stop.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = super::span)]
    pub stop_deadline: Duration,
    /// How long it may take until it answers again, its crash recovery included.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = super::span)]
    pub start_deadline: Duration,
    /// Which data directory.
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
    /// Which data directory.
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
    /// Which one.
    pub name: String,
    /// Do it; without this the plan is shown and nothing happens.
    #[arg(long)]
    pub execute: bool,
    /// Which data directory.
    #[command(flatten)]
    pub of: BaselineOf,
}
