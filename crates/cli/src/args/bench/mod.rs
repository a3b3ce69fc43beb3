//! `bench`.

mod compare;
mod experiment;
mod oltp;
mod showdown;
mod values;

pub use compare::BenchCompare;
pub use experiment::{BenchCache, BenchCompression, BenchInserts, Experiment};
pub use oltp::{BenchOltp, OltpCompat, OltpDistribution, OltpLoad, OltpMode, OltpRun, OltpVerb};
pub use showdown::{BenchShowdown, FilesystemKind};

use super::Connection;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;
use values::{rate, seconds};

const BENCH: &str = "\
Examples:
  evenkeel bench recovery --tables 1000 --plot recovery.svg   How long startup after a crash takes
  evenkeel bench tpcc load -w 10                              Fill ten warehouses on a server
  evenkeel bench tpcc run -c 16 -r 30 -l 300                  How many orders per minute it processes
  evenkeel bench oltp run --mode read-write --threads 16      How many small transactions it runs
  evenkeel bench showdown --quick                             What each backup method costs

`recovery` and `showdown` start their own servers and touch no others.";

const RECOVERY: &str = "\
Examples:
  evenkeel bench recovery                                 The installed server, up to 30000 tables
  evenkeel bench recovery --tables 1000 --repeat 1        A first look, in a few minutes
  evenkeel bench recovery --server /opt/mysql57/bin/mysqld --server mariadb --plot recovery.svg
  evenkeel bench recovery --latency-ms 0 --work /srv/t    This disk as it is; keep the tables

The benchmark creates tables on a private server, changes rows in some of them, and kills the server. Then it
starts the server on copies of the files, with and without `prewarm`, in random order. The files behave as if
they were on storage that has a fixed latency and serves many reads in parallel, like a network volume. 30000
tables need 7 GB in the --work directory, and ten minutes to create.";

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
    /// Compare ways to insert rows: one or many per statement, with and without locks and transactions.
    Inserts(Box<BenchInserts>),
    /// Compare InnoDB's row formats and page compression: disk space and time.
    Compression(Box<BenchCompression>),
    /// Measure the query cache, and memcached in front of a table, at a given share of writes.
    Cache(Box<BenchCache>),
    /// Test whether the difference between two sets of runs is real or may be chance.
    Compare(BenchCompare),
    /// Measure a server with the small transactions of sysbench.
    Oltp(Box<BenchOltp>),
    /// Measure a server with the transactions of TPC-C (a wholesale supplier).
    Tpcc(Box<BenchTpcc>),
    /// Compare backup methods: what each costs a server under load, and how fast it restores.
    Showdown(Box<BenchShowdown>),
}

const TPCC: &str = "\
Examples:
  evenkeel bench tpcc load -w 10 -S /run/mysqld/mysqld.sock     About 1 GB, in parallel
  evenkeel bench tpcc run -c 16 -r 30 -l 300 --plot tpcc.svg    Ramp-up 30 s, measure 300 s
  evenkeel bench tpcc run -c 64 --rate 500                      500 per second, even if it cannot keep up
  evenkeel bench tpcc check                                     The specification's twelve conditions

The tables are the same as those of tpcc-mysql, so each program can use the other's tables. `run` accepts the
options of tpcc_start except -f and -t; write the password without a space (-pSECRET). A result counts only if
the tables pass the consistency conditions before and after the run; then the exit code is 0, otherwise 4. The
result is not an audited tpmC: each result lists its differences from the specification.";

/// Measure a server with the transactions of TPC-C (a wholesale supplier).
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

If it is interrupted, run it again to resume. You can add warehouses later.";

const TPCC_RUN: &str = "\
Examples:
  evenkeel bench tpcc run -c 16 -r 30 -l 300 --plot tpcc.svg
  evenkeel bench tpcc run -c 64 --rate 500 -l 10m --json
  evenkeel bench tpcc run -c 16 --repeat 5 --json > a.json        Five runs, for `bench compare`
  evenkeel bench tpcc run -c 100 --keyed -r 5m -l 2h              Ten connections for each of ten warehouses

Exit codes: 4 the result does not count: the tables are inconsistent afterwards, too many transactions
failed, or the server is down; 14 the tables were inconsistent before, or are empty.";

const TPCC_CHECK: &str = "\
Examples:
  evenkeel bench tpcc check --database tpcc
  evenkeel bench tpcc check --json

Run it while nothing writes to the tables. Exit code 4: a condition is violated.";

/// What to do.
#[derive(Subcommand, Debug)]
pub enum TpccVerb {
    /// Create and fill the tables, or resume an interrupted load.
    Load(TpccLoad),
    /// Run the transactions and measure them.
    Run(TpccRun),
    /// Check the specification's conditions on the tables.
    Check(TpccCheck),
}

/// Create and fill the tables, or resume an interrupted load.
#[derive(Args, Debug)]
#[command(after_help = TPCC_LOAD)]
pub struct TpccLoad {
    /// How many warehouses, of about 90 MB each.
    #[arg(long, short = 'w', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=32767))]
    pub warehouses: u16,
    /// The schema; created if missing.
    #[arg(long, short = 'd', value_name = "NAME", default_value = "tpcc")]
    pub database: String,
    /// How many connections load in parallel.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// The seed: the same number gives the same rows.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Load only a hundredth of the items and customers, to try it out; not for measurements.
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
    /// Use only the first N warehouses [default: all that were loaded].
    #[arg(long, short = 'w', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=32767))]
    pub warehouses: Option<u16>,
    /// How many connections.
    #[arg(long, short = 'c', value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    pub connections: u16,
    /// The ramp-up time, which is not measured; a number without a unit is in seconds.
    #[arg(long, short = 'r', value_name = "TIME", default_value = "10", value_parser = seconds)]
    pub ramp_up: Duration,
    /// How long to measure.
    #[arg(long, short = 'l', value_name = "TIME", default_value = "60", value_parser = seconds)]
    pub measure: Duration,
    /// The length of an interval in the report.
    #[arg(long, short = 'i', value_name = "TIME", default_value = "10", value_parser = seconds)]
    pub interval: Duration,
    /// Start this many transactions per second, and measure each from its scheduled start [default: start
    /// each when the previous one on its connection has ended].
    #[arg(long, value_name = "N", conflicts_with = "keyed", value_parser = rate)]
    pub rate: Option<f64>,
    /// Use the specification's keying and think times, which expect ten connections per warehouse.
    #[arg(long)]
    pub keyed: bool,
    /// Stop if more transactions than this have failed; deadlocks are retried and do not count.
    #[arg(long, value_name = "N")]
    pub max_failures: Option<u64>,
    /// Measure this many times in a row, for a median and a spread, and for `bench compare`.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=60))]
    pub repeat: u16,
    /// Reproduce the faults of tpcc-mysql, to compare with its results: limits in milliseconds, missing
    /// counts, half of the customers with bad credit. Afterwards, the tables are useless for other runs.
    #[arg(long)]
    pub like_tpcc_mysql: bool,
    /// Do not check the tables before and after; the result says so.
    #[arg(long)]
    pub no_check: bool,
    /// Repeat the random choices of an earlier run [default: random].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Plot the throughput over time to this SVG file.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Write a report to this file: one HTML page with plots, the machine and the settings.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// tpcc_start's file for the time of each New-Order; not supported: the message says what to use instead.
    #[arg(short = 'f', value_name = "FILE", hide = true)]
    pub report_file: Option<PathBuf>,
    /// tpcc_start's file for the start and end of each New-Order; not supported: the message says what to use
    /// instead.
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

/// Measure how long servers with many tables take to start after a crash, with and without prewarm.
#[derive(Args, Debug)]
#[command(after_help = RECOVERY)]
pub struct BenchRecovery {
    /// The path of a server program, or `mariadb` or `mysql` for the installed one; repeat for several
    /// [default: the installed one].
    #[arg(long = "server", value_name = "PATH|mariadb|mysql")]
    pub servers: Vec<PathBuf>,
    /// The number of tables; several numbers are measured one after another.
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "1000,10000,30000",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub tables: Vec<u32>,
    /// The latency of each read from the data directory; 0 adds none and uses the disk as it is.
    #[arg(long, value_name = "MILLISECONDS", default_value = "1", value_parser = milliseconds)]
    pub latency_ms: f64,
    /// Change a row in this percentage of the tables before the crash, but in at least one table.
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = super::percent)]
    pub changed: u8,
    /// Start this many times with prewarm, and as many times without.
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub repeat: u16,
    /// Repeat the order of an earlier run [default: random].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Work in this directory, and keep the tables there for the next run [default: a new directory in the
    /// temporary directory, removed at the end].
    #[arg(long, value_name = "DIR")]
    pub work: Option<PathBuf>,
    /// Plot the times by number of tables to this SVG file.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Let prewarm keep this many reads in flight [default: measured, at most 256].
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
