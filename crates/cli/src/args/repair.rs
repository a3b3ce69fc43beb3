//! `replica repair`.

use super::Comparison;
use clap::{ArgGroup, Args};
use std::path::PathBuf;

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
keys by which other rows would change, of other engines than InnoDB, of the schema mysql, and what replication filters
touch; rows with values that cannot be read exactly (longer than half of max_allowed_packet, or JSON with dates or
decimals), and rows that only the replica has if it has several sources.

Privileges: those of 'replica checksum'; on the replica also TRIGGER, and with --execute and --undo INSERT, DELETE, and
to write without the binary log (MariaDB: BINLOG ADMIN; MySQL 8: SYSTEM_VARIABLES_ADMIN; MySQL 5.7: SUPER) and in spite
of read_only (MariaDB: READ_ONLY ADMIN; MySQL: SUPER).

Exit code of --output: 0 if nothing differs, 4 if there is a plan, 3 if something could not be compared or is not
repaired, whether or not there is a plan for the rest. Of --execute: 0 if the tables are equal now, 4 if not, 3 if that
is not known or the plan left something out, 14 if something has changed since the plan was made. Of --undo: 0, or 14.";

/// Make the rows of a replica those of its source: first as a plan.
#[derive(Args, Debug)]
#[command(after_help = REPAIR, group = ArgGroup::new("step").required(true).args(["output", "execute", "undo"]))]
pub struct ReplicaRepair {
    /// Compare, and write a plan into this new file, if something differs.
    #[arg(long, value_name = "PLAN", help_heading = "Step")]
    pub output: Option<PathBuf>,
    /// Carry out this plan, if nothing has changed since it was made.
    #[arg(long, value_name = "PLAN", help_heading = "Step",
          conflicts_with_all = ["channel", "database", "table", "max_rows"])]
    pub execute: Option<PathBuf>,
    /// Put the rows back as they were before this repair.
    #[arg(long, value_name = "ID", help_heading = "Step",
          conflicts_with_all = ["source", "channel", "database", "table", "max_rows"])]
    pub undo: Option<String>,
    /// Keep the journal of repairs in this directory [default: `repairs` in $STATE_DIRECTORY].
    #[arg(
        long,
        value_name = "DIR",
        help_heading = "Step",
        conflicts_with = "output"
    )]
    pub journal: Option<PathBuf>,
    /// What is compared.
    #[command(flatten)]
    pub comparison: Comparison,
    /// Refuse to repair more rows one by one.
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = "What",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_rows: u32,
}
