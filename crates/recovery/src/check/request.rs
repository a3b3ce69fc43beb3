//! What to check, and with what effort.

use evenkeel_repository::Location;
use evenkeel_server::options::ConnectOptions;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What to check, and with what effort.
#[derive(Debug, Clone)]
pub struct CheckRequest {
    /// Whose pages.
    pub target: Target,
    /// How many threads read.
    pub workers: usize,
    /// Bytes read per second at most; 0: no limit.
    pub rate_bytes_per_s: u64,
    /// The repository in which good copies of damaged pages are looked for.
    pub copies: Option<Location>,
    /// Look in this generation only.
    pub copies_generation: Option<u32>,
    /// Write good copies over damaged pages, where that is proven right.
    pub execute: bool,
    /// Where damaged pages are kept before they are overwritten; beside the data directory when not
    /// given.
    pub keep_damaged: Option<PathBuf>,
}

/// Whose pages to check.
#[derive(Debug, Clone)]
pub enum Target {
    /// A running server of this host.
    Live(Box<ConnectOptions>),
    /// A server that is stopped.
    Stopped {
        /// Its data directory.
        datadir: PathBuf,
        /// Its variables as far as they are known; defaults stand for others.
        settings: BTreeMap<String, String>,
    },
    /// Any files, and directories with such files in them.
    Paths(Vec<PathBuf>),
    /// A generation of a repository, the newest when no number is given.
    Generation(Location, Option<u32>),
}

impl CheckRequest {
    /// Plans a check of everything, with one thread for each core.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            workers: std::thread::available_parallelism().map_or(2, usize::from),
            rate_bytes_per_s: 0,
            copies: None,
            copies_generation: None,
            execute: false,
            keep_damaged: None,
        }
    }
}
