//! `prewarm`.

use super::DataDirectory;
use clap::{Args, ValueEnum};
use evenkeel_op::Error;
use std::time::Duration;

const PREWARM: &str = "\
Examples:
  evenkeel prewarm                               Before the server starts, from its option files
  evenkeel prewarm --datadir /srv/db --json
  evenkeel prewarm --pages buffer-pool           Also the pages that were in memory
  evenkeel prewarm --memory 2G --max-seconds 60  At most this much

Run prewarm before the server starts, or let evenkeel-prewarm.service do so. The server reads files one at a
time. Prewarm reads many of those files at once, so that the kernel has them in memory. Prewarm writes
nothing. If it would not help the server, it says so and reads nothing. Exit codes: 3 not everything was read,
or the limit of time or memory was reached; 14 a server is running on the directory, or the directory cannot
be read.";

/// Speed up startup after a crash: read what the server needs into memory, in parallel.
#[derive(Args, Debug)]
#[command(after_help = PREWARM)]
pub struct Prewarm {
    /// The data directory.
    #[command(flatten)]
    pub place: DataDirectory,
    /// Also read these pages: `buffer-pool` means those listed in ib_buffer_pool.
    #[arg(long, value_name = "WHICH")]
    pub pages: Option<Pages>,
    /// Use no more memory than this [default: half of what is available].
    #[arg(long, value_name = "SIZE", value_parser = super::size)]
    pub memory: Option<u64>,
    /// Stop after this time.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub max_seconds: Option<Duration>,
    /// Keep this many reads in flight [default: measured, at most 256].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub iodepth: Option<u16>,
    /// How to keep many reads in flight.
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub reader: Reader,
}

/// Other pages to read.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Those listed in `ib_buffer_pool`.
    BufferPool,
}

/// How reads are kept in flight.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// io_uring if the kernel has it, otherwise threads.
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
