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
//! Whatever moment a run dies at, the next one finds the marker and starts over; a clone takes up what a clone
//! left (`take_up`). The data directory
//! is published last, and is then nobody's to remove: its marker goes before or with that. The other
//! roots keep theirs until then, and it says which data directory they are for, so that a run for
//! the same one, and no other, may replace them.
//!
//! Whoever owns the directory above may move a staging directory away and put another in its place, and who
//! owns the target of a restore may make links in it. So root makes what it works on its own, closes it to
//! everybody, reaches it by its descriptor, and gives it away when nothing is left to be written.

mod disk;
mod held;
mod lock;
mod marker;
mod take_up;

use disk::{
    holds, is_mount_point, names, remove_all_in, remove_directory, remove_file_if_there,
    sync_filesystem, without_link, write_new,
};
use evenkeel_op::disk::remove_any;
use evenkeel_op::own_directory::OwnDirectory;
use evenkeel_op::{Context, Error, Result};
use evenkeel_repository::FileMeta;
use held::{CLOSED, Held};
use lock::lock;
use marker::Marker;
pub(crate) use marker::Purpose;
use rustix::fs::Stat;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Name of a staging directory inside a mount point, and the end of the name of one beside a target.
/// Not hidden: MySQL 9 finds no tablespace in a data directory whose name begins with a dot, and a
/// server may have to apply logs there.
const STAGING: &str = "evenkeel-restoring";
/// File that says that a staging directory is ours: in a mount point; beside a target, the end of its name.
const MARKER: &str = ".evenkeel-restore";
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
/// What is in a mount point beside the data while they are restored.
const NO_DATA: [&str; 3] = [STAGING, MARKER, "lost+found"];

/// A directory being restored.
#[derive(Debug)]
pub(crate) struct Staging {
    target: PathBuf,
    /// Where it is until it is published.
    place: PathBuf,
    marker: Marker,
    is_data: bool,
    inside: bool,
    /// The staging directory, once it was made.
    made: OnceLock<Held>,
    /// The mount point that it is in, from then on, and whose that was.
    around: OnceLock<(Held, Stat)>,
    /// What the directory gets when nothing is left to be written: attributes, and another owner.
    last: OnceLock<(FileMeta, Option<(u32, u32)>)>,
}

impl Staging {
    /// The file that is no system tablespace until the end.
    pub(crate) const STOPPED: &str = SYSTEM_SPACE;

    /// Checks that `target` is absent or empty, and says where its staging directory would be.
    /// `data` is the data directory that it belongs to or is.
    pub(crate) fn plan(target: &Path, data: &Path) -> Result<Self> {
        Self::plan_for(Purpose::Restore, target, data)
    }

    /// Does the same for a directory that something else is done with than a restore.
    pub(crate) fn plan_for(purpose: Purpose, target: &Path, data: &Path) -> Result<Self> {
        let absolute = |path: &Path| {
            std::path::absolute(path).context(|| format!("failed to resolve {}", path.display()))
        };
        let (target, data) = (absolute(target)?, absolute(data)?);
        let is_data = target == data;
        let target = without_link(target)?;
        let name = target
            .file_name()
            .ok_or_else(|| Error::usage(format!("{} cannot be a target", target.display())))?;
        let parent = target.parent().unwrap_or(Path::new("/")).to_path_buf();
        let inside = is_mount_point(&target, &parent)?;
        let beside = |words: [&OsStr; 3]| parent.join(words.into_iter().collect::<OsString>());
        let (place, marker) = match inside {
            true => (target.join(STAGING), target.join(MARKER)),
            false => (
                beside([name, ".".as_ref(), STAGING.as_ref()]),
                beside([".".as_ref(), name, MARKER.as_ref()]),
            ),
        };
        let staging = Self {
            target,
            place,
            marker: Marker::new(marker, &data, purpose),
            is_data,
            inside,
            made: OnceLock::new(),
            around: OnceLock::new(),
            last: OnceLock::new(),
        };
        staging.refuse_used_target()?;
        Ok(staging)
    }

    fn refuse_used_target(&self) -> Result<()> {
        let replaceable = self.replaceable()?.is_some();
        for name in names(self.around())? {
            if name == "lost+found" || replaceable {
                continue;
            }
            return Err(Error::usage(format!(
                "{} is not empty (it holds {})",
                self.target.display(),
                name.display()
            ))
            .hint("give a directory that does not exist, or an empty one"));
        }
        Ok(())
    }

    /// Returns the target, if what is in it came from a run of ours that did not come to its end.
    fn replaceable(&self) -> Result<Option<Held>> {
        let Some(mark) = self.mark().filter(|mark| mark.whole) else {
            return Ok(None);
        };
        // A whole data directory may be in use by now, whatever else is there.
        if self.is_data && (!self.inside || self.is_whole()) {
            return Ok(None);
        }
        let place = match self.inside {
            true => self.around().join("."),
            false => self.target.clone(),
        };
        let found = OwnDirectory::find(&place)?;
        let is_it = |stat: &Stat| self.inside || Some(stat.st_ino) == mark.directory;
        Ok(found
            .filter(|(_, stat)| is_it(stat))
            .map(|(open, _)| Held::new(open)))
    }

    fn mark(&self) -> Option<marker::Found> {
        self.marker.find(self.inside.then(|| self.around()))
    }

    /// Whether a mount point holds more than a restore that did not come to its end.
    fn is_whole(&self) -> bool {
        let around = self.around();
        let others = |name: &OsString| !NO_DATA.iter().any(|ours| name == *ours);
        !holds(&around.join(SYSTEM_SPACE), STOPPER)
            && names(around).is_ok_and(|names| names.iter().any(others))
    }

    /// Creates the staging directory afresh, removing what an interrupted run left.
    pub(crate) fn create(&self) -> Result<()> {
        if self.inside {
            self.refuse_busy()?;
            self.close_around()?;
            self.refuse_used_target()?;
        }
        self.clear()?;
        // Before the directory: without it that would be a stranger's.
        let marker = self.marker.write(self.inside.then(|| self.around()))?;
        let path = self.found_at();
        DirBuilder::new()
            .mode(CLOSED)
            .create(&path)
            .context(|| format!("failed to create {}", self.place.display()))?;
        let made = Held::new(OwnDirectory::open(&path)?);
        lock(&made.open, &self.place)?;
        if !names(&made.path)?.is_empty() {
            return Err(self.refused());
        }
        let number = rustix::fs::fstat(&made.open)
            .context(|| format!("failed to look at {}", self.place.display()))?
            .st_ino;
        self.marker.note(marker, number)?;
        let dir = self.made.get_or_init(|| made);
        write_new(&dir.path.join(SYSTEM_SPACE), STOPPER)
    }

    /// Returns the directory to write into, as this process reaches it.
    pub(crate) fn dir(&self) -> &Path {
        self.made.get().map_or(&self.place, |made| &made.path)
    }

    /// Returns where that directory is, for messages to others.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    /// Returns where the directory will be.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// The target, as this process reaches it: of a mount point, when it was opened, that very one.
    fn around(&self) -> &Path {
        let around = self.around.get();
        around.map_or(&self.target, |(around, _)| &around.path)
    }

    /// Where the staging directory is found by its name.
    fn found_at(&self) -> PathBuf {
        match self.inside {
            true => self.around().join(STAGING),
            false => self.place.clone(),
        }
    }

    /// Returns the path to write the file `relative` at until it is published.
    pub(crate) fn path(&self, relative: &Path) -> PathBuf {
        match relative.to_str() {
            Some(name) if HELD.contains(&name) => self.dir().join(format!("{name}{HELD_SUFFIX}")),
            _ => self.dir().join(relative),
        }
    }

    /// Gives the held files their names, for a tool that has to work on the directory before it is
    /// shown.
    pub(crate) fn unhold_all(&self) -> Result<()> {
        HELD.iter()
            .try_for_each(|name| self.unhold(name, self.dir()))
    }

    /// Holds them again.
    pub(crate) fn hold_all(&self) -> Result<()> {
        for name in HELD {
            let held = self.dir().join(format!("{name}{HELD_SUFFIX}"));
            match fs::rename(self.dir().join(name), held) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).context(|| format!("failed to hold {name}"));
                }
                _ => {}
            }
        }
        write_new(&self.dir().join(SYSTEM_SPACE), STOPPER)
    }

    /// Makes everything durable, then makes the directory appear at its target.
    fn publish(&self) -> Result<()> {
        sync_filesystem(self.dir())?;
        fail::fail_point!("restore::publish::synced");
        if self.inside {
            self.publish_inside()?
        } else {
            self.publish_beside()?
        }
        fail::fail_point!("restore::publish::renamed");
        let parent = self.target.parent().unwrap_or(Path::new("/"));
        sync_filesystem(if self.inside { self.around() } else { parent })
    }

    fn publish_beside(&self) -> Result<()> {
        for name in HELD {
            self.unhold(name, self.dir())?;
        }
        fail::fail_point!("restore::publish::unheld");
        if let Some(made) = self.made.get() {
            self.dress(&made.open)?;
        }
        fs::rename(&self.place, &self.target).context(|| {
            format!(
                "failed to move the restored files to {}",
                self.target.display()
            )
        })
    }

    fn publish_inside(&self) -> Result<()> {
        // First of all: until it is replaced, last of all, the target is no data directory.
        write_new(&self.around().join(SYSTEM_SPACE), STOPPER)?;
        for name in names(self.dir())? {
            let held = name.to_str().is_some_and(|n| n.ends_with(HELD_SUFFIX));
            if !held
                && ![SYSTEM_SPACE, SYSTEM_SCHEMA]
                    .iter()
                    .any(|kept| name == *kept)
            {
                self.move_up(&name)?;
            }
        }
        fail::fail_point!("restore::publish::unheld");
        if self.dir().join(SYSTEM_SCHEMA).exists() {
            self.move_up(SYSTEM_SCHEMA.as_ref())?;
        }
        for name in HELD {
            self.unhold(name, self.around())?;
        }
        if let Some((around, _)) = self.around.get() {
            self.dress(&around.open)?;
        }
        if self.is_data { self.settle() } else { Ok(()) }
    }

    /// Removes the marker: from now on what is in the target is nobody's to replace.
    fn settle(&self) -> Result<()> {
        self.remove_marker()?;
        if self.inside {
            remove_all_in(self.dir())?;
            return remove_directory(&self.found_at());
        }
        Ok(())
    }

    fn remove_marker(&self) -> Result<()> {
        match self.inside {
            true => remove_file_if_there(&self.around().join(MARKER)),
            false => remove_file_if_there(self.marker.path()),
        }
    }

    fn move_up(&self, name: &OsStr) -> Result<()> {
        fs::rename(self.dir().join(name), self.around().join(name))
            .context(|| format!("failed to move {}", self.place.join(name).display()))
    }

    /// Gives a held file its name. Where the restored files have no system tablespace (it is under
    /// another root), what lay in its place goes.
    fn unhold(&self, name: &str, into: &Path) -> Result<()> {
        let held = self.dir().join(format!("{name}{HELD_SUFFIX}"));
        match fs::rename(held, into.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).context(|| format!("failed to rename {name}"))
            }
            Err(_) if name == SYSTEM_SPACE => remove_file_if_there(&into.join(name)),
            _ => Ok(()),
        }
    }

    /// Removes what a restore that failed has made.
    pub(crate) fn abandon(&self) -> Result<()> {
        self.clear()?;
        self.give_back_around()
    }

    /// Removes the staging directory and what an interrupted run moved out of it.
    fn clear(&self) -> Result<()> {
        let path = self.found_at();
        let found = OwnDirectory::find(&path)?;
        let directory = self.mark().and_then(|mark| mark.directory);
        self.lock_of_others(found.as_ref().map(|(open, _)| open))?;
        let replaceable = self.replaceable()?;
        self.lock_of_others(replaceable.as_ref().map(|target| &target.open))?;
        if let Some((open, stat)) = &found
            && directory != Some(stat.st_ino)
            && !names(&open.anchor())?.is_empty()
        {
            return Err(self.refused());
        }
        if let Some(target) = replaceable {
            for name in names(&target.path)? {
                if ![SYSTEM_SPACE]
                    .iter()
                    .chain(&NO_DATA)
                    .any(|kept| name == *kept)
                {
                    remove_any(&target.path.join(name))?;
                }
            }
            remove_any(&target.path.join(SYSTEM_SPACE))?;
        }
        // The marker last: without it, what is left would be a stranger's.
        if let Some((open, _)) = found {
            remove_all_in(&open.anchor())?;
            remove_directory(&path)?;
        }
        self.remove_marker()
    }

    fn refused(&self) -> Error {
        Error::refused(format!(
            "{} does not belong to this restore",
            self.place.display()
        ))
        .hint("move it away")
    }
}

/// Makes the directories appear. The data directory comes last: until then no server finds a place
/// to start from.
pub(crate) fn publish<'a>(
    data: &'a Staging,
    others: impl IntoIterator<Item = &'a Staging, IntoIter: Clone>,
) -> Result<()> {
    let others = others.into_iter();
    for staging in others.clone() {
        staging.publish()?;
    }
    fail::fail_point!("restore::roots_published");
    data.publish()?;
    [data]
        .into_iter()
        .chain(others)
        .try_for_each(Staging::settle)
}

#[cfg(test)]
mod tests;
