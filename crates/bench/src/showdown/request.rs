//! What is asked of a measurement.

use super::method::Method;
use crate::recovery::WorkLocation;
use crate::tpcc::Scale;
use evenkeel_server::launch::Binary;
use std::path::PathBuf;
use std::time::Duration;

/// The schema with the tables.
pub(super) const DATABASE: &str = "tpcc";

/// What the data directories lie on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filesystem {
    /// Whatever there is.
    Here,
    /// XFS with reflinks, made for it.
    Xfs,
    /// btrfs, made for it.
    Btrfs,
    /// ext4, made for it.
    Ext4,
}

impl Filesystem {
    /// The program that makes it.
    pub(super) fn maker(self) -> Option<(&'static str, &'static [&'static str])> {
        match self {
            Self::Here => None,
            Self::Xfs => Some(("mkfs.xfs", &["-q", "-f", "-m", "reflink=1"])),
            Self::Btrfs => Some(("mkfs.btrfs", &["-q", "-f"])),
            Self::Ext4 => Some(("mkfs.ext4", &["-q", "-F", "-m", "0"])),
        }
    }
}

/// How the servers are set.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// The buffer pool, in bytes.
    pub buffer_pool: u64,
    /// `innodb_flush_log_at_trx_commit`.
    pub flush_log: u8,
    /// Whether there is a binary log, written at each commit.
    pub binlog: bool,
    /// More options.
    pub options: Vec<String>,
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct ShowdownRequest {
    /// The server.
    pub server: Binary,
    /// How it is set.
    pub settings: ServerSettings,
    /// The ways; [`super::NONE`] is among them.
    pub methods: Vec<Method>,
    /// The program for methods that name it.
    pub evenkeel: PathBuf,
    /// How many threads methods use that can have several.
    pub threads: usize,
    /// How large the tables are.
    pub scale: Scale,
    /// Connections of the load.
    pub connections: usize,
    /// How long it runs before anything counts.
    pub ramp_up: Duration,
    /// How long is measured.
    pub measure: Duration,
    /// How long after a backup began the next one begins at the earliest.
    pub every: Duration,
    /// Rounds of each method.
    pub repeat: usize,
    /// Decides the order of rounds and what transactions are drawn.
    pub seed: u64,
    /// Where.
    pub place: WorkLocation,
    /// On what.
    pub filesystem: Filesystem,
    /// How large that is made, in bytes; as a file with holes.
    pub image_bytes: u64,
    /// Whether backups are restored.
    pub restore: bool,
}
