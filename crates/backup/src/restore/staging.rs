//! Makes a restored directory appear whole or not at all.
//!
//! Files are written into a staging directory that carries a marker of ours, and the files that a
//! server looks for first (`ibdata1`, `mysql.ibd`, the first redo log) have a suffix there, so that
//! no server accepts it by mistake. Publishing renames the staging directory onto the target. A
//! target that is a mount point cannot be renamed onto: then the staging directory lies inside it
//! and its entries are moved up one by one, those files last.
//!
//! Whatever moment a run dies at, the next one finds the marker and starts over.

use evenkeel_op::{Context, Error, Result};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Name of a staging directory inside a mount point.
const INSIDE: &str = ".evenkeel-restoring";
/// File that says that a staging directory is ours.
const MARKER: &str = ".evenkeel-restore";
/// What [`MARKER`] holds.
const MAGIC: &str = "evenkeel restore staging 1\n";
/// Suffix of the files that a server looks for first.
const HELD_SUFFIX: &str = ".evenkeel-held";
/// Those files, by their name in the top directory.
const HELD: [&str; 3] = ["ib_logfile0", "mysql.ibd", "ibdata1"];

/// A directory being restored.
#[derive(Debug)]
pub(super) struct Staging {
    target: PathBuf,
    dir: PathBuf,
    inside: bool,
}

impl Staging {
    /// Checks that `target` is absent or empty, and says where its staging directory would be.
    pub(super) fn plan(target: &Path) -> Result<Self> {
        let target = std::path::absolute(target)
            .context(|| format!("failed to resolve {}", target.display()))?;
        let name = target
            .file_name()
            .ok_or_else(|| Error::usage(format!("{} cannot be a target", target.display())))?;
        let parent = target.parent().unwrap_or(Path::new("/")).to_path_buf();
        let inside = is_mount_point(&target, &parent)?;
        let dir = if inside {
            target.join(INSIDE)
        } else {
            let mut hidden = std::ffi::OsString::from(".");
            hidden.push(name);
            hidden.push(".evenkeel-restoring");
            parent.join(hidden)
        };
        let staging = Self { target, dir, inside };
        staging.refuse_used_target()?;
        Ok(staging)
    }

    fn refuse_used_target(&self) -> Result<()> {
        let interrupted = self.inside && has_marker(&self.dir);
        let entries = match fs::read_dir(&self.target) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                return Err(error).context(|| format!("failed to read {}", self.target.display()));
            }
        };
        for entry in entries {
            let entry = entry.context(|| format!("failed to read {}", self.target.display()))?;
            // After an interrupted publish, everything in the mount point came from us.
            if entry.file_name() == "lost+found" || interrupted {
                continue;
            }
            return Err(Error::refused(format!(
                "{} is not empty (it holds {})",
                self.target.display(),
                entry.file_name().display()
            ))
            .hint("give a directory that does not exist, or an empty one"));
        }
        Ok(())
    }

    /// Creates the staging directory afresh, removing what an interrupted run left.
    pub(super) fn create(&self) -> Result<()> {
        self.clear()?;
        fs::create_dir_all(&self.dir)
            .context(|| format!("failed to create {}", self.dir.display()))?;
        fs::write(self.dir.join(MARKER), MAGIC)
            .context(|| format!("failed to write in {}", self.dir.display()))
    }

    /// Returns the directory to write into.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns where the directory will be.
    pub(super) fn target(&self) -> &Path {
        &self.target
    }

    /// Returns the path to write the file `relative` at until it is published.
    pub(super) fn path(&self, relative: &Path) -> PathBuf {
        match relative.to_str() {
            Some(name) if HELD.contains(&name) => self.dir.join(format!("{name}{HELD_SUFFIX}")),
            _ => self.dir.join(relative),
        }
    }

    /// Makes everything durable, then makes the directory appear at its target.
    pub(super) fn publish(self) -> Result<()> {
        sync_filesystem(&self.dir)?;
        fail::fail_point!("restore::publish::synced");
        if self.inside { self.publish_inside()? } else { self.publish_beside()? }
        fail::fail_point!("restore::publish::renamed");
        let parent = self.target.parent().unwrap_or(Path::new("/"));
        sync_filesystem(if self.inside { &self.target } else { parent })
    }

    fn publish_beside(&self) -> Result<()> {
        for name in HELD {
            self.unhold(name, &self.dir)?;
        }
        remove_file_if_there(&self.dir.join(MARKER))?;
        fail::fail_point!("restore::publish::unheld");
        fs::rename(&self.dir, &self.target)
            .context(|| format!("failed to move the restored files to {}", self.target.display()))
    }

    fn publish_inside(&self) -> Result<()> {
        for entry in fs::read_dir(&self.dir).context(|| "failed to read the staging directory")? {
            let entry = entry.context(|| "failed to read the staging directory")?;
            let name = entry.file_name();
            let held = name.to_str().is_some_and(|n| n.ends_with(HELD_SUFFIX));
            if held || name == MARKER {
                continue;
            }
            fs::rename(entry.path(), self.target.join(&name))
                .context(|| format!("failed to move {}", entry.path().display()))?;
        }
        fail::fail_point!("restore::publish::unheld");
        for name in HELD {
            self.unhold(name, &self.target)?;
        }
        remove_file_if_there(&self.dir.join(MARKER))?;
        fs::remove_dir(&self.dir).context(|| "failed to remove the staging directory")
    }

    fn unhold(&self, name: &str, into: &Path) -> Result<()> {
        match fs::rename(self.dir.join(format!("{name}{HELD_SUFFIX}")), into.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).context(|| format!("failed to name {name}"))
            }
            _ => Ok(()),
        }
    }

    /// Removes the staging directory and, in a mount point, what was moved out of it.
    pub(super) fn clear(&self) -> Result<()> {
        if !self.dir.exists() {
            return Ok(());
        }
        let empty = fs::read_dir(&self.dir).is_ok_and(|mut entries| entries.next().is_none());
        if !has_marker(&self.dir) && !empty && !self.is_published_but_not_renamed() {
            return Err(Error::refused(format!("{} is not of evenkeel's making", self.dir.display()))
                .hint("move it away"));
        }
        if self.inside {
            for entry in fs::read_dir(&self.target).context(|| "failed to read the target")? {
                let entry = entry.context(|| "failed to read the target")?;
                if entry.file_name() != INSIDE && entry.file_name() != "lost+found" {
                    remove_any(&entry.path())?;
                }
            }
        }
        fs::remove_dir_all(&self.dir).context(|| format!("failed to remove {}", self.dir.display()))
    }

    /// A run that died between removing the marker and the rename leaves a whole directory under
    /// the staging name, which only we give.
    fn is_published_but_not_renamed(&self) -> bool {
        !self.inside && HELD.iter().any(|name| self.dir.join(name).exists())
    }
}

fn has_marker(dir: &Path) -> bool {
    fs::read(dir.join(MARKER)).is_ok_and(|bytes| MAGIC.as_bytes().starts_with(&bytes))
}

fn is_mount_point(target: &Path, parent: &Path) -> Result<bool> {
    let device = |path: &Path| match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.dev())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context(|| format!("failed to stat {}", path.display())),
    };
    let Some(above) = device(parent)? else {
        return Err(Error::usage(format!("{} does not exist", parent.display()))
            .hint("create it first: evenkeel does not guess owners and modes of parents"));
    };
    Ok(device(target)?.is_some_and(|own| own != above))
}

fn remove_any(path: &Path) -> Result<()> {
    let metadata =
        fs::symlink_metadata(path).context(|| format!("failed to stat {}", path.display()))?;
    if metadata.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
        .context(|| format!("failed to remove {}", path.display()))
}

fn remove_file_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).context(|| format!("failed to remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// One call instead of an fsync per file: with 10 000 files that is seconds.
fn sync_filesystem(path: &Path) -> Result<()> {
    let dir = fs::File::open(path).context(|| format!("failed to open {}", path.display()))?;
    rustix::fs::syncfs(&dir).context(|| format!("failed to sync {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("evenkeel-staging-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn a_directory_appears_whole() {
        let top = scratch("whole");
        let staging = Staging::plan(&top.join("data")).unwrap();
        staging.create().unwrap();
        fs::write(staging.path(Path::new("ibdata1")), "x").unwrap();
        assert!(!staging.dir().join("ibdata1").exists());
        assert!(!top.join("data").exists());
        staging.publish().unwrap();
        let mut names: Vec<_> = fs::read_dir(top.join("data"))
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["ibdata1"]);
        fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn a_used_target_is_refused_and_kept() {
        let top = scratch("used");
        fs::create_dir(top.join("data")).unwrap();
        fs::write(top.join("data/precious"), "x").unwrap();
        let error = Staging::plan(&top.join("data")).unwrap_err();
        assert_eq!(error.kind().exit_code(), 14);
        assert!(top.join("data/precious").exists());
        fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn leftovers_are_cleared_but_strangers_are_not() {
        let top = scratch("left");
        let staging = Staging::plan(&top.join("data")).unwrap();
        staging.create().unwrap();
        fs::write(staging.dir().join("half"), "x").unwrap();
        staging.create().unwrap();
        assert!(!staging.dir().join("half").exists());
        fs::remove_file(staging.dir().join(MARKER)).unwrap();
        fs::write(staging.dir().join("stranger"), "x").unwrap();
        assert!(staging.create().is_err());
        assert!(staging.dir().join("stranger").exists());
        fs::remove_dir_all(top).unwrap();
    }
}
