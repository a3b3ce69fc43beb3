//! Makes a restored directory appear whole or not at all.
//!
//! Files are written into a staging directory that carries a marker of ours, and the files that a
//! server looks for first (`ibdata1`, `mysql.ibd`, the first redo log) have a suffix there, so that
//! no server accepts it by mistake. Some servers make a new system tablespace where there is none,
//! and would start with every table missing: until the true one is put over it, a few words lie in
//! its place, which no server takes for one. Publishing renames the staging directory onto the
//! target. A target that is a mount point cannot be renamed onto: then the staging directory lies
//! inside it and its entries are moved up one by one, the system schema and those files last.
//!
//! Whatever moment a run dies at, the next one finds the marker and starts over. The data directory
//! is published last, and is then nobody's to remove: its marker goes before or with that. The other
//! roots keep theirs until then, and it says which data directory they are for, so that a run for
//! the same one, and no other, may replace them.

use evenkeel_op::{Context, Error, Result};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Name of a staging directory inside a mount point, and the end of the name of one beside a target.
/// Not hidden: MySQL 9 finds no tablespace in a data directory whose name begins with a dot, and a
/// server may have to apply logs there.
const STAGING: &str = "evenkeel-restoring";
/// File that says that a staging directory is ours: in one inside a mount point; beside a target,
/// the end of its name.
const MARKER: &str = ".evenkeel-restore";
/// What the marker holds, before the data directory's path.
const MAGIC: &str = "evenkeel restore staging 2\n";
/// Suffix of the files that a server looks for first.
const HELD_SUFFIX: &str = ".evenkeel-held";
/// Those files, by their name in the top directory.
const HELD: [&str; 3] = ["ib_logfile0", "mysql.ibd", SYSTEM_SPACE];
/// The last of them, in whose place [`STOPPER`] lies until then.
const SYSTEM_SPACE: &str = "ibdata1";
/// What no server takes for a system tablespace.
const STOPPER: &str = "evenkeel is restoring here, this is not a data directory yet\n";
/// The schema without which a server with its system tablespace elsewhere does not start.
const SYSTEM_SCHEMA: &str = "mysql";

/// A directory being restored.
#[derive(Debug)]
pub(super) struct Staging {
    target: PathBuf,
    dir: PathBuf,
    marker: PathBuf,
    /// What the marker says.
    owner: Vec<u8>,
    is_data: bool,
    inside: bool,
}

impl Staging {
    /// Checks that `target` is absent or empty, and says where its staging directory would be.
    /// `data` is the data directory that it belongs to or is.
    pub(super) fn plan(target: &Path, data: &Path) -> Result<Self> {
        let absolute = |path: &Path| {
            std::path::absolute(path).context(|| format!("failed to resolve {}", path.display()))
        };
        let (target, data) = (absolute(target)?, absolute(data)?);
        let name = target
            .file_name()
            .ok_or_else(|| Error::usage(format!("{} cannot be a target", target.display())))?;
        let parent = target.parent().unwrap_or(Path::new("/")).to_path_buf();
        let inside = is_mount_point(&target, &parent)?;
        let beside = |words: [&OsStr; 3]| parent.join(words.into_iter().collect::<OsString>());
        let dir = if inside {
            target.join(STAGING)
        } else {
            beside([name, ".".as_ref(), STAGING.as_ref()])
        };
        let marker = if inside {
            dir.join(MARKER)
        } else {
            beside([".".as_ref(), name, MARKER.as_ref()])
        };
        let owner = [MAGIC.as_bytes(), data.as_os_str().as_bytes(), b"\n"].concat();
        let is_data = target == data;
        let staging = Self {
            target,
            dir,
            marker,
            owner,
            is_data,
            inside,
        };
        staging.refuse_used_target()?;
        Ok(staging)
    }

    fn refuse_used_target(&self) -> Result<()> {
        let replaceable = self.may_replace_target();
        let entries = match fs::read_dir(&self.target) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                return Err(error).context(|| format!("failed to read {}", self.target.display()));
            }
        };
        for entry in entries {
            let entry = entry.context(|| format!("failed to read {}", self.target.display()))?;
            if entry.file_name() == "lost+found" || replaceable {
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

    /// Whether what is in the target came from a run of ours that did not come to its end.
    fn may_replace_target(&self) -> bool {
        let own_marker = fs::read(&self.marker).is_ok_and(|bytes| bytes == self.owner);
        // A whole data directory may be in use by now, whatever else is there.
        own_marker && (!self.is_data || self.inside && !self.is_whole())
    }

    /// Whether a mount point holds more than a restore that did not come to its end.
    fn is_whole(&self) -> bool {
        let stopped =
            fs::read(self.target.join(SYSTEM_SPACE)).is_ok_and(|b| b == STOPPER.as_bytes());
        let others = |name: &OsString| name != STAGING && name != "lost+found";
        !stopped && names(&self.target).is_ok_and(|names| names.iter().any(others))
    }

    /// Creates the staging directory afresh, removing what an interrupted run left.
    pub(super) fn create(&self) -> Result<()> {
        self.clear()?;
        let failed = || format!("failed to write in {}", self.dir.display());
        if self.inside {
            fs::create_dir(&self.dir).context(failed)?;
            fs::write(&self.marker, &self.owner).context(failed)?;
        } else {
            // Before the directory: without it that would be a stranger's.
            fs::write(&self.marker, &self.owner).context(failed)?;
            fs::create_dir(&self.dir).context(failed)?;
        }
        fs::write(self.dir.join(SYSTEM_SPACE), STOPPER).context(failed)
    }

    /// Returns the directory to write into.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the directory that becomes the target: in a mount point, which cannot be replaced, that itself.
    pub(super) fn own_dir(&self) -> &Path {
        if self.inside { &self.target } else { &self.dir }
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

    /// Gives the held files their names, for a tool that has to work on the directory before it is
    /// shown.
    pub(super) fn unhold_all(&self) -> Result<()> {
        HELD.iter()
            .try_for_each(|name| self.unhold(name, &self.dir))
    }

    /// Holds them again.
    pub(super) fn hold_all(&self) -> Result<()> {
        for name in HELD {
            let held = self.dir.join(format!("{name}{HELD_SUFFIX}"));
            match fs::rename(self.dir.join(name), held) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).context(|| format!("failed to hold {name}"));
                }
                _ => {}
            }
        }
        fs::write(self.dir.join(SYSTEM_SPACE), STOPPER)
            .context(|| format!("failed to write in {}", self.dir.display()))
    }

    /// Makes everything durable, then makes the directory appear at its target.
    fn publish(&self) -> Result<()> {
        sync_filesystem(&self.dir)?;
        fail::fail_point!("restore::publish::synced");
        if self.inside {
            self.publish_inside()?
        } else {
            self.publish_beside()?
        }
        fail::fail_point!("restore::publish::renamed");
        let parent = self.target.parent().unwrap_or(Path::new("/"));
        sync_filesystem(if self.inside { &self.target } else { parent })
    }

    fn publish_beside(&self) -> Result<()> {
        for name in HELD {
            self.unhold(name, &self.dir)?;
        }
        fail::fail_point!("restore::publish::unheld");
        fs::rename(&self.dir, &self.target).context(|| {
            format!(
                "failed to move the restored files to {}",
                self.target.display()
            )
        })
    }

    fn publish_inside(&self) -> Result<()> {
        // First of all: until it is replaced, last of all, the target is no data directory.
        fs::write(self.target.join(SYSTEM_SPACE), STOPPER)
            .context(|| format!("failed to write in {}", self.target.display()))?;
        for entry in fs::read_dir(&self.dir).context(|| "failed to read the staging directory")? {
            let name = entry
                .context(|| "failed to read the staging directory")?
                .file_name();
            let held = name.to_str().is_some_and(|n| n.ends_with(HELD_SUFFIX));
            if !held
                && ![MARKER, SYSTEM_SPACE, SYSTEM_SCHEMA]
                    .iter()
                    .any(|kept| name == *kept)
            {
                self.move_up(&name)?;
            }
        }
        fail::fail_point!("restore::publish::unheld");
        if self.dir.join(SYSTEM_SCHEMA).exists() {
            self.move_up(SYSTEM_SCHEMA.as_ref())?;
        }
        for name in HELD {
            self.unhold(name, &self.target)?;
        }
        if self.is_data { self.settle() } else { Ok(()) }
    }

    /// Removes the marker: from now on what is in the target is nobody's to replace.
    fn settle(&self) -> Result<()> {
        remove_file_if_there(&self.marker)?;
        if self.inside {
            remove_any(&self.dir)
        } else {
            Ok(())
        }
    }

    fn move_up(&self, name: &OsStr) -> Result<()> {
        fs::rename(self.dir.join(name), self.target.join(name))
            .context(|| format!("failed to move {}", self.dir.join(name).display()))
    }

    /// Gives a held file its name. Where the restored files have no system tablespace (it is under
    /// another root), what lay in its place goes.
    fn unhold(&self, name: &str, into: &Path) -> Result<()> {
        let held = self.dir.join(format!("{name}{HELD_SUFFIX}"));
        match fs::rename(held, into.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).context(|| format!("failed to name {name}"))
            }
            Err(_) if name == SYSTEM_SPACE => remove_file_if_there(&into.join(name)),
            _ => Ok(()),
        }
    }

    /// Removes the staging directory and what an interrupted run moved out of it.
    pub(super) fn clear(&self) -> Result<()> {
        let empty = names(&self.dir)?.is_empty();
        // A marker that was cut short is one: nothing was written before it was whole.
        let marked = fs::read(&self.marker).is_ok_and(|bytes| self.owner.starts_with(&bytes));
        if !marked && !empty {
            return Err(Error::refused(format!(
                "{} was not made for this restore",
                self.dir.display()
            ))
            .hint("move it away"));
        }
        if self.may_replace_target() {
            for name in names(&self.target)? {
                if ![STAGING, SYSTEM_SPACE, "lost+found"]
                    .iter()
                    .any(|kept| name == *kept)
                {
                    remove_any(&self.target.join(name))?;
                }
            }
            remove_any(&self.target.join(SYSTEM_SPACE))?;
        }
        // The marker last: without it, what is left would be a stranger's.
        for name in names(&self.dir)?.into_iter().filter(|name| name != MARKER) {
            remove_any(&self.dir.join(name))?;
        }
        remove_any(&self.dir)?;
        remove_file_if_there(&self.marker)
    }
}

/// Makes the directories appear. The data directory comes last: until then no server finds a place
/// to start from.
pub(super) fn publish(data: &Staging, others: &[Staging]) -> Result<()> {
    for staging in others {
        staging.publish()?;
    }
    fail::fail_point!("restore::roots_published");
    data.publish()?;
    [data]
        .into_iter()
        .chain(others)
        .try_for_each(Staging::settle)
}

/// Returns the names in a directory; none when it is not there.
fn names(dir: &Path) -> Result<Vec<OsString>> {
    let failed = || format!("failed to read {}", dir.display());
    match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).context(failed),
        Ok(entries) => entries
            .map(|entry| Ok(entry.context(failed)?.file_name()))
            .collect(),
    }
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

/// Removes whatever is at a path, if anything is.
fn remove_any(path: &Path) -> Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    removed.context(|| format!("failed to remove {}", path.display()))
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
        let dir =
            std::env::temp_dir().join(format!("evenkeel-staging-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn plan(target: &Path) -> Staging {
        Staging::plan(target, target).unwrap()
    }

    #[test]
    fn a_directory_appears_whole() {
        let top = scratch("whole");
        let staging = plan(&top.join("data"));
        staging.create().unwrap();
        fs::write(staging.path(Path::new("ibdata1")), "x").unwrap();
        assert_eq!(
            fs::read_to_string(staging.dir().join("ibdata1")).unwrap(),
            STOPPER
        );
        assert!(!top.join("data").exists());
        publish(&staging, &[]).unwrap();
        assert_eq!(names(&top).unwrap(), ["data"]);
        assert_eq!(names(&top.join("data")).unwrap(), ["ibdata1"]);
        assert_eq!(fs::read_to_string(top.join("data/ibdata1")).unwrap(), "x");
        fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn held_files_are_held_again_after_a_tool_had_them() {
        let top = scratch("again");
        let staging = plan(&top.join("data"));
        staging.create().unwrap();
        fs::write(staging.path(Path::new("ibdata1")), "x").unwrap();
        let in_place = || fs::read_to_string(staging.dir().join("ibdata1")).unwrap();
        staging.unhold_all().unwrap();
        assert_eq!(in_place(), "x");
        fs::write(staging.dir().join("ib_logfile0"), "made").unwrap();
        staging.hold_all().unwrap();
        assert_eq!(in_place(), STOPPER);
        assert!(!staging.dir().join("ib_logfile0").exists());
        publish(&staging, &[]).unwrap();
        assert_eq!(fs::read_to_string(top.join("data/ibdata1")).unwrap(), "x");
        assert_eq!(
            fs::read_to_string(top.join("data/ib_logfile0")).unwrap(),
            "made"
        );
        fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn a_used_target_is_refused_and_kept() {
        let top = scratch("used");
        let staging = plan(&top.join("data"));
        staging.create().unwrap();
        fs::create_dir(top.join("data")).unwrap();
        fs::write(top.join("data/precious"), "x").unwrap();
        let error = Staging::plan(&top.join("data"), &top.join("data")).unwrap_err();
        assert_eq!(error.kind().exit_code(), 14);
        assert!(top.join("data/precious").exists());
        fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn leftovers_are_cleared_but_strangers_are_not() {
        let top = scratch("left");
        let staging = plan(&top.join("data"));
        staging.create().unwrap();
        fs::write(staging.dir().join("half"), "x").unwrap();
        staging.create().unwrap();
        assert!(!staging.dir().join("half").exists());
        fs::remove_file(&staging.marker).unwrap();
        fs::write(staging.dir().join("stranger"), "x").unwrap();
        assert!(staging.create().is_err());
        assert!(staging.dir().join("stranger").exists());
        fs::remove_dir_all(top).unwrap();
    }

    #[test]
    fn other_roots_are_replaced_until_the_data_directory_is_there() {
        let top = scratch("roots");
        let (data, redo) = (top.join("data"), top.join("redo"));
        let plan_both = || (plan(&data), Staging::plan(&redo, &data));
        let (_, first) = plan_both();
        let first = first.unwrap();
        first.create().unwrap();
        fs::write(first.path(Path::new("ib_logfile0")), "old").unwrap();
        first.publish().unwrap();
        // The run died here. One for another data directory must not touch it.
        assert!(Staging::plan(&redo, &top.join("other")).is_err());
        let (whole, again) = plan_both();
        let again = again.unwrap();
        whole.create().unwrap();
        again.create().unwrap();
        fs::write(again.path(Path::new("ib_logfile0")), "new").unwrap();
        publish(&whole, &[again]).unwrap();
        assert_eq!(fs::read_to_string(redo.join("ib_logfile0")).unwrap(), "new");
        assert!(Staging::plan(&redo, &data).is_err(), "it is settled");
        fs::remove_dir_all(top).unwrap();
    }
}
