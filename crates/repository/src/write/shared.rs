//! What all threads of a run share.

use super::effort::Compression;
use super::maps::MapsWriter;
use crate::crypt::{Key, RunKeys};
use crate::format::header::{ObjectId, ObjectKind};
use crate::ids::RepositoryId;
use crate::list::{FileKind, FileRecord, Sorter};
use crate::manifest::ObjectInfo;
use crate::mutex::held;
use crate::store::{Lock, Store};
use evenkeel_op::{Error, Result};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) repository: RepositoryId,
    pub(crate) generation: u32,
    /// Of an encrypted repository: what the run seals with.
    pub(crate) keys: Option<RunKeys>,
    pub(crate) compression: Compression,
    /// Stored bytes after which a pack is closed.
    pub(crate) pack_bytes_max: u64,
    pub(crate) maps: Mutex<Option<MapsWriter>>,
    pub(crate) list: Mutex<Option<Sorter>>,
    pub(crate) packs: Mutex<Vec<ObjectInfo>>,
    pub(crate) totals: Totals,
    /// Workers and file builders not finished yet.
    open: AtomicUsize,
    next_pack: AtomicU32,
    next_file: AtomicU32,
    /// Why this run can no longer be committed.
    spoiled: Mutex<Option<String>>,
    // Last, and here: a worker that outlives its writer may still remove its unfinished pack, so
    // nobody else may write under the same number until it is gone.
    _lock: Box<dyn Lock>,
}

/// What the run has done so far.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) files: AtomicU64,
    pub(crate) bytes_logical: AtomicU64,
    pub(crate) blocks_given: AtomicU64,
    pub(crate) bytes_given: AtomicU64,
    pub(crate) blocks_changed: AtomicU64,
    pub(crate) bytes_changed: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        repository: RepositoryId,
        generation: u32,
        keys: Option<RunKeys>,
        (compression, pack_bytes_max): (Compression, u64),
        lock: Box<dyn Lock>,
    ) -> Result<Self> {
        let id = |kind| ObjectId {
            repository,
            generation,
            kind,
            number: 0,
            revision: 0,
        };
        let metadata = keys.as_ref().map(|keys| &keys.metadata);
        let maps = MapsWriter::create(&*store, id(ObjectKind::Maps), metadata)?;
        let list = Sorter::new(store.clone(), id(ObjectKind::Files), metadata.cloned());
        Ok(Self {
            store,
            repository,
            generation,
            keys,
            compression,
            pack_bytes_max,
            maps: Mutex::new(Some(maps)),
            list: Mutex::new(Some(list)),
            packs: Mutex::default(),
            totals: Totals::default(),
            open: AtomicUsize::new(0),
            next_pack: AtomicU32::new(0),
            next_file: AtomicU32::new(0),
            spoiled: Mutex::new(None),
            _lock: lock,
        })
    }

    pub(crate) fn pack_id(&self, number: u32) -> ObjectId {
        ObjectId {
            repository: self.repository,
            generation: self.generation,
            kind: ObjectKind::Pack,
            number,
            revision: 0,
        }
    }

    pub(crate) fn data_key(&self) -> Option<&Key> {
        self.keys.as_ref().map(|keys| &keys.data)
    }

    pub(crate) fn next_pack(&self) -> u32 {
        self.next_pack.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn next_file(&self) -> u64 {
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        u64::from(self.generation) << 32 | u64::from(number)
    }

    /// Adds an entry to the generation.
    pub(crate) fn list(&self, record: &FileRecord) -> Result<()> {
        if record.meta.kind == FileKind::File {
            self.totals.files.fetch_add(1, Ordering::Relaxed);
            self.totals
                .bytes_logical
                .fetch_add(record.meta.size, Ordering::Relaxed);
        }
        match held(&self.list).as_mut() {
            Some(list) => self.watch(list.push(record)),
            None => Err(Error::failed("the run has already ended")),
        }
    }

    /// Runs `append` on the maps.
    pub(crate) fn with_maps<T>(
        &self,
        append: impl FnOnce(&mut MapsWriter) -> Result<T>,
    ) -> Result<T> {
        match held(&self.maps).as_mut() {
            Some(maps) => self.watch(append(maps)),
            None => Err(Error::failed("the run has already ended")),
        }
    }

    /// Passes a result on; after an error the run cannot be committed.
    pub(crate) fn watch<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            self.spoil(error.chain());
        }
        result
    }

    pub(crate) fn spoil(&self, why: String) {
        held(&self.spoiled).get_or_insert(why);
    }

    pub(crate) fn opened(&self) {
        self.open.fetch_add(1, Ordering::SeqCst);
    }

    /// Takes back [`Shared::opened`]; what was not finished spoils the run.
    pub(crate) fn closed(&self, unfinished: Option<String>) {
        if let Some(what) = unfinished {
            self.spoil(format!("{what} was left unfinished"));
        }
        self.open.fetch_sub(1, Ordering::SeqCst);
    }

    /// Fails if something went wrong or is still running: what would be committed then is less than
    /// what was promised.
    pub(crate) fn check_complete(&self) -> Result<()> {
        if let Some(why) = held(&self.spoiled).as_ref() {
            return Err(Error::failed(format!("the run cannot be committed: {why}")));
        }
        match self.open.load(Ordering::SeqCst) {
            0 => Ok(()),
            open => Err(Error::failed(format!(
                "the run cannot be committed: {open} workers or files are not finished"
            ))),
        }
    }
}
