//! `dump`.

use super::{Connection, Locking};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  evenkeel dump --output /backup/shop.dump --database shop
  evenkeel dump --output d --exclude 'shop\\.log_.*' --where \"shop.orders=placed >= '2026-01-01'\"
  evenkeel dump --output d --format sql --compress gzip    Files that any client can load
  evenkeel dump --output d --lock none --threads 1         No lock: one connection sees one instant
  evenkeel dump --output /backup/shop.dump --database shop --resume   After it was interrupted
  evenkeel dump --output s3://backups/shop.dump            The same files in a bucket
  evenkeel dump --output shop.dev --database shop --mask 'shop\\.users\\.email=email'
  evenkeel dump --output - --database shop | mariadb --binary-mode --comments   One script, in order

All connections see one instant, for which writes stand still for a moment. The directory is a dump
once manifest.json is in it; it says for each table which files hold its rows. A dump that was
interrupted goes on with --resume: under a new view, for which it keeps the files of tables that the
binary log proves untouched (REPLICATION SLAVE), and reads the others again. Exit codes: 1 also when
a table was altered meanwhile; 11 another dump is being written there; 15 gave up waiting for the
lock.";

/// Write a server's tables as files, in parallel and all as of one instant.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Dump {
    /// The directory to write, which must be empty or not there, or a place in an object store
    /// (s3://BUCKET/FOLDER, and the others of repositories); `-` writes one script, for the mariadb and
    /// mysql clients, to standard output.
    #[arg(long, short = 'o', alias = "target", value_name = "DIR")]
    pub output: PathBuf,
    /// Go on with the dump that did not end in that directory, as of a new instant: files of tables
    /// that nobody wrote to since are kept.
    #[arg(long, conflicts_with = "overwrite_unfinished")]
    pub resume: bool,
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
    /// Dump old rows of system-versioned tables too, with the times from when to when they held.
    #[arg(long, help_heading = "What to dump")]
    pub history: bool,
    /// Of this table, dump only rows that meet the condition.
    #[arg(
        long = "where",
        value_name = "SCHEMA.TABLE=CONDITION",
        help_heading = "What to dump"
    )]
    pub conditions: Vec<String>,
    /// Write other values in the place of those of these columns, which a regular expression matches in
    /// whole, so that no original is in the dump: null, empty, fixed:TEXT, hash, email
    /// (user-HASH@example.com), shape (letters stay letters, digits digits) or year (dates become its
    /// first of January).
    #[arg(
        long = "mask",
        value_name = "SCHEMA.TABLE.COLUMN=WAY",
        help_heading = "What to dump"
    )]
    pub masks: Vec<String>,
    /// The key of hash, email and shape, so that another dump has the same values: a file of 32 bytes or
    /// more that only its owner may read [default: a key that nobody has after this run].
    #[arg(
        long,
        value_name = "FILE",
        requires = "masks",
        help_heading = "What to dump"
    )]
    pub mask_key_file: Option<PathBuf>,
    /// What becomes of the definers of views, routines, triggers and events: keep, drop, or the
    /// account that takes their place.
    #[arg(
        long,
        value_name = "keep|drop|USER@HOST",
        default_value = "keep",
        help_heading = "What to dump"
    )]
    pub definer: String,
    /// How rows are written [default: tab; a script is always sql].
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<DumpFormat>,
    /// How files are packed: none, gzip or zstd, with a level if you like (zstd:3) [default: zstd;
    /// a script is not packed].
    #[arg(long, value_name = "HOW")]
    pub compress: Option<String>,
    /// How many connections read at once.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// Cut tables into files of about this size before they are compressed; smaller where there is little to dump.
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = super::size)]
    pub chunk_size: u64,
    /// Rest between chunks while the server runs more than N statements of others.
    #[arg(long, value_name = "N", help_heading = "Throttling")]
    pub max_threads_running: Option<u64>,
    /// Rest between chunks while the replica is farther behind than this.
    #[arg(long, value_name = "TIME", help_heading = "Throttling", value_parser = super::span)]
    pub max_lag: Option<Duration>,
    /// The replica of --max-lag, reached with the same account [default: the server itself].
    #[arg(
        long,
        value_name = "HOST[:PORT]",
        help_heading = "Throttling",
        requires = "max_lag"
    )]
    pub throttle_host: Option<String>,
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
    /// Comma-separated, for other programs.
    Csv,
    /// The same, with the columns' names in the first line of each file.
    CsvHeader,
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
