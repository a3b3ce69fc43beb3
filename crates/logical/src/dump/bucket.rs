//! A place in an object store that is a dump only once its manifest is in it.

use super::file_names::{MARK, MARK_TEXT};
use super::location::Sink;
use super::manifest::MANIFEST;
use super::request::Leftover;
use evenkeel_op::{Context, Error, ErrorKind, Result};
use evenkeel_repository::store::{Existing, Lock, LockMode, Store};
use std::io;
use std::sync::Arc;

/// The lock of who writes. It is a folder of leases, and no part of the dump.
const LOCK: &str = "writing.lock";

/// A dump's place while it is written.
#[derive(Debug)]
pub(super) struct Bucket {
    store: Arc<dyn Store>,
    _lock: Box<dyn Lock>,
}

impl Bucket {
    /// Takes a place, which must be empty, or else, on request, hold what a dump left that did not end.
    pub(super) fn begin(store: &Arc<dyn Store>, leftover: Leftover) -> Result<Self> {
        let shown = store.place();
        if leftover == Leftover::GoOn {
            return Err(Error::usage(format!("--resume works only in a directory, and {shown} is not one"))
                .hint("a dump in an object store has no journal of its complete files: start again with --overwrite-unfinished"));
        }
        let failed = || format!("failed to use {shown}");
        // Before anything else: whoever else is writing there must not lose a file.
        let lock = store
            .try_lock(LOCK, LockMode::Exclusive)
            .context(failed)?
            .ok_or_else(|| {
                let text = format!("another dump is being written to {shown}");
                Error::new(ErrorKind::Busy, text).hint(
                    "wait for it, or choose another place; one that was killed elsewhere holds its lease for a minute",
                )
            })?;
        let names: Vec<String> = match store.list("") {
            Ok(found) => found.into_iter().map(|one| one.name).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error).context(failed),
        };
        let has = |name: &str| names.iter().any(|found| found == name);
        if has(MANIFEST) {
            return Err(Error::usage(format!("{shown} already holds a dump"))
                .hint("choose another place, or remove this one"));
        }
        let foreign = names.iter().any(|name| name != LOCK);
        if foreign && !has(MARK) {
            return Err(Error::usage(format!("{shown} is not empty")).hint("choose another place"));
        }
        if has(MARK) && leftover == Leftover::Refuse {
            return Err(Error::usage(format!("{shown} holds an unfinished dump"))
                .hint("clear it: --overwrite-unfinished"));
        }
        let bucket = Self {
            store: store.clone(),
            _lock: lock,
        };
        bucket.write(MARK, MARK_TEXT.as_bytes())?;
        if has(MARK) {
            bucket.clear()?;
        }
        Ok(bucket)
    }

    /// Removes what an earlier dump left.
    fn clear(&self) -> Result<()> {
        let failed = || format!("failed to clear {}", self.store.place());
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            for one in self.store.list(&folder).context(failed)? {
                let name = match folder.as_str() {
                    "" => one.name,
                    folder => format!("{folder}/{}", one.name),
                };
                match one.is_folder {
                    _ if name == LOCK || name == MARK => {}
                    true => folders.push(name),
                    false => self.store.remove(&name).context(failed)?,
                }
            }
        }
        Ok(())
    }

    /// Returns the name of a file, for people.
    pub(super) fn shown(&self, name: &str) -> String {
        format!("{}/{name}", self.store.place())
    }

    /// Begins a file.
    pub(super) fn create(&self, name: &str) -> io::Result<Sink> {
        Ok(self.store.create(name, Existing::Replace)?.into())
    }

    /// Writes a small file.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.put(name, bytes, Existing::Replace)
    }

    /// Makes it, by its manifest, a dump. Everything else is durable since it was finished.
    pub(super) fn finish(self, manifest: &[u8]) -> Result<()> {
        self.put(MANIFEST, manifest, Existing::Refuse)?;
        self.store
            .remove(MARK)
            .context(|| format!("failed to finish the dump in {}", self.store.place()))
    }

    fn put(&self, name: &str, bytes: &[u8], existing: Existing) -> Result<()> {
        let put = || -> io::Result<()> {
            let mut object = self.store.create(name, existing)?;
            object.write(bytes)?;
            object.finish()
        };
        put().context(|| format!("failed to write {}", self.shown(name)))
    }
}
