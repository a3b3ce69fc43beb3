//! A generation opened for reading.

use super::cache::FrameCache;
use super::file::{FileReader, LeafCache};
use crate::catalog::Catalog;
use crate::format::header::ObjectKind;
use crate::head::Head;
use crate::list::{FileRecord, Files, ListReader};
use crate::locks;
use crate::manifest::Manifest;
use crate::repository::{Repository, no_generation};
use crate::store::Lock;
use evenkeel_op::Result;
use std::sync::Arc;
use std::time::Duration;

/// Decompressed frames kept for reuse.
const CACHE_BYTES: usize = 64 << 20;

/// A generation opened for reading; nothing is removed from the repository while it is open.
pub struct Reader {
    catalog: Arc<Catalog>,
    cache: Arc<FrameCache>,
    leaves: Arc<LeafCache>,
    generation: u32,
    manifest: Manifest,
    list: Arc<ListReader>,
    lock: Arc<dyn Lock>,
}

impl Repository {
    /// Opens a generation for reading. Busy at once beside a forget or prune.
    pub fn reader(&self, generation: u32) -> Result<Reader> {
        Reader::open(self, generation, Duration::ZERO)
    }

    /// Opens a generation for reading, waiting up to `wait` for a forget or prune to end.
    pub fn reader_within(&self, generation: u32, wait: Duration) -> Result<Reader> {
        Reader::open(self, generation, wait)
    }
}

impl Reader {
    pub(crate) fn open(repository: &Repository, generation: u32, wait: Duration) -> Result<Self> {
        let store = repository.store();
        let lock = locks::reader(&**store, wait)?;
        let head = Head::read(&**store, repository.id())?;
        let catalog = Arc::new(Catalog::new(
            store.clone(),
            repository.id(),
            repository.keys().clone(),
            head,
        ));
        let cache = Arc::new(FrameCache::new(CACHE_BYTES));
        Self::of(
            generation,
            catalog,
            cache,
            Arc::new(LeafCache::new()),
            lock.into(),
        )
    }

    fn of(
        generation: u32,
        catalog: Arc<Catalog>,
        cache: Arc<FrameCache>,
        leaves: Arc<LeafCache>,
        lock: Arc<dyn Lock>,
    ) -> Result<Self> {
        if catalog.head.live(generation).is_none() {
            return Err(no_generation(&*catalog.store, generation));
        }
        let manifest = catalog.generation(generation)?.manifest.clone();
        catalog.check_references(generation)?;
        let list = ListReader::open(catalog.object(generation, ObjectKind::Files, 0)?)?;
        Ok(Self {
            catalog,
            cache,
            leaves,
            generation,
            manifest,
            list: Arc::new(list),
            lock,
        })
    }

    /// Opens another generation that was there when this one was opened. Both share one lock and
    /// the memory for what was read.
    pub fn sibling(&self, generation: u32) -> Result<Self> {
        Self::of(
            generation,
            self.catalog.clone(),
            self.cache.clone(),
            self.leaves.clone(),
            self.lock.clone(),
        )
    }

    /// Limits the memory for decompressed frames to about `bytes_max`; 64 MiB by default.
    #[must_use]
    pub fn with_cache(mut self, bytes_max: usize) -> Self {
        self.cache = Arc::new(FrameCache::new(bytes_max));
        self
    }

    /// Returns the generation's number.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// Returns what is known of the generation.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns how many files, directories and links there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.list.records()
    }

    /// Reads the entries in ascending order of name.
    #[must_use]
    pub fn files(&self) -> Files {
        Files::new(self.list.clone())
    }

    /// Finds an entry by name.
    pub fn find(&self, name: &str) -> Result<Option<FileRecord>> {
        self.list.find(name)
    }

    /// Opens a regular file of this generation.
    pub fn open_file(&self, record: &FileRecord) -> Result<FileReader> {
        FileReader::new(
            self.catalog.clone(),
            self.cache.clone(),
            (self.generation, self.leaves.clone()),
            record,
        )
    }
}
