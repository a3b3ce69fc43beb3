//! `queue`.

use super::{Connection, Hidden};
use clap::{Args, Subcommand};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel queue status                                   All queues of a server
  evenkeel queue peek shop.jobs --limit 3                 The next rows
  evenkeel queue compact shop.jobs
  evenkeel queue forward shop.jobs shop.jobs --target-host db2
  evenkeel queue check /var/lib/mysql                     The files of a stopped server
  evenkeel queue salvage /var/lib/mysql/shop/jobs.QUE --output /data/salvaged

Queues are tables of the storage engine that `evenkeel plugin install queue` installs.";

/// Manage queues on a server, or check and salvage their files.
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
    /// Show the state of a server's queues.
    Status(Box<QueueStatus>),
    /// Show the next rows that no connection owns, without taking them.
    Peek(Box<QueuePeek>),
    /// Free the space of consumed rows.
    Compact(Box<QueueCompact>),
    /// Move rows to a queue or table on another server, each exactly once.
    Forward(Box<QueueForward>),
    /// Check a stopped server's queue files.
    Check(QueueCheck),
    /// Salvage intact rows from a stopped server's damaged queue files into new files.
    Salvage(QueueSalvage),
}

const STATUS: &str = "\
Examples:
  evenkeel queue status
  evenkeel queue status shop.jobs shop.mails --json
  evenkeel queue status --metrics /var/lib/prometheus/node-exporter/queues.prom

`came` and `went` count rows written and removed since the server opened the table; the rates divide them by
the server's uptime. The account needs SELECT and DELETE on the tables. Exit code 3: a queue could not be
read, because its files are damaged or its name cannot be used. It is listed with the reason.";

/// Show the state of a server's queues.
#[derive(Args, Debug)]
#[command(after_help = STATUS)]
pub struct QueueStatus {
    /// The queues: `DATABASE.TABLE` [default: all that the account can see].
    #[arg(value_name = "TABLE")]
    pub tables: Vec<String>,
    /// Also write the state to this file for Prometheus' node_exporter; name it *.prom.
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

/// Show the next rows that no connection owns.
#[derive(Args, Debug)]
#[command(after_help = PEEK)]
pub struct QueuePeek {
    /// The queue: `DATABASE.TABLE`.
    #[arg(value_name = "TABLE")]
    pub table: String,
    /// The maximum number of rows to show.
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

The server does this by itself when three quarters of a queue's files are consumed rows. Producers and
consumers keep working meanwhile.";

/// Free the space of consumed rows.
#[derive(Args, Debug)]
#[command(after_help = COMPACT)]
pub struct QueueCompact {
    /// The queue: `DATABASE.TABLE`.
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

Forward runs until SIGTERM or SIGINT, and then finishes the current batch. If it cannot reach a server, it
waits. Each row arrives once and in order, even if a server or this command is killed. You can run the command
again from any host. The table evenkeel_forwarded in the target's database records what was sent last. Forward
must be the queue's only consumer. The account at the source needs SELECT and DELETE on the queue. The account
at the target needs INSERT and SELECT on the table, and CREATE, INSERT, SELECT, UPDATE and DELETE on
evenkeel_forwarded.

Exit codes: 1 the target cannot store a row, because the columns do not match; 11 another run uses that slot;
13 with --once: a server cannot be reached; 14 a row could arrive twice or get lost (another consumer, a
re-created queue, or a setting that lets a server lose acknowledged rows in a crash), or a table or privilege
is missing. Nothing is lost or sent twice in any of these cases.";

/// Move rows to another server.
#[derive(Args, Debug)]
#[command(after_help = FORWARD)]
pub struct QueueForward {
    /// The source queue: `DATABASE.TABLE`.
    #[arg(value_name = "FROM")]
    pub from: String,
    /// The target queue or InnoDB table: `DATABASE.TABLE`, with columns of the same names.
    #[arg(value_name = "TO")]
    pub to: String,
    /// The maximum number of rows in a batch.
    #[arg(long, value_name = "N", default_value = "1000",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub batch: u32,
    /// Which of the target's 64 slots to use; each source needs its own slot.
    #[arg(long, value_name = "N", default_value = "0",
          value_parser = clap::value_parser!(u8).range(0..=63))]
    pub slot: u8,
    /// Exit when the queue is empty.
    #[arg(long)]
    pub once: bool,
    /// Forget what was sent before, and send everything in the queue.
    #[arg(long)]
    pub reset: bool,
    /// Write counts to this file every ten seconds, for Prometheus' node_exporter; name it *.prom.
    #[arg(long, value_name = "FILE")]
    pub metrics: Option<PathBuf>,
    /// The server that receives the rows.
    #[command(flatten)]
    pub target: QueueTarget,
    /// The server that has them.
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
    /// The password for the target, without a space (`--target-password=SECRET`); without a value, ask for
    /// it.
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

Check reads every frame of every file, and writes nothing. A torn end after a crash is not damage; the server
cuts it off. Exit codes: 4 something is damaged; 14 a server is running on the data directory.";

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

Salvage keeps every row of intact frames, before and after the damage, and the intact rows of damaged frames.
Rows keep their row ids. Consumed rows stay consumed; but if the record that a row was consumed is damaged,
the row is delivered again. The damaged files do not change. Afterwards, move the queue's directory out of
#sqlqueue. Copy the contents of DIR to the same places in the data directory, with the server's user as owner.
Then start the server. Exit codes: 3 something was lost; 14 a server is running on the data directory.";

/// Salvage intact rows from damaged files into new files.
#[derive(Args, Debug)]
#[command(after_help = SALVAGE)]
pub struct QueueSalvage {
    /// A data directory, or the file of one queue in it.
    #[arg(value_name = "PATH")]
    pub path: PathBuf,
    /// The directory to write into: new or empty.
    #[arg(long = "output", alias = "into", value_name = "DIR")]
    pub into: PathBuf,
}
