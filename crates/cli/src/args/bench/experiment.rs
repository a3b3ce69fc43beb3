//! `bench inserts`, `bench compression`, `bench cache`.

use super::oltp::engine;
use super::values::seconds;
use crate::args::Connection;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

const INSERTS: &str = "\
Examples:
  evenkeel bench inserts -S /run/mysqld/mysqld.sock
  evenkeel bench inserts --rows 100000 --rows-per-statement 310 --repeat 7 --report inserts.html
  evenkeel bench inserts --engine Aria --engine InnoDB --json

The benchmark runs each variant several times, in random order. It names a winner only if no run of the
runner-up reaches the winner's runs. Each run creates the table `evenkeel_inserts` and drops it.";

const COMPRESSION: &str = "\
Examples:
  evenkeel bench compression -S /run/mysqld/mysqld.sock
  evenkeel bench compression --rows 200000 --text-bytes 300 --report compression.html

Sizes are what the server reports: the length of the file, and the space allocated for it. Formats that the
server lacks are listed as left out. Each run creates the table `evenkeel_compression` and drops it.";

const CACHE: &str = "\
Examples:
  evenkeel bench cache -S /run/mysqld/mysqld.sock
  evenkeel bench cache --writes 1 --threads 8 --time 20 --report cache.html

The benchmark changes the server's query_cache_size for the runs, and restores it afterwards. If it is killed,
the next benchmark restores the setting. Do not run it on a production server. It starts its own memcached.
Each run creates the table `evenkeel_cache` and drops it.";

/// Compare ways to insert rows: one or many per statement, with and without LOCK TABLES and transactions.
#[derive(Args, Debug)]
#[command(after_help = INSERTS)]
pub struct BenchInserts {
    /// Rows per run.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub rows: u32,
    /// Rows per multi-row statement.
    #[arg(long, value_name = "N", default_value_t = 310, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub rows_per_statement: u32,
    /// A storage engine; repeat for several [default: MyISAM, Aria, InnoDB].
    #[arg(long = "engine", value_name = "NAME", value_parser = engine)]
    pub engines: Vec<String>,
    /// Options of all experiments.
    #[command(flatten)]
    pub common: Experiment,
}

/// Compare InnoDB's row formats and page compression: disk space and time.
#[derive(Args, Debug)]
#[command(after_help = COMPRESSION)]
pub struct BenchCompression {
    /// Rows per run.
    #[arg(long, value_name = "N", default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub rows: u32,
    /// Bytes of text in each row. If 8, the text is hexadecimal digits; if more, it is words.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(8..=4000))]
    pub text_bytes: u32,
    /// Options of all experiments.
    #[command(flatten)]
    pub common: Experiment,
}

/// Measure the query cache, and memcached in front of a table, at a given share of writes.
#[derive(Args, Debug)]
#[command(after_help = CACHE)]
pub struct BenchCache {
    /// Rows in the table.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub rows: u32,
    /// The percentage of requests that write.
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = share)]
    pub writes: f64,
    /// How many connections.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: u16,
    /// How long to measure each run.
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = seconds)]
    pub time: Duration,
    /// The memcached program.
    #[arg(long, value_name = "FILE", default_value = "memcached")]
    pub memcached: PathBuf,
    /// Options of all experiments.
    #[command(flatten)]
    pub common: Experiment,
}

/// Options of all experiments.
#[derive(Args, Debug)]
pub struct Experiment {
    /// Run each variant this many times.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=60))]
    pub repeat: u16,
    /// Repeat the order and the rows of an earlier run [default: random].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Write a report to this file: one HTML page with plots, the machine and the settings.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// The schema for the table; created if missing.
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
