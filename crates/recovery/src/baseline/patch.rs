//! Makes a data directory equal to a baseline that is a copy, by writing what differs.
//!
//! There is no room for a third copy, and no need: the baseline is whole throughout, every step can
//! be done again, and no server starts on what is there meanwhile (see `guard`). Files whose stamps
//! say that nobody wrote to them are not read; of the others, what differs is written.

use super::guard::{self, SYSTEM_SPACE, held};
use super::stamps::Stamps;
use super::store::{FILES, Store};
use super::{Run, attributes, tree};
use evenkeel_op::{Context, Error, Result, Unit};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
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
    patch.directory(&patch.kept.clone(), Path::new(""))?;
    tree::sync(&store.datadir)?;
    fail::fail_point!("baseline::patch::written");
    guard::take_down(&store.datadir, &held(&store.place))?;
    patch.note_stamps()?;
    patch.new.write(&kept)?;
    run.progress.end();
    Ok(patch.done)
}

impl Patch<'_> {
    /// Makes a directory equal to the one of the baseline at `source`; it is `inside` the data
    /// directory.
    fn directory(&mut self, source: &Path, inside: &Path) -> Result<()> {
        let target = self.store.datadir.join(inside);
        self.clear_unless(&target, |facts| facts.is_dir())?;
        tree::make_directory(source, &target)?;
        let mut wanted = HashSet::new();
        for entry in tree::entries(source)? {
            let name = match self.marked {
                true => tree::unmarked(&entry.file_name())?,
                false => entry.file_name(),
            };
            let (from, child) = (entry.path(), inside.join(&name));
            let kind = entry
                .file_type()
                .context(|| format!("failed to look at {}", from.display()))?;
            wanted.insert(name);
            if kind.is_dir() {
                self.directory(&from, &child)?;
            } else if kind.is_symlink() {
                tree::remove(&self.store.datadir.join(&child))?;
                tree::copy_link(&from, &self.store.datadir.join(&child))?;
            } else {
                self.run.cancel.check()?;
                self.file(&from, &child)?;
                fail::fail_point!("baseline::patch::file");
            }
        }
        self.remove_others(&target, inside.as_os_str().is_empty(), &wanted)
    }

    fn remove_others(&self, target: &Path, top: bool, wanted: &HashSet<OsString>) -> Result<()> {
        for entry in tree::entries(target)? {
            let (name, path) = (entry.file_name(), entry.path());
            let stays = wanted.contains(&name)
                || top && (tree::is_no_part(&name) || name == SYSTEM_SPACE)
                || self.keep.contains(&path);
            if !stays {
                tree::remove(&path)?;
            }
        }
        Ok(())
    }

    /// Removes what is in the way.
    fn clear_unless(&self, path: &Path, fits: impl Fn(&fs::Metadata) -> bool) -> Result<()> {
        match path.symlink_metadata() {
            Ok(facts) if !fits(&facts) => tree::remove(path),
            _ => Ok(()),
        }
    }

    fn file(&mut self, source: &Path, inside: &Path) -> Result<()> {
        let target = match inside == Path::new(SYSTEM_SPACE) {
            true => held(&self.store.place),
            false => self.store.datadir.join(inside),
        };
        let failed = || format!("failed to make {} what it was", target.display());
        self.clear_unless(&target, fs::Metadata::is_file)?;
        let from = tree::open_to_read(source).context(failed)?;
        let facts = from.metadata().context(failed)?;
        let is_same = target
            .metadata()
            .is_ok_and(|now| self.known.is_same(inside, &now));
        if !is_same {
            let to = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&target)
                .context(failed)?;
            self.bytes(&from, &to, facts.size()).map_err(|error| {
                let full = error.kind() == io::ErrorKind::StorageFull;
                let told = Error::failed(failed()).because(error);
                match full {
                    true => told.hint("make room, and run the same command again: it goes on"),
                    false => told,
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
