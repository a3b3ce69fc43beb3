//! `dump`.

use super::{Connection, Locking};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  evenkeel dump --output /backup/shop.dump --database shop
  evenkeel dump --output d --exclude 'shop\\.log_.*' --where \"shop.orders=placed >= '2026-01-01'\"
  evenkeel dump --output d --format sql --compress gzip    Files that any client can load
  evenkeel dump --output d --lock none --threads 1         No lock: one connection sees one instant

All connections see one instant, for which writes stand still for a moment. The directory is a dump
once manifest.json is in it; it says for each table which files hold its rows. A dump that was
interrupted cannot go on, because its view of the server is gone: clear it with
--overwrite-unfinished. Exit codes: 1 also when a table was altered meanwhile; 11 another dump is being
written there; 15 gave up waiting for the lock.";

/// Write a server's tables as files, in parallel and all as of one instant.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Dump {
    /// The directory to write; it must be empty or not there.
    #[arg(long, short = 'o', value_name = "DIR")]
    pub output: PathBuf,
    /// Clear what a dump that did not end left in that directory.
    #[arg(long)]
    pub overwrite_unfinished: bool,
    /// Dump this database only; may be given several times [default: all but the server's own].
    #[arg(long, value_name = "NAME", help_heading = "What to dump")]
    pub database: Vec<String>,
    /// Dump only what has a SCHEMA.NAME that matches this regular expression in whole.
    #[arg(long, value_name = "REGEX", help_heading = "What to dump")]
    pub table: Vec<String>,
    /// Leave out what has a SCHEMA.NAME that matches this regular expression in whole.
    #[arg(long, value_name = "REGEX", help_heading = "What to dump")]
    pub exclude: Vec<String>,
    /// Leave views out.
    #[arg(long, help_heading = "What to dump")]
    pub no_views: bool,
    /// Leave procedures, functions and packages out.
    #[arg(long, help_heading = "What to dump")]
    pub no_routines: bool,
    /// Leave triggers out.
    #[arg(long, help_heading = "What to dump")]
    pub no_triggers: bool,
    /// Leave events out.
    #[arg(long, help_heading = "What to dump")]
    pub no_events: bool,
    /// Dump users and roles too, with their grants and the hashes of their passwords.
    #[arg(long, help_heading = "What to dump")]
    pub users: bool,
    /// Of this table, dump only rows that meet the condition.
    #[arg(
        long = "where",
        value_name = "SCHEMA.TABLE=CONDITION",
        help_heading = "What to dump"
    )]
    pub conditions: Vec<String>,
    /// How rows are written.
    #[arg(long, value_name = "FORMAT", default_value = "tab")]
    pub format: DumpFormat,
    /// How files are packed: none, gzip or zstd, with a level if you like (zstd:3).
    #[arg(long, value_name = "HOW", default_value = "zstd")]
    pub compress: String,
    /// How many connections read at once.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// Cut tables into files of about this size, before they are packed.
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = super::size)]
    pub chunk_size: u64,
    /// What makes all connections see one instant.
    #[arg(
        long,
        value_name = "KIND",
        default_value = "auto",
        help_heading = "Locking"
    )]
    pub lock: DumpLock,
    /// How long to put up with the lock.
    #[command(flatten)]
    pub locking: Locking,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// How rows are written.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpFormat {
    /// Tab-separated, for LOAD DATA.
    Tab,
    /// INSERT statements, for any client.
    Sql,
}

/// What makes all connections see one instant.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpLock {
    /// The mildest lock this server has that stops commits for a moment.
    Auto,
    /// MariaDB's BACKUP STAGE.
    Stage,
    /// FLUSH TABLES WITH READ LOCK.
    Ftwrl,
    /// No lock: nobody writes, or --threads is 1.
    None,
}
