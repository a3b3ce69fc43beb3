//! `bench oltp`.

use super::values::{rate, seconds};
use crate::args::Connection;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

const OLTP: &str = "\
Examples:
  evenkeel bench oltp load --tables 4 --table-size 100000         About 100 MB, in parallel
  evenkeel bench oltp run --mode read-write --threads 16 --time 60
  evenkeel bench oltp run --mode point-select --rate 2000 --report oltp.html

Tables and transactions are the same as those of sysbench's oltp_*.lua, so each program can use the other's
tables.";

/// Measure a server with the small transactions of sysbench.
#[derive(Args, Debug)]
#[command(after_help = OLTP, subcommand_required = true, arg_required_else_help = true)]
pub struct BenchOltp {
    /// What to do.
    #[command(subcommand)]
    pub verb: OltpVerb,
}

const LOAD: &str = "\
Examples:
  evenkeel bench oltp load --tables 4 --table-size 100000 -S /run/mysqld/mysqld.sock
  evenkeel bench oltp load --tables 16 --table-size 1000000 --threads 8 --database sbtest16

If it is interrupted, run it again to resume.";

const RUN: &str = "\
Examples:
  evenkeel bench oltp run --mode read-write --threads 16 --ramp-up 10 --time 300 --report oltp.html
  evenkeel bench oltp run --mode read-only --distribution uniform --table-size 100000
  evenkeel bench oltp run --rate 500 --time 10m --json            500 per second, even if it cannot keep up

Exit codes: 4 the result does not count: too many transactions failed, or the server is down at the end; 14
the tables are missing or empty.";

/// What to do.
#[derive(Subcommand, Debug)]
pub enum OltpVerb {
    /// Create and fill the tables, or resume an interrupted load.
    Load(OltpLoad),
    /// Run the transactions and measure them.
    Run(OltpRun),
}

/// Create and fill the tables, or resume an interrupted load.
#[derive(Args, Debug)]
#[command(after_help = LOAD)]
pub struct OltpLoad {
    /// How many tables: `sbtest1` and so on.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub tables: u32,
    /// Rows per table, of about 210 bytes each.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=2_000_000_000))]
    pub table_size: u32,
    /// The storage engine.
    #[arg(long, value_name = "NAME", default_value = "InnoDB", value_parser = engine)]
    pub engine: String,
    /// The schema; created if missing.
    #[arg(long, value_name = "NAME", default_value = "sbtest")]
    pub database: String,
    /// How many connections load in parallel.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// The seed: the same number gives the same rows.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// Run the transactions and measure them.
#[derive(Args, Debug)]
#[command(after_help = RUN)]
pub struct OltpRun {
    /// What a transaction does.
    #[arg(long, value_enum, default_value_t = OltpMode::ReadWrite)]
    pub mode: OltpMode,
    /// The version of the transactions: sysbench 1.0, or 0.4 with its 19 requests.
    #[arg(long, value_name = "VERSION", value_enum, default_value_t = OltpCompat::Now)]
    pub compat: OltpCompat,
    /// Use this many of the tables [default: all].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub tables: Option<u32>,
    /// Query rows up to this id [default: the last].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=2_000_000_000))]
    pub table_size: Option<u32>,
    /// How many connections.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: u16,
    /// How long to measure; a number without a unit is in seconds.
    #[arg(long, value_name = "TIME", default_value = "60", value_parser = seconds)]
    pub time: Duration,
    /// The ramp-up time, which is not measured.
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = seconds)]
    pub ramp_up: Duration,
    /// The length of an interval in the report.
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = seconds)]
    pub interval: Duration,
    /// Start this many transactions per second, and measure each from its scheduled start [default: start
    /// each when the previous one on its connection has ended].
    #[arg(long, value_name = "N", value_parser = rate)]
    pub rate: Option<f64>,
    /// The distribution of the queried rows, with sysbench's parameters.
    #[arg(long, value_enum, default_value_t = OltpDistribution::Special)]
    pub distribution: OltpDistribution,
    /// Send statements as text instead of preparing them, as sysbench does with --db-ps-mode=disable.
    #[arg(long)]
    pub text: bool,
    /// Stop if more transactions than this have failed; deadlocks are retried and do not count.
    #[arg(long, value_name = "N")]
    pub max_failures: Option<u64>,
    /// Measure this many times in a row, for a median and a spread, and for `bench compare`.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=60))]
    pub repeat: u16,
    /// Repeat the random choices of an earlier run [default: random].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Plot the throughput over time to this SVG file; if there are several runs, of the median run.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// Write a report to this file: one HTML page with plots, the machine and the settings.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// The schema with the tables.
    #[arg(long, value_name = "NAME", default_value = "sbtest")]
    pub database: String,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What a transaction does.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum OltpMode {
    /// Read one row by its key.
    PointSelect,
    /// Read ten rows by their keys, and four ranges.
    ReadOnly,
    /// Read-only and write-only in one transaction: 20 statements.
    ReadWrite,
    /// Change two rows; delete one row and insert it again.
    WriteOnly,
}

/// The version of the transactions.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum OltpCompat {
    /// sysbench 1.0.
    #[value(name = "1.0")]
    Now,
    /// sysbench 0.4.
    #[value(name = "0.4")]
    Old,
}

/// The distribution of the queried rows.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum OltpDistribution {
    /// Three of four rows from the middle 1 %.
    Special,
    /// All rows equally likely.
    Uniform,
    /// Rows near the middle.
    Gaussian,
    /// 80 % from the first 20 % of the rows.
    Pareto,
    /// The n-th row with a weight of 1 / n^0.8.
    Zipfian,
}

/// Parses the name of a storage engine.
pub(super) fn engine(text: &str) -> Result<String, String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match !text.is_empty() && text.chars().all(is_word) {
        true => Ok(text.to_owned()),
        false => Err("not the name of a storage engine".to_owned()),
    }
}
