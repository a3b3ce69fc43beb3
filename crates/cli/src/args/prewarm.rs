//! `prewarm`.

use super::DataDirectory;
use clap::{Args, ValueEnum};
use evenkeel_op::Error;
use std::time::Duration;

const PREWARM: &str = "\
Examples:
  evenkeel prewarm                               What the option files say, before the server starts
  evenkeel prewarm --datadir /srv/db --json
  evenkeel prewarm --pages buffer-pool           Also the pages that were in memory
  evenkeel prewarm --memory 2G --max-seconds 60  No more than that

Run it before the server starts, or let evenkeel-prewarm.service do so. It reads what the server will
read one after the other, many at a time, so that the kernel has it in memory. Nothing is written.
Where the server would gain nothing it says so and reads nothing. Exit codes: 3 not all could be read,
or the time or the memory was up; 14 a server runs on the directory, or it may not be read.";

/// Read what a server will read when it starts after a crash, before it does, in parallel.
#[derive(Args, Debug)]
#[command(after_help = PREWARM)]
pub struct Prewarm {
    /// Which data directory.
    #[command(flatten)]
    pub place: DataDirectory,
    /// Also read these pages: `buffer-pool` are those that ib_buffer_pool lists.
    #[arg(long, value_name = "WHICH")]
    pub pages: Option<Pages>,
    /// Fill no more memory than this [default: half of what is available].
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub memory: Option<u64>,
    /// Stop after this time.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub max_seconds: Option<Duration>,
    /// Keep this many reads under way [default: found by trying, at most 256].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub iodepth: Option<u16>,
    /// How to keep many reads under way.
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub reader: Reader,
}

/// Pages to warm besides.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Those that `ib_buffer_pool` lists.
    BufferPool,
}

/// How many reads are kept under way.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// io_uring where the kernel has it, else threads.
    Auto,
    /// io_uring, or fail.
    IoUring,
    /// Threads.
    Threads,
}

/// Parses seconds: `90`, or with a unit, `1m`.
fn seconds(text: &str) -> Result<Duration, Error> {
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds)
            .map_err(|_| Error::usage(format!("'{text}' is not a duration"))),
        Err(_) => super::span(text),
    }
}
