//! Makes a data directory equal to a baseline that is a copy, by writing what differs.
//!
//! There is no room for a third copy, and no need: the baseline is whole throughout, every step can
//! be done again, and no server starts on what is there meanwhile (see `guard`). Files whose stamps
//! say that nobody wrote to them are not read; of the others, what differs is written.
//!
//! The data directory belongs to the server's account, and this may run as root: each directory is opened
//! from the one above it, and what is in it is reached through its descriptor, never through a link.

use super::guard::{self, SYSTEM_SPACE, held};
use super::stamps::Stamps;
use super::store::{FILES, Store};
use super::{Run, attributes, tree};
use evenkeel_op::open_directory::{OpenDirectory, shown};
use evenkeel_op::{Context, Error, Result, Unit};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// What is compared at once, in bytes.
const PIECE: usize = 1 << 20;
/// What is written at least where something differs, in bytes.
const BLOCK: usize = 16 << 10;

/// What a patch did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Patched {
    /// Bytes that were compared.
    pub(super) bytes_compared: u64,
    /// Bytes that were written.
    pub(super) bytes_written: u64,
}

struct Patch<'a> {
    store: &'a Store,
    kept: PathBuf,
    marked: bool,
    known: Stamps,
    new: Stamps,
    keep: HashSet<PathBuf>,
    done: Patched,
    run: Run<'a>,
}

/// Makes the data directory equal to the baseline `name`, but for the server's logs for people.
pub(super) fn patch(store: &Store, name: &str, logs: &[PathBuf], run: Run) -> Result<Patched> {
    let baseline = store.place.find(name)?;
    let kept = store.place.kept(name);
    guard::put_up(&store.place, &store.datadir)?;
    fail::fail_point!("baseline::patch::guarded");
    run.progress
        .phase("writing what differs", Some(baseline.bytes), Unit::Bytes);
    let mut patch = Patch {
        store,
        known: Stamps::read(&kept),
        new: Stamps::default(),
        marked: baseline.marked,
        kept: kept.join(FILES),
        keep: logs.iter().cloned().collect(),
        done: Patched::default(),
        run,
    };
    // They are of the state that goes; a patch that dies must not leave them behind.
    Stamps::remove(&kept)?;
    let failed = || format!("failed to open {}", store.datadir.display());
    let datadir = OpenDirectory::open(&store.datadir).context(failed)?;
    tree::make_directory(&patch.kept, &datadir.anchor().join("."))?;
    patch.directory(&patch.kept.clone(), &datadir, Path::new(""))?;
    tree::sync(&store.datadir)?;
    fail::fail_point!("baseline::patch::written");
    guard::take_down(&store.datadir, &held(&store.place))?;
    patch.note_stamps()?;
    patch.new.write(&kept)?;
    run.progress.end();
    Ok(patch.done)
}

impl Patch<'_> {
    /// Makes the directory `here`, which is `inside` the data directory, equal to the one of the baseline
    /// at `source`. Its attributes are right already.
    fn directory(&mut self, source: &Path, here: &OpenDirectory, inside: &Path) -> Result<()> {
        let mut wanted = HashSet::new();
        for entry in tree::entries(source)? {
            let name = match self.marked {
                true => tree::unmarked(&entry.file_name())?,
                false => entry.file_name(),
            };
            let (from, child) = (entry.path(), inside.join(&name));
            let target = here.anchor().join(&name);
            let kind = entry
                .file_type()
                .context(|| format!("failed to look at {}", from.display()))?;
            if kind.is_dir() {
                clear_unless(&target, fs::Metadata::is_dir)?;
                tree::make_directory(&from, &target)?;
                let failed = || format!("failed to open {}", shown(&target).display());
                let below = here.child(&name).context(failed)?;
                self.directory(&from, &below, &child)?;
            } else if kind.is_symlink() {
                tree::remove(&target)?;
                tree::copy_link(&from, &target)?;
            } else {
                self.run.cancel.check()?;
                match child == Path::new(SYSTEM_SPACE) {
                    true => self.file(&from, &held(&self.store.place), &child)?,
                    false => self.file(&from, &target, &child)?,
                }
                fail::fail_point!("baseline::patch::file");
            }
            wanted.insert(name);
        }
        self.remove_others(here, inside, &wanted)
    }

    fn remove_others(
        &self,
        here: &OpenDirectory,
        inside: &Path,
        wanted: &HashSet<OsString>,
    ) -> Result<()> {
        let top = inside.as_os_str().is_empty();
        for entry in tree::entries(&here.anchor())? {
            let name = entry.file_name();
            let stays = wanted.contains(&name)
                || top && (tree::is_no_part(&name) || name == SYSTEM_SPACE)
                || self
                    .keep
                    .contains(&self.store.datadir.join(inside).join(&name));
            if !stays {
                tree::remove(&entry.path())?;
            }
        }
        Ok(())
    }

    /// Makes the file `target`, which is `inside` the data directory, equal to `source`.
    fn file(&mut self, source: &Path, target: &Path, inside: &Path) -> Result<()> {
        let failed = || format!("failed to restore {}", shown(target).display());
        clear_unless(target, tree::is_only_name)?;
        let from = tree::open_to_read(source).context(failed)?;
        let facts = from.metadata().context(failed)?;
        let is_same = target
            .symlink_metadata()
            .is_ok_and(|now| self.known.is_same(inside, &now));
        if !is_same {
            let to = tree::open_to_write(target).context(failed)?;
            self.bytes(&from, &to, facts.size()).map_err(|error| {
                let full = error.kind() == io::ErrorKind::StorageFull;
                let reported = Error::failed(failed()).because(error);
                match full {
                    true => {
                        reported.hint("free some space, and run the same command again: it resumes")
                    }
                    false => reported,
                }
            })?;
            attributes::copy(&from, &facts, &to).context(failed)?;
        }
        self.run.progress.advance(facts.size());
        Ok(())
    }

    /// Writes what differs.
    fn bytes(&mut self, from: &File, to: &File, size: u64) -> io::Result<()> {
        let (mut one, mut other) = (vec![0; PIECE], vec![0; PIECE]);
        if to.metadata()?.size() > size {
            to.set_len(size)?;
        }
        let mut at = 0;
        while at < size {
            let count = tree::read_full(from, &mut one, at)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let there = tree::read_full(to, &mut other, at)?;
            self.done.bytes_compared += count as u64;
            for start in (0..count).step_by(BLOCK) {
                let end = (start + BLOCK).min(count);
                let new = &one[start..end];
                // A hole at its end is one already, or will be.
                let is_equal = match other.get(start..end.min(there)) {
                    Some(old) if end <= there => old == new,
                    _ => start >= there && new.iter().all(|byte| *byte == 0),
                };
                if !is_equal {
                    to.write_all_at(new, at + start as u64)?;
                    self.done.bytes_written += new.len() as u64;
                }
            }
            at += count as u64;
            self.run.cancel.check().map_err(io::Error::other)?;
        }
        to.set_len(size)
    }

    /// Notes what everything is like now, for the next rollback.
    fn note_stamps(&mut self) -> Result<()> {
        note(&self.store.datadir, &self.store.datadir, &mut self.new)
    }
}

/// Removes what is in the way.
fn clear_unless(path: &Path, fits: impl Fn(&fs::Metadata) -> bool) -> Result<()> {
    match path.symlink_metadata() {
        Ok(facts) if !fits(&facts) => tree::remove(path),
        _ => Ok(()),
    }
}

/// Adds the stamps of all files in a data directory.
pub(super) fn note(datadir: &Path, directory: &Path, stamps: &mut Stamps) -> Result<()> {
    for entry in tree::entries(directory)? {
        if directory == datadir && tree::is_no_part(&entry.file_name()) {
            continue;
        }
        let path = entry.path();
        let facts = entry
            .metadata()
            .context(|| format!("failed to look at {}", path.display()))?;
        if facts.is_dir() {
            note(datadir, &path, stamps)?;
        } else if facts.is_file() {
            stamps.add(path.strip_prefix(datadir).unwrap_or(&path), &facts);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
