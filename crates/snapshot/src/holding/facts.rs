//! What is written beside a kept base: whose it is, and whether it still is as it was.

use super::door::write_synced;
use evenkeel_op::disk::sync_directory;
use evenkeel_op::own_directory::shown;
use evenkeel_op::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) const FACTS: &str = "base.json";
const FACTS_UNFINISHED: &str = "base.json.new";
const FORMAT: u32 = 2;

/// What is known of a kept base, as written to `base.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseFacts {
    /// Always 2 so far.
    pub format: u32,
    /// What the caller named this base: the generation it belongs to. None while it is changed.
    pub token: Option<String>,
    /// Whether it is no longer equal to that generation: the provider knows where.
    pub changed: bool,
    /// The provider that made it.
    pub provider: String,
    /// When, in seconds since 1970.
    pub created_unix_s: u64,
}

impl BaseFacts {
    /// Describes a base as it is made or changed now.
    pub(crate) fn now(provider: &str, token: Option<String>, changed: bool) -> Self {
        Self {
            format: FORMAT,
            token,
            changed,
            provider: provider.to_owned(),
            created_unix_s: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
        }
    }
}

/// Reads what is known of a base; nothing where it is not readable, or no directory: a link is no base.
pub(super) fn read(base: &Path) -> Option<BaseFacts> {
    if !fs::symlink_metadata(base).ok()?.is_dir() {
        return None;
    }
    let text = super::door::read(&base.join(FACTS)).ok()?;
    serde_json::from_slice(&text)
        .ok()
        .filter(|facts: &BaseFacts| facts.format == FORMAT)
}

/// Replaces what is known of a base in one step, on disk when it returns.
pub(super) fn write(directory: &Path, facts: &BaseFacts) -> Result<()> {
    let path = directory.join(FACTS);
    let unfinished = directory.join(FACTS_UNFINISHED);
    let failed = || format!("failed to write {}", shown(&path).display());
    let text = serde_json::to_vec_pretty(facts).context(failed)?;
    write_synced(&unfinished, &text)
        .and_then(|()| fs::rename(&unfinished, &path))
        .and_then(|()| sync_directory(directory))
        .context(failed)
}
