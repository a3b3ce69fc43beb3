//! Saves the state of a server's data directory under a name, in a moment and almost without room,
//! and rolls back to it.
//!
//! ```text
//! save:     find (server or directory) ─► lock ─► take (paused, if it runs) ─► seal ─► name
//! rollback: find ─► lock ─► prepare (a clone of the baseline) ─► stop ─► swap ─► start ─► tidy up
//! ```
//!
//! | method | where | a running server is paused for |
//! |---|---|---|
//! | btrfs | the data directory is a subvolume's root | a flush and one snapshot |
//! | reflink | XFS, btrfs, and what else can clone files | the clones of its files |
//! | copy | everywhere | has to be stopped |
//!
//! At any moment one of two states is whole: the one that was there, until [`journal`] says that
//! the swap has begun; the baseline, from then on, since every step continues from wherever it was
//! interrupted. Whoever gets the lock next does that: see [`heal`].

mod attributes;
mod drop;
mod find;
mod guard;
mod heal;
mod inside;
mod journal;
mod list;
mod method;
mod patch;
mod plan;
mod rollback;
mod save;
mod stamps;
mod store;
mod swap;
mod tree;
mod user;

pub use drop::{DropPlan, drop_, plan_drop};
pub use list::{ListReport, list};
pub use plan::{RollbackPlan, plan_rollback};
pub use rollback::{RollbackReport, rollback};
pub use save::{SaveReport, SaveRequest, save};
pub use store::Baseline;

use evenkeel_op::Run;
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::service::Commands;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Whose data directory is meant.
#[derive(Debug, Clone)]
pub enum Whose {
    /// That of the server that answers there; it is asked.
    Running(Box<ConnectOptions>),
    /// That of a server that is not running.
    Stopped {
        /// The data directory.
        datadir: PathBuf,
        /// The server's variables, as far as its option files say.
        settings: BTreeMap<String, String>,
    },
}

/// How a baseline is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// A snapshot of the subvolume.
    Btrfs,
    /// A clone of each file.
    Reflink,
    /// A copy of each file; a rollback writes what differs.
    Copy,
}

impl Method {
    /// Returns its name: `btrfs`, `reflink`, `copy`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Btrfs => "btrfs",
            Self::Reflink => "reflink",
            Self::Copy => "copy",
        }
    }
}

/// What should be rolled back, to where, and how.
#[derive(Debug, Clone)]
pub struct RollbackRequest {
    /// Whose data directory.
    pub whose: Whose,
    /// The baseline's name.
    pub name: String,
    /// How the server is stopped and started; found out when not given.
    pub commands: Option<Commands>,
    /// Whether it is started afterwards.
    pub start: bool,
    /// Keep the state that is replaced as a baseline of this name.
    pub keep_replaced: Option<String>,
    /// How long the server may take to stop.
    pub stop_deadline: Duration,
    /// How long it may take until it answers, its crash recovery included.
    pub start_deadline: Duration,
}

impl RollbackRequest {
    /// Plans a rollback to `name` with ten minutes for each of stop and start.
    pub fn new(whose: Whose, name: impl Into<String>) -> Self {
        Self {
            whose,
            name: name.into(),
            commands: None,
            start: true,
            keep_replaced: None,
            stop_deadline: Duration::from_secs(600),
            start_deadline: Duration::from_secs(600),
        }
    }
}
