//! The kept clones of one filesystem: brought forward in place by each run, never made twice.
//!
//! ```text
//! base/
//!     base.json     the generation that the clones belong to, or none while they are being moved
//!     changes       in what the clones differ from that generation, when `changed` says so
//!     files/        the clones
//! ```
//!
//! So a run that fails, or is killed while it reads, costs the next one nothing: it continues from
//! the clones as they are, and from the list of what they differ in. Killed in the moment in which
//! they are being moved, they are of no generation, and are deleted by the next run, which reads
//! everything. The order that makes this so, on disk:
//!
//! 1. `base.json` names no generation;
//! 2. clones are moved;
//! 3. clones and `changes` are on disk; 4. `base.json` names the former generation again;
//! 5. when the new generation is published, `base.json` names that, and no changes.

use super::changes::Changes;
use super::name;
use crate::failpoints::fail_point;
use crate::holding::{BaseFacts, Holding};
use crate::{Changed, SourceFile};
use evenkeel_op::own_directory::shown;
use evenkeel_op::{Context, Result};
use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const NAME: &str = "reflink";
/// The subdirectory that the clones are in.
const FILES: &str = "files";
const CHANGES: &str = "changes";

/// The clones of one filesystem, locked for this run.
pub(super) struct Mirror {
    holding: Holding,
    /// The generation that the clones belonged to when this run began.
    token: Option<String>,
    /// In what they differ from it.
    changes: Changes,
    state: MirrorState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MirrorState {
    /// As they were found.
    Found,
    /// Being moved: on disk they are of no generation.
    Moving,
    /// Moved, and on disk with their changes.
    Settled,
    /// They belong to the run's own generation, or are deleted.
    Ended,
}

impl Mirror {
    /// Takes over what is in a holding directory.
    pub(super) fn open(holding: Holding) -> Self {
        let facts = holding.facts().filter(|facts| facts.provider == NAME);
        let changes = match &facts {
            Some(facts) if facts.changed => {
                let written = fs::read(holding.base_path().join(CHANGES)).ok();
                written.and_then(|bytes| Changes::from_bytes(&bytes))
            }
            Some(_) => Some(Changes::default()),
            None => None,
        };
        Self {
            token: facts
                .filter(|_| changes.is_some())
                .and_then(|facts| facts.token),
            changes: changes.unwrap_or_default(),
            state: MirrorState::Found,
            holding,
        }
    }

    /// Returns the directory that the clones are in.
    pub(super) fn files(&self) -> PathBuf {
        self.holding.base_path().join(FILES)
    }

    /// Makes sure that nobody takes the clones for those of a generation while they are moved.
    pub(super) fn begin(&mut self) -> Result<()> {
        match (self.state, &self.token) {
            (MirrorState::Moving, _) => return Ok(()),
            (_, Some(_)) => self.holding.write_facts(&facts(None, false))?,
            (MirrorState::Found, None) => self.holding.make_base(&facts(None, false), &[FILES])?,
            (_, None) => {}
        }
        self.state = MirrorState::Moving;
        fail_point!("snapshot::reflink::moving");
        Ok(())
    }

    /// Notes in what a clone became different.
    pub(super) fn note(&mut self, name: &str, changed: Changed) {
        self.changes.add(name, changed);
    }

    /// Brings the clones to disk, with what they differ in.
    pub(super) fn settle(&mut self) -> Result<()> {
        if self.state == MirrorState::Moving && self.token.is_some() {
            let path = self.holding.base_path().join(CHANGES);
            fs::write(&path, self.changes.to_bytes())
                .context(|| format!("failed to write {}", shown(&path).display()))?;
        }
        let files = self.files();
        File::open(&files)
            .and_then(|directory| Ok(rustix::fs::syncfs(directory)?))
            .context(|| format!("failed to sync {}", shown(&files).display()))?;
        if self.state == MirrorState::Moving && self.token.is_some() {
            fail_point!("snapshot::reflink::changes_written");
            self.holding.write_facts(&facts(self.token.clone(), true))?;
            self.state = MirrorState::Settled;
            fail_point!("snapshot::reflink::settled");
        }
        Ok(())
    }

    /// Whether it is known in what the clones differ from the generation `token`.
    pub(super) fn is_of(&self, token: Option<&str>) -> bool {
        self.token.is_some() && self.token.as_deref() == token
    }

    /// Returns in what a clone differs from the generation `token`.
    pub(super) fn changed(&self, token: Option<&str>, file: &SourceFile) -> Result<Changed> {
        if !self.is_of(token) {
            return Ok(Changed::Unknown);
        }
        let path = self.files().join(name::path(&file.name));
        let size = path
            .metadata()
            .context(|| format!("failed to stat {}", shown(&path).display()))?
            .len();
        Ok(self.changes.of(&file.name, size))
    }

    /// Lets the clones be those of generation `token`; deletes all but `kept`, relative to `files`.
    pub(super) fn commit(mut self, token: &str, kept: &HashSet<PathBuf>) -> Result<()> {
        // Those of dropped tables first: the next run must not take one for a new table's.
        delete_others(&self.files(), Path::new(""), kept)?;
        self.holding
            .write_facts(&facts(Some(token.to_owned()), false))?;
        self.state = MirrorState::Ended;
        fail_point!("snapshot::reflink::committed");
        let _ = fs::remove_file(self.holding.base_path().join(CHANGES));
        Ok(())
    }

    /// Ends a run without a generation: the clones are kept if they are of use.
    pub(super) fn abandon(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let ended = match (self.state, &self.token) {
            (MirrorState::Moving, Some(_)) => self.settle(),
            (MirrorState::Moving, None) => self.holding.drop_base(),
            _ => Ok(()),
        };
        self.state = MirrorState::Ended;
        ended
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        // Nobody is left to tell of a failure here; the next run then deletes them.
        let _ = self.end();
    }
}

fn facts(token: Option<String>, changed: bool) -> BaseFacts {
    BaseFacts::now(NAME, token, changed)
}

/// Deletes every file below `top/at` that is not among `kept`, and directories left empty.
fn delete_others(top: &Path, at: &Path, kept: &HashSet<PathBuf>) -> Result<bool> {
    let directory = top.join(at);
    let failed = || format!("failed to clean up {}", shown(&directory).display());
    let mut empty = true;
    for entry in fs::read_dir(&directory).context(failed)? {
        let entry = entry.context(failed)?;
        let (path, own) = (entry.path(), at.join(entry.file_name()));
        let gone = if entry.file_type().context(failed)?.is_dir() {
            let bare = delete_others(top, &own, kept)?;
            if bare {
                fs::remove_dir(&path).context(failed)?;
            }
            bare
        } else if kept.contains(&own) {
            false
        } else {
            fs::remove_file(&path).context(failed)?;
            true
        };
        empty &= gone;
    }
    Ok(empty)
}
