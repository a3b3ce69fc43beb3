//! `replica repair`.

use super::{Connection, span};
use clap::{ArgGroup, Args};
use std::path::PathBuf;
use std::time::Duration;

const REPAIR: &str = "\
Examples:
  evenkeel replica repair db2 --output db2.plan         Compare, and write down what differs
  evenkeel replica repair db2 --execute db2.plan --journal /var/lib/evenkeel/repairs
  evenkeel replica repair db2 --undo 20261129-154500-3fa9c1d2 --journal /var/lib/evenkeel/repairs

First, the replica is compared as by 'replica checksum', and the rows that differ are read on both sides, at one place
of the source's binary log. The plan has all their values: only its owner may read it. Nothing is changed.

With --execute, the replica's SQL thread is stopped at a place where the source is looked at, too. If every row of the
plan still is on both sides as the plan says, all of them are made the source's, in one transaction; else nothing is
done. None of that gets into the replica's binary log, and no transaction of its own. Nothing is written on the source.
Then the SQL thread runs again, and the tables are compared. The rows as they were are in the journal before anything
is changed: --undo puts them back, if they are still as the repair left them.

Left alone, and named: tables without a unique key, with other definitions, with triggers on the replica, with foreign
keys by which other rows would change, of other engines than InnoDB, and what replication filters touch.

Privileges: those of 'replica checksum'; on the replica also TRIGGER, and with --execute and --undo INSERT, DELETE, and
to write without the binary log (MariaDB: BINLOG ADMIN; MySQL 8: SYSTEM_VARIABLES_ADMIN; MySQL 5.7: SUPER) and in spite
of read_only (MariaDB: READ_ONLY ADMIN; MySQL: SUPER).

Exit code of --output: 0 if nothing differs, 4 if there is a plan, 3 if something could not be compared or is not
repaired, whether or not there is a plan for the rest. Of --execute: 0 if the tables are equal now, 4 if not, 3 if that
is not known, 14 if something has changed since the plan was made. Of --undo: 0, or 14.";

/// Make the rows of a replica those of its source: first as a plan.
#[derive(Args, Debug)]
#[command(after_help = REPAIR, group = ArgGroup::new("step").required(true).args(["output", "execute", "undo"]))]
pub struct ReplicaRepair {
    /// The replica: HOST, HOST:PORT or a socket's path; with --fleet, a name from the list [default: the server that
    /// the connection options name].
    #[arg(value_name = "REPLICA")]
    pub replica: Option<String>,
    /// Its source, in the same way [default: the server that the replica fetches from, with the same account].
    #[arg(long, value_name = "SERVER")]
    pub source: Option<String>,
    /// The channel, if the replica has several sources.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["execute", "undo"])]
    pub channel: Option<String>,
    /// Compare, and write a plan into this new file, if something differs.
    #[arg(long, value_name = "PLAN", help_heading = "Step")]
    pub output: Option<PathBuf>,
    /// Carry out this plan, if nothing has changed since it was made.
    #[arg(long, value_name = "PLAN", help_heading = "Step")]
    pub execute: Option<PathBuf>,
    /// Put the rows back as they were before this repair.
    #[arg(
        long,
        value_name = "ID",
        help_heading = "Step",
        conflicts_with = "source"
    )]
    pub undo: Option<String>,
    /// Keep the journal of repairs in this directory [default: `repairs` in $STATE_DIRECTORY].
    #[arg(
        long,
        value_name = "DIR",
        help_heading = "Step",
        conflicts_with = "output"
    )]
    pub journal: Option<PathBuf>,
    /// Compare only this database; repeat for more.
    #[arg(long, value_name = "DATABASE", help_heading = "What", conflicts_with_all = ["execute", "undo"])]
    pub database: Vec<String>,
    /// Compare only this table; repeat for more.
    #[arg(long, value_name = "DATABASE.TABLE", help_heading = "What", conflicts_with_all = ["execute", "undo"])]
    pub table: Vec<String>,
    /// Refuse to repair more rows one by one.
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = "What", conflicts_with_all = ["execute", "undo"],
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_rows: u32,
    /// Connections to each side that read for the comparison.
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Load",
          value_parser = clap::value_parser!(u8).range(1..=64))]
    pub threads: u8,
    /// Rest while a replica is farther behind.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = span, help_heading = "Load")]
    pub max_lag: Duration,
    /// Another replica whose lag counts, too; repeat for more.
    #[arg(long, value_name = "SERVER", help_heading = "Load")]
    pub lag_of: Vec<String>,
    /// Rest while source or replica run more statements of others at once.
    #[arg(long, value_name = "N", help_heading = "Load")]
    pub max_load: Option<u64>,
    /// Wait at most this time for the SQL thread to stop, for the source's lock, and while the SQL thread stays at one
    /// transaction on its way to the source's place.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = span, help_heading = "Load")]
    pub lock_deadline: Duration,
    /// The servers are in this list, with their own connection options: the file of `evenkeel fleet`.
    #[arg(long, value_name = "FLEET.toml", help_heading = "Connection")]
    pub fleet: Option<PathBuf>,
    /// How to reach them.
    #[command(flatten)]
    pub connection: Connection,
}
