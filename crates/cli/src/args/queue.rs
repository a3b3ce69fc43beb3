//! `queue`.

use super::{Connection, Hidden};
use clap::{Args, Subcommand};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel queue status                                   All queues of a server
  evenkeel queue peek shop.jobs --limit 3                 What comes next
  evenkeel queue compact shop.jobs
  evenkeel queue forward shop.jobs shop.jobs --target-host db2
  evenkeel queue check /var/lib/mysql                     Files of a stopped server
  evenkeel queue salvage /var/lib/mysql/shop/jobs.QUE --output /data/salvaged

Queues are tables of the engine that `evenkeel plugin install queue` puts into a server.";

/// Look after queues: in a server, and in files.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub struct Queue {
    /// What to do.
    #[command(subcommand)]
    pub verb: QueueVerb,
}

/// What to do with queues.
#[derive(Subcommand, Debug)]
pub enum QueueVerb {
    /// Say what a server's queues look like.
    Status(Box<QueueStatus>),
    /// Show the first rows that nobody owns, and take none.
    Peek(Box<QueuePeek>),
    /// Have the server give back the space of rows that are gone.
    Compact(Box<QueueCompact>),
    /// Move rows to a queue or table of another server, each exactly once.
    Forward(Box<QueueForward>),
    /// Check the files of queues; the server is stopped.
    Check(QueueCheck),
    /// Write what is whole of damaged files into new ones; the server is stopped.
    Salvage(QueueSalvage),
}

const STATUS: &str = "\
Examples:
  evenkeel queue status
  evenkeel queue status shop.jobs shop.mails --json
  evenkeel queue status --metrics /var/lib/prometheus/node-exporter/queues.prom

Rows that came and went are counted since the server opened the table; the rates are those counts over the
server's uptime. The account needs SELECT and DELETE on the tables.";

/// Say what a server's queues look like.
#[derive(Args, Debug)]
#[command(after_help = STATUS)]
pub struct QueueStatus {
    /// Which: `DATABASE.TABLE` [default: all that the account may see].
    #[arg(value_name = "TABLE")]
    pub tables: Vec<String>,
    /// Write it to this file too, for Prometheus' node_exporter; name it *.prom.
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

const PEEK: &str = "\
Examples:
  evenkeel queue peek shop.jobs
  evenkeel queue peek shop.jobs --limit 100 --json";

/// Show the first rows that nobody owns.
#[derive(Args, Debug)]
#[command(after_help = PEEK)]
pub struct QueuePeek {
    /// Which: `DATABASE.TABLE`.
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// How many rows at most.
    #[arg(long, value_name = "N", default_value = "10",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub limit: u32,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

const COMPACT: &str = "\
Examples:
  evenkeel queue compact shop.jobs

The server does so by itself when three quarters of a queue's files are rows that are gone. Producers and
consumers go on meanwhile.";

/// Have the server give back the space of rows that are gone.
#[derive(Args, Debug)]
#[command(after_help = COMPACT)]
pub struct QueueCompact {
    /// Which: `DATABASE.TABLE`.
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

const FORWARD: &str = "\
Examples:
  evenkeel queue forward shop.jobs shop.jobs --target-host db2
  evenkeel queue forward shop.jobs shop.done --target-defaults-file /etc/evenkeel/db2.cnf --once
  evenkeel queue forward shop.jobs shop.all --target-host hub --slot 3

Runs until it is stopped: SIGTERM and SIGINT finish the batch in hand. A server that cannot be reached is waited for.
Whatever is killed, and whenever, each row arrives once, in its order; it may be run again from any host. What was sent last
stands in the target's table evenkeel_forwarded, beside the table that gets the rows. It has to be the queue's
only consumer. The account at the source needs SELECT and DELETE on the queue; that at the target INSERT and SELECT
on the table, and CREATE, INSERT, SELECT, UPDATE and DELETE on evenkeel_forwarded.

Exit codes: 11 another run uses that slot; 14 a row might come twice or not at all: another consumer, a queue made anew, a
setting that lets a server forget.";

/// Move rows to another server.
#[derive(Args, Debug)]
#[command(after_help = FORWARD)]
pub struct QueueForward {
    /// The queue to take from: `DATABASE.TABLE`.
    #[arg(value_name = "FROM")]
    pub from: String,
    /// The queue, or table of InnoDB, to put into: `DATABASE.TABLE`, with columns of the same names.
    #[arg(value_name = "TO")]
    pub to: String,
    /// How many rows at once, at most.
    #[arg(long, value_name = "N", default_value = "1000",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub batch: u32,
    /// Which of the target's 64 memories of sources to use; each source needs one of its own.
    #[arg(long, value_name = "N", default_value = "0",
          value_parser = clap::value_parser!(u8).range(0..=63))]
    pub slot: u8,
    /// End when the queue is empty.
    #[arg(long)]
    pub once: bool,
    /// Forget what was sent before, and send all that is there.
    #[arg(long)]
    pub reset: bool,
    /// Write counts to this file every ten seconds, for Prometheus' node_exporter; name it *.prom.
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// Which server gets the rows.
    #[command(flatten)]
    pub target: QueueTarget,
    /// Which server has them.
    #[command(flatten)]
    pub connection: Connection,
}

/// The other server.
#[derive(Args, Debug)]
#[command(next_help_heading = "Target")]
pub struct QueueTarget {
    /// The target's host; `localhost` (the default) means its Unix socket.
    #[arg(long, value_name = "HOST")]
    pub target_host: Option<String>,
    /// The target's TCP port.
    #[arg(long, value_name = "PORT")]
    pub target_port: Option<u16>,
    /// The user to connect to the target as.
    #[arg(long, value_name = "USER")]
    pub target_user: Option<String>,
    /// The password there, glued on (`--target-password=SECRET`); without a value, ask for it.
    #[arg(long, value_name = "PASSWORD", num_args = 0..=1, require_equals = true)]
    pub target_password: Option<Option<Hidden>>,
    /// The target's Unix socket.
    #[arg(long, value_name = "FILE")]
    pub target_socket: Option<PathBuf>,
    /// Read the target's options from this file only.
    #[arg(long, value_name = "FILE")]
    pub target_defaults_file: Option<PathBuf>,
}

const CHECK: &str = "\
Examples:
  evenkeel queue check /var/lib/mysql                     All queues
  evenkeel queue check /var/lib/mysql/shop/jobs.QUE       One

Every frame of every file is read, and nothing is written. What a crash left torn at the end is no damage:
the server cuts it off. Exit codes: 4 something is damaged; 14 a server runs there.";

/// Check the files of queues.
#[derive(Args, Debug)]
#[command(after_help = CHECK)]
pub struct QueueCheck {
    /// A data directory, or the file of one queue in it.
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
}

const SALVAGE: &str = "\
Examples:
  evenkeel queue salvage /var/lib/mysql --output /data/salvaged
  evenkeel queue salvage /var/lib/mysql/shop/jobs.QUE --output /data/salvaged

Every row is kept whose frame is whole, before and behind the damage, and of broken frames the rows that are
whole; with the row ids that they had. What was removed stays removed, but where the removal itself is
damaged: such a row is delivered again. Nothing is written into the damaged files. Move the queue's
directory below #sqlqueue out of the way, copy what is in DIR to the same places in the data directory, with
the server's user as owner, and start the server. Exit codes: 3 something was lost; 14 a server runs there.";

/// Write what is whole of damaged files into new ones.
#[derive(Args, Debug)]
#[command(after_help = SALVAGE)]
pub struct QueueSalvage {
    /// A data directory, or the file of one queue in it.
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// Where to: a directory that is not there yet, or empty.
    #[arg(long = "output", alias = "into", value_name = "DIR")]
    pub into: PathBuf,
}
