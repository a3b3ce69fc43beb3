//! Freeze a data directory for a moment, and say which byte ranges changed since an earlier one.
//!
//! | provider | atomic over | change list | stops the server |
//! |---|---|---|---|
//! | [`btrfs`] | one subvolume | yes | no |
//! | [`reflink`] | each file for itself: needs [`pause`] or the caller's splice of the redo log | yes | only with `pause` |
//! | [`lvm`] | one logical volume | if it is thin | no |
//! | [`copy`] | whatever a stopped server left | no | is stopped already |
//! | [`hook`] | what the user's own command promises | no | no |
//!
//! What is frozen is a server's directories, or [raw volumes and single files](volume).
//!
//! A run is: [`open`], `take` the files, `instant`, `seal`, read the frozen files and what `changed`,
//! `check`, publish the generation, `commit`. Each state of it is a type ([`Opened`], [`Sealed`], [`Checked`]), so that no other order compiles. Dropping a run half-way keeps the base, or what the next
//! run needs in its stead. Who may run beside whom is the matter of [`holding`].

pub mod assess;
pub mod btrfs;
pub mod copy;
pub mod extents;
mod failpoints;
pub mod filesystem;
pub mod holding;
pub mod hook;
mod ioctl;
mod kept;
pub mod lvm;
pub mod pause;
mod provider;
pub mod reflink;
mod states;
pub mod volume;

pub use assess::{Assessment, Method, assess, choose, drop_base, heal, open};
pub(crate) use provider::Provider;
pub use provider::{Atomicity, Changed, SourceFile};
pub use states::{Checked, Made, Opened, Sealed};

use std::path::PathBuf;
use std::time::Duration;

/// Where a server keeps its files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// The data directory.
    pub datadir: PathBuf,
    /// Every directory that holds files of the server.
    pub dirs: Vec<PathBuf>,
    /// Whether a server is known to be running on it.
    pub server_running: bool,
    /// Bytes that the server writes in one piece, InnoDB's page size: a power of two. 0 means that
    /// it is not known.
    pub page_bytes: u64,
    /// Raw volumes or single files that should be frozen instead of a server's files; then `datadir`
    /// and `dirs` are the directories that these lie in.
    pub volumes: Vec<PathBuf>,
}

/// What the user may say about snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Directories to keep snapshots in, at most one for each filesystem. Where none is named, a
    /// directory beside the server's is used. One inside the data directory is taken by `reflink`
    /// only; MariaDB then lists the holding directory as a database (`#mysql50#.evenkeel-…`).
    pub snapshot_dirs: Vec<PathBuf>,
    /// The user's own snapshot command.
    pub hook: Option<HookCommand>,
    /// How large a thick LVM snapshot is made, in bytes; a share of its origin when not given.
    pub snapshot_bytes: Option<u64>,
    /// Whose base the run compares with and leaves: each repository's is its own. Empty where there is none.
    pub kept_for: String,
}

/// The user's own snapshot command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCommand {
    /// Makes the snapshot; given to `sh -c`. Its last line of output is the path at which the data
    /// directory can be read.
    pub create: String,
    /// Gives the snapshot back; given to `sh -c`.
    pub release: Option<String>,
    /// How long either may take.
    pub timeout: Duration,
}
