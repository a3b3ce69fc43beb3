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
  evenkeel dump --output d --lock none --threads 1         No lock: one connection sees one point in time
  evenkeel dump --output /backup/shop.dump --database shop --resume   After it was interrupted
  evenkeel dump --output s3://backups/shop.dump            The same files in a bucket
  evenkeel dump --output shop.dev --database shop --mask 'shop\\.users\\.email=email'
  evenkeel dump --output - --database shop | mariadb --binary-mode --comments   One script, in order

All connections see the data as of one point in time; writes are paused for a moment to get there.
The directory is a dump once it contains manifest.json, which lists the files of each table. --resume
continues an interrupted dump at a new point in time: it keeps the files of tables that, according to
the binary log, were not written to (this needs REPLICATION SLAVE), and reads the others again. Exit codes:
1 also if a table was altered during the dump; 11 another dump is writing there; 15 timed out waiting
for the lock.";

/// Write a server's tables as files, in parallel and all as of one point in time.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Dump {
    /// The directory to write: new or empty. Or a place in an object store (s3://BUCKET/FOLDER, and the
    /// other URLs of repositories). `-` writes one script for the mariadb and mysql clients to standard
    /// output.
    #[arg(long, short = 'o', alias = "target", value_name = "DIR")]
    pub output: PathBuf,
    /// Resume the unfinished dump in that directory, as of a new point in time. It keeps the files of
    /// tables that nobody has written to since.
    #[arg(long, conflicts_with = "overwrite_unfinished")]
    pub resume: bool,
    /// Delete what an unfinished dump left in that directory, and start over.
    #[arg(long)]
    pub overwrite_unfinished: bool,
    /// Dump only this database; may be repeated [default: all but the server's own].
    #[arg(long, value_name = "NAME", help_heading = "What to dump")]
    pub database: Vec<String>,
    /// Dump only objects whose whole SCHEMA.NAME matches this regular expression.
    #[arg(long, value_name = "REGEX", help_heading = "What to dump")]
    pub table: Vec<String>,
    /// Leave out objects whose whole SCHEMA.NAME matches this regular expression.
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
    /// Dump old rows of system-versioned tables too, with their start and end times.
    #[arg(long, help_heading = "What to dump")]
    pub history: bool,
    /// Dump only the rows of this table that meet the condition.
    #[arg(
        long = "where",
        value_name = "SCHEMA.TABLE=CONDITION",
        help_heading = "What to dump"
    )]
    pub conditions: Vec<String>,
    /// Replace the values of these columns, so that no original is in the dump. The pattern is a regular
    /// expression of the whole name. Ways: null, empty, fixed:TEXT, hash, email (user-HASH@example.com),
    /// shape (letters stay letters, digits stay digits) or year (a date becomes January 1 of its year).
    #[arg(
        long = "mask",
        value_name = "SCHEMA.TABLE.COLUMN=WAY",
        help_heading = "What to dump"
    )]
    pub masks: Vec<String>,
    /// The key of hash, email and shape, so that another dump gets the same values: a file of at least
    /// 32 bytes that only its owner can read [default: a random key, discarded after this run].
    #[arg(
        long,
        value_name = "FILE",
        requires = "masks",
        help_heading = "What to dump"
    )]
    pub mask_key_file: Option<PathBuf>,
    /// The definers of views, routines, triggers and events: keep them, drop them, or replace them with
    /// this account.
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
    /// How files are compressed: none, gzip or zstd, optionally with a level (zstd:3) [default: zstd;
    /// a script is not compressed].
    #[arg(long, value_name = "HOW")]
    pub compress: Option<String>,
    /// How many connections read in parallel.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// Cut tables into files of about this size before compression; smaller if the whole dump is small.
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = super::size)]
    pub chunk_size: u64,
    /// Wait between chunks while the server runs more than N statements of others.
    #[arg(long, value_name = "N", help_heading = "Throttling")]
    pub max_threads_running: Option<u64>,
    /// Wait between chunks while the replica lags more than this.
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
    /// What makes all connections see one point in time.
    #[arg(
        long,
        value_name = "KIND",
        default_value = "auto",
        help_heading = "Locking"
    )]
    pub lock: DumpLock,
    /// How long to wait for the lock.
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

/// What makes all connections see one point in time.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpLock {
    /// The least intrusive lock of this server that pauses commits.
    Auto,
    /// MariaDB's BACKUP STAGE.
    Stage,
    /// FLUSH TABLES WITH READ LOCK.
    Ftwrl,
    /// No lock: nobody writes, or --threads is 1.
    None,
}
