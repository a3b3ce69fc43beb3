//! What was warmed.

use super::read::{Limit, Reading};
use super::redo::Redo;
use evenkeel_server::stopped::StoppedServer;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

/// One kind of things that were read.
#[derive(Debug, Clone, Serialize)]
pub struct WarmedStep {
    /// What: `tablespace headers`.
    pub name: &'static str,
    /// How many files they are of.
    pub files: usize,
    /// Bytes that the server may read of them.
    pub bytes_wanted: u64,
    /// Bytes that were read.
    pub bytes_read: u64,
}

/// A file that could not be read.
#[derive(Debug, Clone, Serialize)]
pub struct Unread {
    /// Where it is.
    pub path: PathBuf,
    /// Why not.
    pub why: String,
}

/// What came of it.
#[derive(Debug, Clone, Serialize)]
pub struct PrewarmReport {
    /// The data directory.
    pub datadir: PathBuf,
    /// The server's version, as far as its files tell.
    pub server: Option<String>,
    /// `clean`, `crashed` or `unknown`.
    pub redo: &'static str,
    /// How much redo log a crash left to be applied, in bytes.
    pub redo_bytes: Option<u64>,
    /// Whether this start would read the beginning of every tablespace, one after the other: that
    /// is what takes long.
    pub reads_every_tablespace: bool,
    /// What was read, in this order.
    pub steps: Vec<WarmedStep>,
    /// Bytes that were read.
    pub bytes_read: u64,
    /// Files that went while they were read.
    pub gone_files: usize,
    /// Files that could not be read.
    pub unread_files: usize,
    /// The first of them.
    pub unread: Vec<Unread>,
    /// What ended it early: `memory` or `time`.
    pub limit: Option<&'static str>,
    /// What is of no use to this server, a sentence each.
    pub useless: Vec<String>,
    /// Most reads that were under way.
    pub depth: usize,
    /// `io_uring` or `threads`.
    pub reader: &'static str,
    /// Whether reads were sorted by where they lie on disk.
    pub sorted_by_extent: bool,
    /// How long it took.
    pub seconds: f64,
}

impl PrewarmReport {
    /// Returns whether all that was planned was read.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.limit.is_none() && self.unread_files == 0
    }
}

pub(super) fn of(
    server: &StoppedServer,
    redo: Redo,
    useless: Vec<String>,
    reading: Reading<'_>,
    begun: Instant,
) -> PrewarmReport {
    let reader = reading.reader();
    let Reading { steps, outcome, .. } = reading;
    PrewarmReport {
        datadir: server.datadir.clone(),
        server: server.maker.as_ref().map(|maker| match maker.version {
            Some(version) => format!("{} {version}", maker.flavour),
            None => maker.flavour.to_string(),
        }),
        redo: redo.name(),
        redo_bytes: match redo {
            Redo::Crashed { bytes } => Some(bytes),
            Redo::Clean | Redo::Unknown => None,
        },
        reads_every_tablespace: steps.iter().any(|step| step.name == super::plan::HEADERS),
        bytes_read: steps.iter().map(|step| step.bytes_read).sum(),
        steps,
        gone_files: outcome.gone_files(),
        unread_files: outcome.unread_files(),
        limit: outcome.limit.map(|limit| match limit {
            Limit::Memory => "memory",
            Limit::Time => "time",
        }),
        useless,
        depth: outcome.depth,
        reader,
        sorted_by_extent: outcome.sorted_by_extent,
        unread: outcome.unread,
        seconds: begun.elapsed().as_secs_f64(),
    }
}
