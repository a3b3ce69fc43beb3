//! `bench`.

mod compare;
mod experiment;
mod oltp;
mod showdown;

pub use compare::BenchCompare;
pub use experiment::{BenchCache, BenchCompression, BenchInserts, Experiment};
pub use oltp::{BenchOltp, OltpCompat, OltpDistribution, OltpLoad, OltpMode, OltpRun, OltpVerb};
pub use showdown::{BenchShowdown, FilesystemKind};

use super::Connection;
use clap::{Args, Subcommand};
use evenkeel_op::Error;
use std::path::PathBuf;
use std::time::Duration;

const BENCH: &str = "\
Examples:
  evenkeel bench recovery --tables 1000 --plot recovery.svg   How long starts after a crash take
  evenkeel bench tpcc load -w 10                              Fill ten warehouses on a server
  evenkeel bench tpcc run -c 16 -r 30 -l 300                  How many orders a minute it takes
  evenkeel bench oltp run --mode read-write --threads 16      How many small transactions
  evenkeel bench showdown --quick                             What each way to back up costs

`recovery` and `showdown` start servers of their own, and touch no other.";

const RECOVERY: &str = "\
Examples:
  evenkeel bench recovery                                 The installed server, up to 30000 tables
  evenkeel bench recovery --tables 1000 --repeat 1        A first look, in a few minutes
  evenkeel bench recovery --server /opt/mysql57/bin/mysqld --server mariadb --plot recovery.svg
  evenkeel bench recovery --latency-ms 0 --work /srv/t    This disk as it is; the tables are kept

Makes tables on a private server, changes rows in some, kills it, and starts it on copies of what is
left, with and without `prewarm` before, in random order. Its files seem to lie on storage that answers
each read after a while, many at once, as a network volume does. 30000 tables take 7 GB below --work and
ten minutes to make.";

/// Measure servers and storage.
#[derive(Args, Debug)]
#[command(after_help = BENCH, subcommand_required = true, arg_required_else_help = true)]
pub struct Bench {
    /// What to measure.
    #[command(subcommand)]
    pub verb: BenchVerb,
}

/// What to measure.
#[derive(Subcommand, Debug)]
pub enum BenchVerb {
    /// Measure how long servers with many tables take to start after a crash, with and without prewarm.
    Recovery(BenchRecovery),
    /// Measure ways to insert rows: one or many to a statement, with and without locks and transactions.
    Inserts(Box<BenchInserts>),
    /// Measure what InnoDB's row formats and page compression take on disk and in time.
    Compression(Box<BenchCompression>),
    /// Measure the query cache and memcached before a table, under a share of writes.
    Cache(Box<BenchCache>),
    /// Say whether the difference between two lots of runs is real, or may be chance.
    Compare(BenchCompare),
    /// Measure a server with the small transactions of sysbench.
    Oltp(Box<BenchOltp>),
    /// Measure a server with the transactions of a wholesale supplier, after TPC-C.
    Tpcc(Box<BenchTpcc>),
    /// Compare ways to back up: what each costs a server under load, and how fast it is restored.
    Showdown(Box<BenchShowdown>),
}

const TPCC: &str = "\
Examples:
  evenkeel bench tpcc load -w 10 -S /run/mysqld/mysqld.sock     About 1 GB, in parallel
  evenkeel bench tpcc run -c 16 -r 30 -l 300 --plot tpcc.svg    Ramp-up 30 s, measure 300 s
  evenkeel bench tpcc run -c 64 --rate 500                      500 a second, whether it keeps up or not
  evenkeel bench tpcc check                                     The specification's twelve conditions

The tables are those of tpcc-mysql: each can use the other's. `run` takes the options of tpcc_start but
for -f and -t, and the password glued on (-pSECRET). A result counts only when the tables were sound before and after; then the exit code is 0, else 4. It is not an
audited tpmC: what differs from the specification is said with it.";

/// Measure a server with the transactions of a wholesale supplier, after TPC-C.
#[derive(Args, Debug)]
#[command(after_help = TPCC, subcommand_required = true, arg_required_else_help = true)]
pub struct BenchTpcc {
    /// What to do.
    #[command(subcommand)]
    pub verb: TpccVerb,
}

const TPCC_LOAD: &str = "\
Examples:
  evenkeel bench tpcc load -w 10 -S /run/mysqld/mysqld.sock
  evenkeel bench tpcc load -w 100 --threads 16 --database tpcc100

Interrupted, run it again: it goes on with what is missing. More warehouses may be added later.";

const TPCC_RUN: &str = "\
Examples:
  evenkeel bench tpcc run -c 16 -r 30 -l 300 --plot tpcc.svg
  evenkeel bench tpcc run -c 64 --rate 500 -l 10m --json
  evenkeel bench tpcc run -c 16 --repeat 5 --json > a.json        Five runs, for `bench compare`
  evenkeel bench tpcc run -c 100 --keyed -r 5m -l 2h              Ten connections for each of ten warehouses

Exit codes: 4 when the result does not count: the tables are not sound afterwards, too many transactions
failed, or the server is gone; 14 when the tables were not sound before, or are empty.";

const TPCC_CHECK: &str = "\
Examples:
  evenkeel bench tpcc check --database tpcc
  evenkeel bench tpcc check --json

For tables that nobody writes to. Exit code: 4 when a condition is broken.";

/// What to do.
#[derive(Subcommand, Debug)]
pub enum TpccVerb {
    /// Make the tables and fill them; go on where an earlier load was interrupted.
    Load(TpccLoad),
    /// Run the transactions and measure them.
    Run(TpccRun),
    /// Check the specification's conditions on the tables.
    Check(TpccCheck),
}

/// Make the tables and fill them; go on where an earlier load was interrupted.
#[derive(Args, Debug)]
#[command(after_help = TPCC_LOAD)]
pub struct TpccLoad {
    /// How many warehouses, of about 90 MB each.
    #[arg(long, short = 'w', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=32767))]
    pub warehouses: u16,
    /// The schema; made when it is not there.
    #[arg(long, short = 'd', value_name = "NAME", default_value = "tpcc")]
    pub database: String,
    /// How many connections load at once.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// The same rows for the same number.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// A hundredth of the items and customers: for a look at whether all works, never to measure.
    #[arg(long)]
    pub tiny: bool,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// Run the transactions and measure them.
#[derive(Args, Debug)]
#[command(after_help = TPCC_RUN)]
pub struct TpccRun {
    /// Use only so many warehouses, from the first on [default: all that were loaded].
    #[arg(long, short = 'w', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=32767))]
    pub warehouses: Option<u16>,
    /// How many connections.
    #[arg(long, short = 'c', value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    pub connections: u16,
    /// How long before anything counts; seconds without a unit.
    #[arg(long, short = 'r', value_name = "TIME", default_value = "10", value_parser = seconds)]
    pub ramp_up: Duration,
    /// How long is measured.
    #[arg(long, short = 'l', value_name = "TIME", default_value = "60", value_parser = seconds)]
    pub measure: Duration,
    /// How long an interval of the report is.
    #[arg(long, short = 'i', value_name = "TIME", default_value = "10", value_parser = seconds)]
    pub interval: Duration,
    /// Begin so many transactions a second, and count each one's time from when it was to begin
    /// [default: each as soon as the last of its connection has ended].
    #[arg(long, value_name = "N", conflicts_with = "keyed", value_parser = rate)]
    pub rate: Option<f64>,
    /// Type and think as long as the specification says; for ten connections a warehouse.
    #[arg(long)]
    pub keyed: bool,
    /// End when more transactions than these have failed; deadlocks are tried again and are none.
    #[arg(long, value_name = "N")]
    pub max_failures: Option<u64>,
    /// Measure so many times, one after the other: median and spread, and runs for `bench compare`.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=60))]
    pub repeat: u16,
    /// Repeat the faults of tpcc-mysql, for who has to compare with its figures: limits in milliseconds, counts
    /// that are not kept, half of the customers with bad credit. Tables are of no use for others afterwards.
    #[arg(long)]
    pub like_tpcc_mysql: bool,
    /// Leave out the check of the tables before and after; then the result says so.
    #[arg(long)]
    pub no_check: bool,
    /// Draw the same transactions as an earlier run [default: random].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Draw the throughput over time into this file, as SVG.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Write a report to pass on into this file: one HTML page with pictures, the machine and the settings.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// What tpcc_start writes each New-Order's time to; here it is told what to use instead.
    #[arg(short = 'f', value_name = "FILE", hide = true)]
    pub report_file: Option<PathBuf>,
    /// What tpcc_start writes when each New-Order began and ended to; here it is told what to use instead.
    #[arg(short = 't', value_name = "FILE", hide = true)]
    pub trx_file: Option<PathBuf>,
    /// The schema with the tables.
    #[arg(long, short = 'd', value_name = "NAME", default_value = "tpcc")]
    pub database: String,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// Check the specification's conditions on the tables.
#[derive(Args, Debug)]
#[command(after_help = TPCC_CHECK)]
pub struct TpccCheck {
    /// The schema with the tables.
    #[arg(long, short = 'd', value_name = "NAME", default_value = "tpcc")]
    pub database: String,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// Parses a span of time; without a unit it is seconds, as tpcc-mysql has them.
pub(super) fn seconds(text: &str) -> Result<Duration, Error> {
    match text.parse::<u32>() {
        Ok(seconds) => Ok(Duration::from_secs(seconds.into())),
        Err(_) => super::span(text),
    }
}

/// Parses a number of transactions a second.
fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.01..=1e6).contains(&rate) => Ok(rate),
        _ => Err("not a number from 0.01 to 1000000".to_owned()),
    }
}

/// Measure how long servers with many tables take to start after a crash, with and without prewarm.
#[derive(Args, Debug)]
#[command(after_help = RECOVERY)]
pub struct BenchRecovery {
    /// A server program, or the installed one: `mariadb` or `mysql`; may be given several times
    /// [default: the installed one].
    #[arg(long = "server", value_name = "PATH|mariadb|mysql")]
    pub servers: Vec<PathBuf>,
    /// How many tables; several numbers are measured one after the other.
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "1000,10000,30000",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub tables: Vec<u32>,
    /// Have each read of the data directory take this long; 0: the disk as it is.
    #[arg(long, value_name = "MILLISECONDS", default_value = "1", value_parser = milliseconds)]
    pub latency_ms: f64,
    /// Change a row in so many of a hundred tables before the crash, in one at least.
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = super::percent)]
    pub changed: u8,
    /// Start this often with prewarm, and as often without.
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub repeat: u16,
    /// Start in the order of an earlier run [default: random].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Work in this directory, and keep the tables there for the next run [default: a new one below
    /// the temporary directory, removed at the end].
    #[arg(long, value_name = "DIR")]
    pub work: Option<PathBuf>,
    /// Draw the times against the number of tables into this file, as SVG.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Let prewarm keep this many reads under way [default: found by trying, at most 256].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub iodepth: Option<u16>,
}

/// Parses milliseconds, a minute at most.
fn milliseconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(ms) if (0.0..=60_000.0).contains(&ms) => Ok(ms),
        _ => Err("not a number of milliseconds from 0 to 60000".to_owned()),
    }
}
