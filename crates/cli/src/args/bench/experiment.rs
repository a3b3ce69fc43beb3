//! `bench inserts`, `bench compression`, `bench cache`.

use super::oltp::engine;
use super::seconds;
use crate::args::Connection;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

const INSERTS: &str = "\
Examples:
  evenkeel bench inserts -S /run/mysqld/mysqld.sock
  evenkeel bench inserts --rows 100000 --rows-per-statement 310 --repeat 7 --report inserts.html
  evenkeel bench inserts --engine Aria --engine InnoDB --json

Each way is run several times, in turn and in random order; a winner is named only where no run of the next
one reaches it. The table `evenkeel_inserts` is made for each run, and dropped.";

const COMPRESSION: &str = "\
Examples:
  evenkeel bench compression -S /run/mysqld/mysqld.sock
  evenkeel bench compression --rows 200000 --text-bytes 300 --report compression.html

Sizes are those the server tells: the file's length, and what the filesystem gives to it. Formats that the
server does not have are named as left out. The table `evenkeel_compression` is made for each run, and dropped.";

const CACHE: &str = "\
Examples:
  evenkeel bench cache -S /run/mysqld/mysqld.sock
  evenkeel bench cache --writes 1 --threads 8 --time 20 --report cache.html

Changes the server's query_cache_size for the runs, and sets it back; killed, the next run does. Not for a
server in use. The memcached is
a private one. The table `evenkeel_cache` is made for each run, and dropped.";

/// Measure ways to insert rows: one or many to a statement, with and without LOCK TABLES and transactions.
#[derive(Args, Debug)]
#[command(after_help = INSERTS)]
pub struct BenchInserts {
    /// Rows of a run.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub rows: u32,
    /// Rows of a statement with several.
    #[arg(long, value_name = "N", default_value_t = 310, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub rows_per_statement: u32,
    /// A storage engine; may be given several times [default: MyISAM, Aria, InnoDB].
    #[arg(long = "engine", value_name = "NAME", value_parser = engine)]
    pub engines: Vec<String>,
    /// What all experiments have.
    #[command(flatten)]
    pub common: Experiment,
}

/// Measure what InnoDB's row formats and page compression take on disk and in time.
#[derive(Args, Debug)]
#[command(after_help = COMPRESSION)]
pub struct BenchCompression {
    /// Rows of a run.
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub rows: u32,
    /// Bytes of text in each row: 8 are hexadecimal digits, more are words.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(8..=4000))]
    pub text_bytes: u32,
    /// What all experiments have.
    #[command(flatten)]
    pub common: Experiment,
}

/// Measure the query cache and memcached before a table, under a share of writes.
#[derive(Args, Debug)]
#[command(after_help = CACHE)]
pub struct BenchCache {
    /// Rows of the table.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub rows: u32,
    /// Of a hundred requests, so many write.
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = share)]
    pub writes: f64,
    /// How many connections.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: u16,
    /// How long a run is measured.
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = seconds)]
    pub time: Duration,
    /// The program memcached.
    #[arg(long, value_name = "FILE", default_value = "memcached")]
    pub memcached: PathBuf,
    /// What all experiments have.
    #[command(flatten)]
    pub common: Experiment,
}

/// What all experiments have.
#[derive(Args, Debug)]
pub struct Experiment {
    /// Run each way this often.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=60))]
    pub repeat: u16,
    /// Run in the order of an earlier time, with its rows [default: random].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Write a report to pass on into this file: one HTML page with pictures, the machine and the settings.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// The schema for the table; made when it is not there.
    #[arg(long, value_name = "NAME", default_value = "evenkeel_bench")]
    pub database: String,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// Parses a share in percent.
fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=100.0).contains(&share) => Ok(share),
        _ => Err("not a number from 0 to 100".to_owned()),
    }
}
