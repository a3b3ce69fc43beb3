//! `queue`.

use super::Connection;
use clap::{Args, Subcommand};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel queue status                                   All queues of a server
  evenkeel queue peek shop.jobs --limit 3                 What comes next
  evenkeel queue compact shop.jobs
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
