//! `bench`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

const BENCH: &str = "\
Examples:
  evenkeel bench recovery --tables 1000 --plot recovery.svg   How long starts after a crash take

Each of them starts servers of its own, and touches no other.";

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
