//! What a backup came to: a public contract, the same in JSON, in the manifest and on the screen.

use crate::left_out::LeftOut;
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::replication::SourceCoordinates;
use serde::{Deserialize, Serialize};

/// One generation, as `backup` and `generations` report it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GenerationReport {
    /// Where it came from: host and data directory.
    pub source: String,
    /// Its number in the repository, from 1.
    pub generation: u32,
    /// `full`, `incremental` or `differential`.
    pub kind: String,
    /// The generation it was compared with; none for a full one.
    pub based_on: Option<u32>,
    /// Files it holds.
    pub files: u64,
    /// Sum of the sizes of those files.
    pub bytes_logical: u64,
    /// Bytes read from the snapshot.
    pub bytes_read: u64,
    /// Bytes in blocks that differ from `based_on`.
    pub bytes_changed: u64,
    /// Bytes the generation added to the repository, maps included.
    pub bytes_stored: u64,
    /// InnoDB pages whose checksum was checked.
    pub pages_checked: u64,
    /// Pages that failed it, of which the doublewrite buffer in the image has a good copy: crash
    /// recovery puts it back.
    #[serde(default)]
    pub pages_torn: u64,
    /// Pages that failed it and have no such copy.
    pub pages_corrupt: u64,
    /// Wall-clock time of the run.
    pub seconds: f64,
    /// When the image was taken, by the clock of the server's host; null where that is not recorded.
    #[serde(default)]
    pub image_at: Option<jiff::Timestamp>,
    /// How long of it reading rested so that the server could work (`--max-impact`), in seconds.
    pub rested_s: f64,
    /// How long any lock was held.
    pub lock_ms: f64,
    /// How long commits were paused.
    pub write_pause_ms: f64,
    /// How long the applier of a replica stood (`--stop-applier`).
    #[serde(default)]
    pub applier_ms: f64,
    /// Snapshot provider, with the method where it has several: `reflink/splice`.
    pub snapshot: String,
    /// Binary log position and GTIDs the image corresponds to.
    pub coordinates: Coordinates,
    /// Where the image is in the binary logs of the sources that the server replicates from; empty
    /// for a server that is no replica.
    #[serde(default)]
    pub source_coordinates: Vec<SourceCoordinates>,
    /// Tables that the server listed and the image has; null where that is not recorded.
    #[serde(default)]
    pub tables: Option<u64>,
    /// What was left out, by rule; null where that is not recorded.
    #[serde(default)]
    pub left_out: Option<Vec<LeftOut>>,
}

/// One InnoDB page that failed its checksum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorruptPage {
    /// Generation name of the file, `data/bank/accounts.ibd`.
    pub file: String,
    /// Page number within its tablespace file.
    pub page: u64,
    /// Tablespace id.
    pub space: u32,
    /// Table it belongs to, when known.
    pub table: Option<String>,
    /// Index it belongs to, when known.
    pub index: Option<String>,
    /// What does not match.
    pub why: String,
    /// What would repair it, when that is known (a secondary index can be rebuilt).
    pub remedy: Option<String>,
}
