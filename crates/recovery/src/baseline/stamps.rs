//! What tells without reading that a file was not written to since a baseline was copied: its place,
//! length and both times. Nobody can set a file's time of change back.

use super::tree;
use evenkeel_op::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Times closer than this to the look at them may be those of a later write, too.
const RACY_NS: i128 = 1_000_000_000;

/// One file's stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified_ns: i128,
    changed_ns: i128,
}

/// The stamps of a data directory's files, by their path in it.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Stamps {
    files: BTreeMap<PathBuf, Stamp>,
}

impl Stamp {
    fn of(facts: &Metadata) -> Self {
        let time = |s: i64, ns: i64| i128::from(s) * 1_000_000_000 + i128::from(ns);
        Self {
            device: facts.dev(),
            inode: facts.ino(),
            size: facts.size(),
            modified_ns: time(facts.mtime(), facts.mtime_nsec()),
            changed_ns: time(facts.ctime(), facts.ctime_nsec()),
        }
    }
}

impl Stamps {
    /// Notes a file, unless it was changed a moment ago.
    pub(super) fn add(&mut self, path: &Path, facts: &Metadata) {
        let stamp = Stamp::of(facts);
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as i128);
        if now - stamp.changed_ns > RACY_NS {
            self.files.insert(path.to_owned(), stamp);
        }
    }

    /// Returns whether a file is what it was.
    pub(super) fn is_same(&self, path: &Path, facts: &Metadata) -> bool {
        self.files.get(path) == Some(&Stamp::of(facts))
    }

    /// Reads those of a baseline; none where they cannot be read: then everything is compared.
    pub(super) fn read(baseline: &Path) -> Self {
        fs::read(path(baseline))
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default()
    }

    /// Writes them.
    pub(super) fn write(&self, baseline: &Path) -> Result<()> {
        let path = path(baseline);
        let failed = || format!("failed to write {}", path.display());
        let text = serde_json::to_vec(self).context(failed)?;
        let unfinished = path.with_extension("new");
        fs::write(&unfinished, text)
            .and_then(|()| fs::rename(&unfinished, &path))
            .context(failed)
    }

    /// Forgets those of a baseline.
    pub(super) fn remove(baseline: &Path) -> Result<()> {
        tree::remove(&path(baseline))
    }
}

fn path(baseline: &Path) -> PathBuf {
    baseline.join("stamps")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_times_are_believed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "1").unwrap();
        let facts = file.metadata().unwrap();
        let mut stamps = Stamps::default();
        stamps.add(Path::new("file"), &facts);
        assert!(!stamps.is_same(Path::new("file"), &facts));
        let old = Path::new("/bin/sh").metadata().unwrap();
        stamps.add(Path::new("exe"), &old);
        assert!(stamps.is_same(Path::new("exe"), &old));
        stamps.write(dir.path()).unwrap();
        assert!(Stamps::read(dir.path()).is_same(Path::new("exe"), &old));
        assert!(!Stamps::read(dir.path()).is_same(Path::new("exe"), &facts));
    }
}
