//! `lock`, and the flags of every command that locks.

use super::Connection;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  evenkeel lock -- sh -c 'sync; lvcreate -s -L 10G -n nightly /dev/vg/mysql'
  evenkeel lock --lock ftwrl --long-query-wait 5m -- ./snapshot.sh
  evenkeel lock --before 'FLUSH TABLES shop.orders FOR EXPORT' --after 'UNLOCK TABLES' -- ./copy.sh

The command's environment contains EVENKEEL_BINLOG_FILE, EVENKEEL_BINLOG_POSITION and EVENKEEL_GTID, if the
server has them. evenkeel exits with the command's exit code, or with 128+N if signal N killed the command. If
the connection that held the lock was lost, the exit code is 1 even if the command succeeded, because the lock
was not held throughout. Standard output belongs to the command; with --json, the result is one line of JSON
on standard error.";

/// Run a command while the server is locked for a backup.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Lock {
    /// The lock.
    #[arg(
        long,
        value_name = "KIND",
        default_value = "auto",
        help_heading = "Locking"
    )]
    pub lock: LockMethod,
    /// Timeouts of the lock.
    #[command(flatten)]
    pub locking: Locking,
    /// Run this statement instead of the lock's own statement.
    #[arg(
        long,
        value_name = "SQL",
        help_heading = "Locking",
        conflicts_with = "lock"
    )]
    pub before: Option<String>,
    /// Run this statement after the command [default with --before: UNLOCK TABLES].
    #[arg(
        long,
        value_name = "SQL",
        help_heading = "Locking",
        requires = "before"
    )]
    pub after: Option<String>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
    /// The command and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Timeouts of a lock.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Locking")]
pub struct Locking {
    /// Give up if the lock cannot be taken within this time; each attempt blocks others for at most one
    /// second.
    #[arg(long, alias = "deadline", value_name = "TIME", default_value = "1m",
          value_parser = super::span)]
    pub lock_deadline: Duration,
    /// Release the lock after this time even if it is still needed; the run then fails.
    #[arg(long, alias = "hold-limit", value_name = "TIME", default_value = "5m",
          value_parser = super::span)]
    pub lock_hold_limit: Duration,
    /// Before locking, wait up to this long for long queries to end.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = super::span)]
    pub long_query_wait: Duration,
    /// A query is long if it has run for this time.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = super::span)]
    pub long_query_threshold: Duration,
    /// After --long-query-wait, kill long queries of these kinds; give up if there are others.
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub kill_long_queries: Vec<LongQueryKind>,
}

/// A kind of query, by its first word.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum LongQueryKind {
    /// SELECT and other statements that only read.
    Select,
    /// All other statements: INSERT, UPDATE, DELETE, LOAD, CALL, DDL and so on.
    Update,
}

/// The lock.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMethod {
    /// The weakest lock of this server that protects its tables.
    Auto,
    /// MariaDB's BACKUP STAGE: writes to InnoDB continue, commits and DDL wait.
    Stage,
    /// MySQL's LOCK INSTANCE FOR BACKUP: only DDL waits.
    Instance,
    /// FLUSH TABLES WITH READ LOCK: every write waits.
    Ftwrl,
    /// No lock at all.
    None,
}
