//! Makes a broken replica new from a healthy sibling: another replica of the same source.
//!
//! ```text
//! who is it? ─► stop ─► clone the sibling, beside ─► prepare ─► exchange ─► start ─► catch up ─► remove the old
//! └──────────── until here: the old server, as it was ───────┘└───── from here: the new one ──────┘
//! ```
//!
//! The clone is another operation's: who composes both passes it in. [`journal`] knows how far it is, so that the
//! same command continues after a kill at any moment. The source is never asked for anything: it sees a replica
//! that goes away and one that comes.

mod beside;
mod broken;
mod execute;
mod follow;
mod journal;
mod keep;
mod plan;
mod prepare;
mod refuse;
mod room;

pub use execute::{ResyncReport, known_sibling, resync};
pub use plan::{ResyncPlan, plan_resync};

use evenkeel_op::{Result, Run};
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::replication::SourceCoordinates;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What should be made new, from which sibling, and how.
#[derive(Debug, Clone)]
pub struct ResyncRequest {
    /// The broken replica's data directory.
    pub datadir: PathBuf,
    /// The account that the broken server lets in; its socket is found.
    pub options: ConnectOptions,
    /// Its socket, where it cannot be found.
    pub socket: Option<PathBuf>,
    /// Variables of a server that does not run, as far as its option files say.
    pub settings: BTreeMap<String, String>,
    /// A command that stops the server.
    pub stop_with: Option<String>,
    /// A command that starts it.
    pub start_with: Option<String>,
    /// Its program, where none runs.
    pub program: Option<PathBuf>,
    /// The healthy one.
    pub sibling: Sibling,
    /// It may replicate from another source than the broken one.
    pub other_source: bool,
    /// Keep the old files.
    pub keep_old: bool,
    /// How long the server may take to stop.
    pub stop_deadline: Duration,
    /// How long it may take until it answers.
    pub start_deadline: Duration,
    /// How long it may take until it is as far as its source.
    pub catch_up_deadline: Duration,
}

/// The healthy replica, as `replica status` says of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sibling {
    /// Its name.
    pub server: String,
    /// Its version.
    pub version: Option<String>,
    /// Its number.
    pub server_id: Option<u64>,
    /// MySQL: its UUID.
    pub server_uuid: Option<String>,
    /// What it replicates.
    pub channels: Vec<SiblingChannel>,
}

/// What it replicates from one source.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SiblingChannel {
    /// Its name.
    pub name: String,
    /// `HOST:PORT`.
    pub source: String,
    /// The source's number.
    pub source_server_id: Option<u64>,
    /// MySQL: the source's UUID.
    pub source_server_uuid: Option<String>,
    /// It does not apply all that its source has.
    pub filtered: bool,
    /// It waits for so long on purpose.
    pub delay_s: u64,
    /// `running` when it fetches.
    pub io_thread: String,
    /// `running` when it applies.
    pub sql_thread: String,
}

impl Sibling {
    /// Whether it is the same server, with the same source.
    fn is(&self, other: &Self) -> bool {
        let source = |one: &Self| one.channels.first().map(|it| it.source.clone());
        (self.server_id, &self.server_uuid) == (other.server_id, &other.server_uuid)
            && source(self) == source(other)
    }
}

/// A clone of the sibling.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Image {
    /// The sibling's version.
    pub version: Option<String>,
    /// Options that a server needs to start on it.
    pub start_options: Vec<String>,
    /// Where it is in the binary logs of the sibling's sources.
    pub source_coordinates: Vec<SourceCoordinates>,
    /// The GTIDs that it has.
    pub gtid: Option<String>,
    /// Bytes that were sent.
    pub bytes_sent: u64,
    /// Blocks of 64 KiB that the old files had.
    pub blocks_reused: u64,
    /// How long the sibling's applier stood.
    pub applier_ms: f64,
}

/// Where a clone goes.
#[derive(Debug, Clone, Copy)]
pub struct CloneInto<'a> {
    /// The directory that it becomes.
    pub target: &'a Path,
    /// The old files.
    pub like: &'a Path,
    /// User and group of everything in it.
    pub owner: (u32, u32),
}

/// Clones the sibling.
pub type CloneSibling<'a> = &'a mut dyn FnMut(CloneInto<'_>, Run<'_>) -> Result<Image>;
