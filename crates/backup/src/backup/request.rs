//! What the caller wants backed up, and how.

use evenkeel_repository::{Compression, Location};
use evenkeel_server::lock::Limits;
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::replication::Program;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One backup run.
#[derive(Debug, Clone)]
pub struct BackupRequest {
    /// Where the repository is; created when there is none.
    pub repository: Location,
    /// The server.
    pub source: Source,
    /// What to compare with.
    pub kind: RunKind,
    /// What is backed up takes the place of what the repository holds backups of.
    pub new_source: bool,
    /// How to freeze the files.
    pub snapshot: SnapshotChoice,
    /// Where clones are kept between runs, instead of beside the data directory: at most one for
    /// each file system.
    pub snapshot_dirs: Vec<PathBuf>,
    /// How large a thick LVM snapshot is made, in bytes; a share of its origin when not given.
    pub snapshot_bytes: Option<u64>,
    /// Stop the server process for the length of the clone instead of splicing the checkpoint.
    pub stop_server: bool,
    /// Which lock stands around the snapshot.
    pub lock: LockWish,
    /// How long to wait for the lock and to hold it.
    pub limits: Limits,
    /// What becomes of the applier of a replica meanwhile.
    pub applier: ApplierWish,
    /// Read everything, and treat a change outside the candidate ranges as an error.
    pub audit: bool,
    /// Limit on reading, in bytes per second; 0 means none.
    pub rate_bytes_per_s: u64,
    /// How much of its throughput a running server may lose to reading, in percent; 100 means that
    /// it is not watched.
    pub max_impact_percent: u8,
    /// How thoroughly blocks are compressed.
    pub compression: Compression,
    /// Threads that read, hash and compress.
    pub workers: usize,
    /// Continue when a page is corrupt.
    pub keep_corrupt: bool,
    /// The hot-copy tool, where it is not one of the usual names.
    pub engine_tool: Option<PathBuf>,
}

impl BackupRequest {
    /// Makes a request with the usual settings.
    #[must_use]
    pub fn new(repository: impl Into<Location>, source: Source, snapshot: SnapshotChoice) -> Self {
        Self {
            repository: repository.into(),
            source,
            kind: RunKind::Auto,
            new_source: false,
            snapshot,
            snapshot_dirs: Vec::new(),
            snapshot_bytes: None,
            stop_server: false,
            lock: LockWish::Auto,
            limits: Limits::default(),
            applier: ApplierWish::GoesOn,
            audit: false,
            rate_bytes_per_s: 0,
            max_impact_percent: 5,
            compression: Compression::ByLoad,
            workers: crate::default_workers(),
            keep_corrupt: false,
            engine_tool: None,
        }
    }
}

/// Where the data directory is.
#[derive(Debug, Clone)]
pub enum Source {
    /// A running server on this host.
    Live(Box<ConnectOptions>),
    /// The data directory of a server that does not run.
    Stopped {
        /// The data directory.
        datadir: PathBuf,
        /// Settings of the server's option files, by name with underscores.
        settings: BTreeMap<String, String>,
    },
    /// Block devices and single files, whatever is in them.
    Volumes(Vec<PathBuf>),
}

/// What a run compares with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    /// The newest generation, or nothing when there is none.
    Auto,
    /// Nothing: everything is stored again.
    Full,
    /// The generation with this number.
    Against(u32),
}

/// How to freeze the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotChoice {
    /// The best that works here.
    Auto,
    /// A btrfs subvolume snapshot.
    Btrfs,
    /// A clone of each file (XFS, btrfs).
    Reflink,
    /// A snapshot of the LVM volume.
    Lvm,
    /// No snapshot: the server is stopped.
    Copy,
    /// No snapshot: the server's own hot-copy tool streams the files.
    Engine,
    /// The user's own command, run under the lock.
    Hook {
        /// Makes the snapshot and prints where the data directory can be read.
        command: String,
        /// Removes it.
        release: Option<String>,
    },
}

/// Which lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWish {
    /// The lightest one that makes the image consistent.
    Auto,
    /// FLUSH TABLES WITH READ LOCK, whatever the tables.
    GlobalRead,
    /// None: only where the snapshot is atomic, the coordinates are read from the image.
    None,
}

/// What becomes of the applier of a replica while its files are frozen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApplierWish {
    /// It continues.
    GoesOn,
    /// It stands; this program starts it again if we do not live to do it.
    Stop(Program),
}
