//! What a manifest says about a generation besides its files: kept by `backup`, read by the rest.

use crate::left_out::LeftOut;
use crate::report::{CorruptPage, GenerationReport};
use crate::tables::TableRecord;
use evenkeel_op::{Context, Error, ErrorKind, Result};
use evenkeel_repository::Manifest;
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::files::relative_path;
use evenkeel_server::replication::SourceCoordinates;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The facts of one generation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Snapshot provider and method: `reflink/splice`.
    pub snapshot: String,
    /// What was paused for the moment of the snapshot: `block-commit`, `block-commit-stop`, `global-read`,
    /// `stop`, `none`.
    pub moment: String,
    /// Bytes read from the snapshot.
    pub bytes_read: u64,
    /// Bytes in blocks that differ from the base.
    pub bytes_changed: u64,
    /// InnoDB pages checked.
    pub pages_checked: u64,
    /// Pages that failed the check, with a good copy in the doublewrite buffer.
    #[serde(default)]
    pub pages_torn: u64,
    /// Pages that failed the check, without one.
    pub pages_corrupt: u64,
    /// Those pages, the first thousand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corrupt: Vec<CorruptPage>,
    /// Time until the commit.
    pub seconds: f64,
    /// The image has nothing that was begun after this, by the clock of the server's host. Not in generations
    /// from before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_at: Option<jiff::Timestamp>,
    /// How long of it reading rested so that the server could work.
    #[serde(default)]
    pub rested_s: f64,
    /// How long any lock was held.
    pub lock_ms: f64,
    /// How long commits were paused.
    pub write_pause_ms: f64,
    /// How long the applier of a replica stood.
    #[serde(default)]
    pub applier_ms: f64,
    /// Where a replica was in the binary logs of its sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_coordinates: Vec<SourceCoordinates>,
    /// The server's version, when it ran.
    pub server_version: Option<String>,
    /// The server's program, when it ran.
    pub server_program: Option<String>,
    /// Settings that a server on the restored files needs.
    pub settings: BTreeMap<String, String>,
    /// Directories that were backed up, by root id.
    pub roots: BTreeMap<String, String>,
    /// Where each volume was, by its name in the generation; nothing in one of a server's files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub volumes: BTreeMap<String, String>,
    /// The tables that it has. Not in generations from before they were recorded, of a stopped MySQL 8, and
    /// of volumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<TableRecord>,
    /// What was left out, by rule; not in generations from before that was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<Vec<LeftOut>>,
}

/// The root that volumes are in.
pub(crate) const VOLUME_ROOT: &str = "volume";
/// The root that is a server's data directory.
pub(crate) const DATA_ROOT: &str = "data";

/// The root of binary logs that lay outside it.
pub(crate) const LOG_ROOT: &str = "binlog";

impl Facts {
    /// Whether the generation is one of volumes, not of a server.
    #[must_use]
    pub fn is_of_volumes(&self) -> bool {
        !self.volumes.is_empty()
    }

    /// Says that there are corrupt pages in it, if there are.
    pub(crate) fn corrupt_pages(&self, generation: u32) -> Option<String> {
        let pages = match self.pages_corrupt {
            0 => return None,
            1 => "a corrupt page, stored as the server had it".to_owned(),
            count => format!("{count} corrupt pages, stored as the server had them"),
        };
        Some(format!(
            "generation {generation} has {pages}; 'evenkeel generations' with its number lists \
             the corrupt pages"
        ))
    }

    /// Returns the root that a restore's target becomes.
    pub(crate) fn main_root(&self) -> &'static str {
        match self.is_of_volumes() {
            true => VOLUME_ROOT,
            false => DATA_ROOT,
        }
    }

    /// Whether the facts of a manifest are sealed, and the key is not at hand: nothing of them is known.
    #[must_use]
    pub fn are_sealed(manifest: &Manifest) -> bool {
        manifest.facts.is_null() && manifest.coordinates.is_null()
    }

    /// Reads the facts of a manifest.
    pub fn of(manifest: &Manifest) -> Result<Self> {
        if Self::are_sealed(manifest) {
            return Ok(Self::default());
        }
        let facts: Self = serde_json::from_value(manifest.facts.clone()).context(|| {
            format!(
                "failed to read the facts of generation {}",
                manifest.generation
            )
        })?;
        let strange = facts.roots.keys().find(|id| !is_root(id));
        match strange {
            None => Ok(facts),
            Some(id) => Err(Error::new(
                ErrorKind::Differs,
                format!(
                    "the manifest of generation {} names the root '{id}', which evenkeel does not know",
                    manifest.generation
                ),
            )
            .hint("evenkeel did not write the repository in this state; nothing was restored")),
        }
    }
}

/// The roots that there are besides those of schemas.
const ROOTS: [&str; 12] = [
    DATA_ROOT,
    VOLUME_ROOT,
    LOG_ROOT,
    "binlog-index",
    "relay",
    "relay-index",
    "innodb-home",
    "redo",
    "undo",
    "doublewrite",
    "aria-log",
    "keyring",
];

/// Whether this is the id of a root as `backup` gives them: one of those that there are, with a number where
/// there is more than one, `tablespaces-` and a number, or `schema-` and the name of the schema as one part of
/// a path. Links and directories are made of it.
pub(crate) fn is_root(id: &str) -> bool {
    if let Some(schema) = id.strip_prefix("schema-") {
        let inside = format!("{DATA_ROOT}/{schema}");
        return relative_path(&inside).is_some_and(|(_, path)| path.components().count() == 1);
    }
    let word = match id.rsplit_once('-') {
        Some((word, number)) if number.parse::<u32>().is_ok_and(|n| n.to_string() == number) => {
            word
        }
        _ => id,
    };
    ROOTS.contains(&word) || (word == "tablespaces" && id != word)
}

/// Returns what `backup` reported about a generation.
pub fn report_of(manifest: &Manifest) -> Result<GenerationReport> {
    let facts = Facts::of(manifest)?;
    let coordinates: Coordinates = match manifest.coordinates {
        serde_json::Value::Null => Coordinates::default(),
        _ => serde_json::from_value(manifest.coordinates.clone())
            .context(|| "failed to read the coordinates of a generation")?,
    };
    Ok(GenerationReport {
        source: manifest.source.clone(),
        generation: manifest.generation,
        kind: manifest.kind.name().to_owned(),
        based_on: manifest.based_on.map(|base| base.generation),
        files: manifest.files,
        bytes_logical: manifest.bytes_logical,
        bytes_read: facts.bytes_read,
        bytes_changed: facts.bytes_changed,
        bytes_stored: manifest.bytes_stored,
        pages_checked: facts.pages_checked,
        pages_torn: facts.pages_torn,
        pages_corrupt: facts.pages_corrupt,
        seconds: facts.seconds,
        image_at: facts.image_at,
        rested_s: facts.rested_s,
        lock_ms: facts.lock_ms,
        write_pause_ms: facts.write_pause_ms,
        applier_ms: facts.applier_ms,
        source_coordinates: facts.source_coordinates,
        snapshot: facts.snapshot,
        coordinates,
        tables: facts.tables.map(|record| record.tables),
        left_out: facts.left_out,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_words_and_never_paths() {
        for id in [
            "data",
            "volume",
            "binlog",
            "keyring-2",
            "innodb-home",
            "innodb-home-2",
            "aria-log",
            "tablespaces-12",
            "schema-shop",
            "schema-a.b",
            "schema-x@002dy",
        ] {
            assert!(is_root(id), "{id}");
        }
        for id in [
            "",
            "-",
            "data-",
            "data-x",
            "data-+1",
            "tablespaces",
            "etc",
            "../data",
            "/etc",
            "schema-",
            "schema-..",
            "schema-.",
            "schema-../../etc/cron.d/x",
            "schema-/etc/cron.d/x",
            "schema-a/b",
            "schema-\\x2e\\x2e",
            "schema-a\\x00",
        ] {
            assert!(!is_root(id), "{id}");
        }
    }
}
