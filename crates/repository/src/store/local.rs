//! A store in a local directory: temporary name, fsync, rename, fsync of the directory.

use super::{Existing, Listed, Lock, LockMode, NewObject, Store, StoredObject, UNFINISHED, making};
use crate::names::WRITER_LOCK;
use evenkeel_op::disk::sync_directory;
use evenkeel_op::own_directory::close_to_others;
use rustix::fs::{FlockOperation, flock};
use std::fmt::Debug;
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, FileExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One change that a [`LocalStore`] is about to make. Paths are relative to the store.
#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    /// Makes a directory.
    MakeFolder(&'a str),
    /// Removes an empty directory.
    RemoveFolder(&'a str),
    /// Creates an empty file or empties an old one.
    CreateFile(&'a str),
    /// Appends to a file.
    Write(&'a str, &'a [u8]),
    /// Makes a file's content durable.
    SyncFile(&'a str),
    /// Renames a file; replaces the target if there is one.
    Rename(&'a str, &'a str),
    /// Makes the names in a directory durable.
    SyncFolder(&'a str),
    /// Removes a file.
    Remove(&'a str),
}

/// Sees every step before it is made, and may make it fail. For tests.
pub trait Tap: Send + Sync + Debug {
    /// Returns an error to make the step fail in its place.
    fn step(&self, step: Step<'_>) -> io::Result<()>;
}

/// Objects as files of a local directory.
#[derive(Debug, Clone)]
pub struct LocalStore {
    root: PathBuf,
    tap: Option<Arc<dyn Tap>>,
}

impl LocalStore {
    /// Makes a store of a directory, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { root, tap: None }
    }

    /// Makes a store whose every step goes past `tap` first.
    pub fn tapped(root: impl Into<PathBuf>, tap: Arc<dyn Tap>) -> Self {
        let root = root.into();
        Self {
            root,
            tap: Some(tap),
        }
    }

    fn step(&self, step: Step<'_>) -> io::Result<()> {
        self.tap.as_ref().map_or(Ok(()), |tap| tap.step(step))
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() {
            self.root.clone()
        } else {
            self.root.join(name)
        }
    }

    fn rename(&self, from: &str, to: &str, existing: Existing) -> io::Result<()> {
        self.step(Step::Rename(from, to))?;
        making::rename(&self.root, from, to, existing == Existing::Replace)
    }
}

/// The folder part of a name: "" for a name at the top.
fn folder_of(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

impl Store for LocalStore {
    fn create(&self, name: &str, existing: Existing) -> io::Result<Box<dyn NewObject>> {
        let temporary = format!("{name}{UNFINISHED}");
        self.step(Step::CreateFile(&temporary))?;
        let file = making::file(&self.root, &temporary)?;
        Ok(Box::new(LocalNew {
            store: self.clone(),
            name: name.to_owned(),
            temporary,
            existing,
            file,
            in_place: false,
        }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StoredObject>> {
        let file = making::existing(&self.root, name)?;
        let size = file.metadata()?.len();
        Ok(Box::new(LocalObject { file, size }))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Listed>> {
        let mut found = making::list(&self.root, folder)?;
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.step(Step::Remove(name))?;
        fine_if_missing(making::remove(&self.root, name))
    }

    fn make_folder(&self, name: &str) -> io::Result<()> {
        self.step(Step::MakeFolder(name))?;
        let path = self.path(name);
        let made = if name.is_empty() {
            DirBuilder::new().recursive(true).mode(0o700).create(&path)
        } else {
            making::folder(&self.root, name)
        };
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            other => other?,
        }
        // The new name must survive a crash before anything inside it is relied upon.
        match path.parent() {
            Some(parent) if name.is_empty() => sync_directory(parent),
            _ => self.sync_folder(folder_of(name)),
        }
    }

    fn remove_folder(&self, name: &str) -> io::Result<()> {
        self.step(Step::RemoveFolder(name))?;
        fine_if_missing(making::remove_folder(&self.root, name))
    }

    fn sync_folder(&self, name: &str) -> io::Result<()> {
        self.step(Step::SyncFolder(name))?;
        making::sync(&self.root, name)
    }

    fn try_lock(&self, name: &str, mode: LockMode) -> io::Result<Option<Box<dyn Lock>>> {
        let file = match making::kept_file(&self.root, name) {
            Ok(file) => file,
            // A repository that we may only read: a shared lock needs no more than that.
            Err(error) if mode == LockMode::Shared && is_for_readers(&error) => {
                match making::existing(&self.root, name) {
                    Ok(file) => file,
                    // Nobody who could change the repository has ever been here.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        return Ok(Some(Box::new(LocalLock { _file: None })));
                    }
                    Err(error) => return Err(error),
                }
            }
            Err(error) => return Err(error),
        };
        let operation = match mode {
            LockMode::Shared => FlockOperation::NonBlockingLockShared,
            LockMode::Exclusive => FlockOperation::NonBlockingLockExclusive,
        };
        loop {
            match flock(&file, operation) {
                Ok(()) => break,
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // What a server holds is for nobody else on this host. Whoever writes to a repository closes it,
        // also one that an earlier version left open; a directory that is none is never locked so.
        if name == WRITER_LOCK && mode == LockMode::Exclusive {
            close_to_others(&self.root)?;
        }
        Ok(Some(Box::new(LocalLock { _file: Some(file) })))
    }

    fn holder(&self, name: &str) -> Option<String> {
        super::holder::of(&self.path(name))
    }

    fn place(&self) -> String {
        self.root.display().to_string()
    }

    fn directory(&self) -> Option<&Path> {
        Some(&self.root)
    }
}

/// Whether writing is what was refused: to this user, or on this filesystem.
fn is_for_readers(error: &io::Error) -> bool {
    use io::ErrorKind::{NotFound, PermissionDenied, ReadOnlyFilesystem};
    matches!(
        error.kind(),
        NotFound | PermissionDenied | ReadOnlyFilesystem
    )
}

fn fine_if_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The kernel drops the lock when the descriptor is closed, also when the process is killed.
#[derive(Debug)]
struct LocalLock {
    _file: Option<File>,
}

impl Lock for LocalLock {}

struct LocalObject {
    file: File,
    size: u64,
}

impl StoredObject for LocalObject {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }
}

struct LocalNew {
    store: LocalStore,
    name: String,
    temporary: String,
    existing: Existing,
    file: File,
    in_place: bool,
}

impl NewObject for LocalNew {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.store.step(Step::Write(&self.temporary, bytes))?;
        self.file.write_all(bytes)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.store.step(Step::SyncFile(&self.temporary))?;
        self.file.sync_all()?;
        self.store
            .rename(&self.temporary, &self.name, self.existing)?;
        self.in_place = true;
        self.store.sync_folder(folder_of(&self.name))
    }
}

impl Drop for LocalNew {
    fn drop(&mut self) {
        if !self.in_place {
            // What cannot be removed now is removed by the next writer.
            let _ = self.store.remove(&self.temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_appear_when_finished_and_are_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::new(dir.path());
        let mut object = store.create("a", Existing::Refuse).unwrap();
        object.write(b"one").unwrap();
        assert!(store.open("a").is_err());
        object.finish().unwrap();
        assert_eq!(store.open("a").unwrap().size(), 3);

        let second = store.create("a", Existing::Refuse).unwrap();
        let error = second.finish().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        drop(store.create("b", Existing::Refuse).unwrap());
        let names: Vec<_> = store.list("").unwrap();
        assert_eq!(names.len(), 1, "{names:?}");
        store
            .create("a", Existing::Replace)
            .unwrap()
            .finish()
            .unwrap();
        assert_eq!(store.open("a").unwrap().size(), 0);
    }

    #[test]
    fn exclusive_locks_exclude_shared_ones() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::new(dir.path());
        let shared = store.try_lock("l", LockMode::Shared).unwrap().unwrap();
        let second = store.try_lock("l", LockMode::Shared).unwrap();
        assert!(second.is_some());
        assert!(store.try_lock("l", LockMode::Exclusive).unwrap().is_none());
        drop((shared, second));
        assert!(store.try_lock("l", LockMode::Exclusive).unwrap().is_some());
    }

    #[test]
    fn no_folder_that_is_a_link_is_worked_in() {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(elsewhere.path().join("kept"), "kept").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), dir.path().join("f")).unwrap();
        let store = LocalStore::new(dir.path());
        assert!(store.list("f").is_err());
        assert!(store.open("f/kept").is_err());
        assert!(store.remove("f/kept").is_err());
        assert!(store.create("f/new", Existing::Replace).is_err());
        assert!(elsewhere.path().join("kept").exists());
    }
}
