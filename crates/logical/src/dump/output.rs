//! A place that is a dump only once its manifest is in it.

use super::bucket::Bucket;
use super::file_names::{MARK, MARK_TEXT};
use super::journal::JOURNAL;
use super::location::{DumpLocation, Sink};
use super::manifest::{MANIFEST, Manifest, OBJECTS, ObjectsEntry};
use super::request::Leftover;
use crate::objects::Objects;
use evenkeel_op::own_directory::{OwnDirectory, make_private, shown};
use evenkeel_op::{Context, Error, ErrorKind, Result};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The level of zstd for what is not rows: small beside them.
const OBJECTS_LEVEL: i32 = 3;

/// A dump while it is written.
#[derive(Debug)]
pub(super) enum Output {
    Local(Local),
    Bucket(Bucket),
}

impl Output {
    /// Takes a place, as [`Local::begin`] does.
    pub(super) fn begin(place: &DumpLocation, leftover: Leftover) -> Result<Self> {
        Ok(match place {
            DumpLocation::Directory(dir) => Self::Local(Local::begin(dir, leftover)?),
            DumpLocation::Store(store) => Self::Bucket(Bucket::begin(store, leftover)?),
        })
    }

    /// Refuses a directory that holds something else, and makes and changes nothing.
    pub(super) fn refuse_others(place: &DumpLocation) -> Result<()> {
        match place {
            DumpLocation::Directory(dir) => names_to_take(dir).map(drop),
            DumpLocation::Store(_) => Ok(()),
        }
    }

    /// Returns a path that leads into the directory, where it is one, whatever is at its name by now.
    pub(super) fn dir(&self) -> Option<PathBuf> {
        match self {
            Self::Local(local) => Some(local.dir.anchor()),
            Self::Bucket(_) => None,
        }
    }

    /// Returns the name of a file, for people.
    pub(super) fn shown(&self, name: &str) -> String {
        match self {
            Self::Local(local) => local.named.join(name).display().to_string(),
            Self::Bucket(bucket) => bucket.shown(name),
        }
    }

    /// Removes what an earlier dump left in a directory, but for its journal and these files.
    pub(super) fn keep_only(&self, files: &BTreeSet<&str>) -> Result<()> {
        match self {
            Self::Local(local) => local.keep_only(files),
            Self::Bucket(_) => Ok(()),
        }
    }

    /// Begins a file that is not there.
    pub(super) fn create(&self, name: &str) -> io::Result<Sink> {
        match self {
            Self::Local(local) => Ok(File::create_new(local.path(name))?.into()),
            Self::Bucket(bucket) => bucket.create(name),
        }
    }

    /// Makes the directory of a schema.
    pub(super) fn make_dir(&self, name: &str) -> Result<()> {
        match self {
            Self::Local(local) => local.make_dir(name),
            Self::Bucket(_) => Ok(()),
        }
    }

    /// Writes a small file.
    pub(super) fn write(&self, name: &str, text: &[u8]) -> Result<()> {
        match self {
            Self::Local(local) => local.write(name, text),
            Self::Bucket(bucket) => bucket.write(name, text),
        }
    }

    /// Writes what is not rows.
    pub(super) fn write_objects(&self, objects: &Objects) -> Result<ObjectsEntry> {
        let failed = || format!("failed to write {OBJECTS}");
        let text = serde_json::to_vec(objects).context(failed)?;
        let stored = zstd::encode_all(&text[..], OBJECTS_LEVEL).context(failed)?;
        self.write(OBJECTS, &stored)?;
        Ok(ObjectsEntry {
            file: OBJECTS.to_owned(),
            bytes: text.len() as u64,
            bytes_stored: stored.len() as u64,
            blake3: blake3::hash(&text).to_hex().to_string(),
        })
    }

    /// Makes everything durable and then, by its manifest, a dump.
    pub(super) fn finish(self, manifest: &Manifest) -> Result<()> {
        let text =
            serde_json::to_vec_pretty(manifest).context(|| "failed to write the manifest")?;
        let text = [&text[..], b"\n"].concat();
        match self {
            Self::Local(local) => local.finish(&text),
            Self::Bucket(bucket) => bucket.finish(&text),
        }
    }
}

/// A dump's directory while it is written.
#[derive(Debug)]
pub(super) struct Local {
    /// As it was named, for people.
    named: PathBuf,
    dir: OwnDirectory,
    mark: File,
}

impl Local {
    /// Takes a directory, which must be empty or not there, or else, on request, hold what a dump
    /// left that did not end.
    fn begin(named: &Path, leftover: Leftover) -> Result<Self> {
        let shown = named.display();
        let names = names_to_take(named)?;
        let has = |name: &str| names.iter().any(|found| found == name);
        let open = make_private(named)?;
        let dir = open.anchor();
        let path = dir.join(MARK);
        let mut mark = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .context(|| format!("failed to write {}", named.join(MARK).display()))?;
        match mark.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::new(
                    ErrorKind::Busy,
                    format!("another dump is being written to {shown}"),
                )
                .hint("wait for it, or choose another directory"));
            }
            Err(TryLockError::Error(error)) => {
                return Err(error)
                    .context(|| format!("failed to lock {}", named.join(MARK).display()));
            }
        }
        if dir.join(MANIFEST).exists() {
            // It ended while we looked; its mark was gone, and ours is of no use.
            let _ = std::fs::remove_file(&path);
            return Err(Error::usage(format!("{shown} already holds a dump")));
        }
        match leftover {
            Leftover::Refuse if has(MARK) => {
                return Err(Error::usage(format!("{shown} holds an unfinished dump"))
                    .hint("resume it with --resume, which keeps what is proved to be unchanged")
                    .hint("or clear it: --overwrite-unfinished"));
            }
            Leftover::Clear => clear(&dir, &names)?,
            Leftover::Refuse | Leftover::GoOn => {}
        }
        mark.write_all(MARK_TEXT.as_bytes())
            .context(|| format!("failed to write {}", named.join(MARK).display()))?;
        Ok(Self {
            named: named.to_owned(),
            dir: open,
            mark,
        })
    }

    /// Removes what an earlier dump left, but for its journal and these files.
    fn keep_only(&self, files: &BTreeSet<&str>) -> Result<()> {
        let failed = |path: &Path| format!("failed to clear {}", shown(path).display());
        let kept: BTreeSet<PathBuf> = files.iter().map(|file| self.path(file)).collect();
        let mut folders = vec![self.dir.anchor()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).context(|| failed(&folder))? {
                let entry = entry.context(|| failed(&folder))?;
                let (name, path) = (entry.file_name(), entry.path());
                if entry.file_type().context(|| failed(&path))?.is_dir() {
                    folders.push(path);
                } else if name != MARK && name != JOURNAL && !kept.contains(&path) {
                    std::fs::remove_file(&path).context(|| failed(&path))?;
                }
            }
        }
        Ok(())
    }

    /// Returns the path of a file of the dump.
    fn path(&self, name: &str) -> PathBuf {
        self.dir.anchor().join(name)
    }

    /// Makes the directory of a schema.
    fn make_dir(&self, name: &str) -> Result<()> {
        let path = self.path(name);
        std::fs::create_dir_all(&path)
            .context(|| format!("failed to create {}", shown(&path).display()))
    }

    /// Writes a small file.
    fn write(&self, name: &str, text: &[u8]) -> Result<()> {
        let path = self.path(name);
        std::fs::write(&path, text)
            .context(|| format!("failed to write {}", shown(&path).display()))
    }

    /// Makes everything durable and then, by its manifest, a dump.
    fn finish(self, manifest: &[u8]) -> Result<()> {
        let shown = self.named.display();
        let failed = || format!("failed to finish the dump in {shown}");
        // All files at once: one sync for each of thousands would take minutes.
        rustix::fs::syncfs(&self.mark)
            .map_err(std::io::Error::from)
            .context(failed)?;
        let draft = self.path(".manifest.json");
        let mut file = File::create(&draft).context(failed)?;
        file.write_all(manifest).context(failed)?;
        file.sync_all().context(failed)?;
        std::fs::rename(&draft, self.path(MANIFEST)).context(failed)?;
        let _ = std::fs::remove_file(self.path(JOURNAL));
        std::fs::remove_file(self.path(MARK)).context(failed)?;
        rustix::fs::fsync(&self.dir)
            .map_err(io::Error::from)
            .context(failed)
    }
}

/// Returns what is in a directory that a dump may take.
fn names_to_take(dir: &Path) -> Result<Vec<OsString>> {
    let shown = dir.display();
    let names = names_in(dir).context(|| format!("failed to list {shown}"))?;
    let has = |name: &str| names.iter().any(|found| found == name);
    if has(MANIFEST) {
        return Err(Error::usage(format!("{shown} already holds a dump"))
            .hint("choose another directory, or remove this one"));
    }
    if !names.is_empty() && !has(MARK) {
        return Err(Error::usage(format!("{shown} is not empty")).hint("choose another directory"));
    }
    Ok(names)
}

/// What is in a directory: nothing, where there is none.
fn names_in(dir: &Path) -> io::Result<Vec<OsString>> {
    match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| Ok(entry?.file_name())).collect(),
    }
}

/// Removes what an unfinished dump left, except its mark.
fn clear(dir: &Path, names: &[OsString]) -> Result<()> {
    for name in names.iter().filter(|name| *name != MARK) {
        let path = dir.join(name);
        let removed = if path.is_dir() && !path.is_symlink() {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::remove_file(&path)
        };
        removed.context(|| format!("failed to remove {}", shown(&path).display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_testkit::Scratch;

    #[test]
    fn only_an_unfinished_dump_is_cleared_and_only_on_request() {
        let scratch = Scratch::new();
        let dir = scratch.join("d");
        let first = Local::begin(&dir, Leftover::Refuse).unwrap();
        first.write("x.sql", b"x").unwrap();
        let busy = Local::begin(&dir, Leftover::Clear).unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::Busy);
        assert!(dir.join("x.sql").exists());
        drop(first);
        assert_eq!(
            Local::begin(&dir, Leftover::Refuse).unwrap_err().kind(),
            ErrorKind::Usage
        );
        drop(Local::begin(&dir, Leftover::Clear).unwrap());
        assert!(!dir.join("x.sql").exists());
        std::fs::write(dir.join(MANIFEST), "{}").unwrap();
        let error = Local::begin(&dir, Leftover::Clear).unwrap_err();
        assert!(error.to_string().contains("already"), "{error}");
        let foreign = scratch.join("f");
        std::fs::create_dir(&foreign).unwrap();
        std::fs::write(foreign.join("precious"), "p").unwrap();
        assert!(Local::begin(&foreign, Leftover::Clear).is_err());
        assert!(foreign.join("precious").exists());
    }
}
