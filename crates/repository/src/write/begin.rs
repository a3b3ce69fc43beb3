//! Begins a run: locks, heals, finds the base, marks the new generation as pending.

use super::base::{self, Base, BaseFile, BaseInfo, RunKind};
use super::builder::FileBuilder;
use super::effort::{Compression, USUAL};
use super::growing::GrowingBuilder;
use super::shared::Shared;
use super::worker::Worker;
use crate::catalog::Catalog;
use crate::fault::store_failed;
use crate::head::Head;
use crate::heal;
use crate::list::{FileKind, FileMeta, FileRecord};
use crate::locks;
use crate::manifest::GenerationKind;
use crate::map::tree::Tree;
use crate::names;
use crate::repository::Repository;
use crate::sealed;
use crate::store::Existing;
use evenkeel_op::{Error, Result};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// How to make a run.
#[derive(Debug, Clone)]
pub struct Begin {
    /// What it compares with.
    pub kind: RunKind,
    /// What is backed up, for people and lists.
    pub source: String,
    /// How thoroughly blocks are compressed.
    pub compression: Compression,
    /// When the run began; now when `None`.
    pub created: Option<jiff::Timestamp>,
    /// How long to wait for another run to end.
    pub wait: Duration,
    /// Stored bytes after which a pack is closed.
    pub pack_bytes_max: u64,
}

impl Begin {
    /// Makes a run of a kind with the usual settings.
    #[must_use]
    pub fn new(kind: RunKind, source: impl Into<String>) -> Self {
        Self {
            kind,
            source: source.into(),
            compression: Compression::Level(USUAL),
            created: None,
            wait: Duration::ZERO,
            pack_bytes_max: 1 << 30,
        }
    }
}

/// A generation being written. Dropped without a commit, it leaves nothing behind.
pub struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) head: Head,
    pub(crate) base: Option<Base>,
    pub(crate) begin: Begin,
    pub(crate) created: jiff::Timestamp,
    pub(crate) notes: Vec<String>,
    pub(crate) is_over: bool,
}

#[derive(Serialize)]
struct Pending {
    generation: u32,
    created: jiff::Timestamp,
    process: u32,
}

impl Repository {
    /// Begins a run that adds a generation. Busy at once, or after `begin.wait`, beside another.
    pub fn begin(&self, begin: Begin) -> Result<Writer> {
        Writer::begin(self, begin)
    }
}

impl Writer {
    pub(crate) fn begin(repository: &Repository, begin: Begin) -> Result<Self> {
        let store = repository.store();
        let lock = locks::writer(&**store, begin.wait)?;
        let keys = repository.keys().begin_run()?;
        let mut head = Head::read(&**store, repository.id())?;
        let keyring = repository.keys();
        let healed = heal::heal(store, repository.id(), keyring, &mut head)?;
        let catalog = healed.catalog.unwrap_or_else(|| {
            let (store, head) = (store.clone(), head.clone());
            Arc::new(Catalog::new(store, repository.id(), keyring.clone(), head))
        });
        let base = base::find_base(catalog, begin.kind)?;
        let created = begin.created.unwrap_or_else(jiff::Timestamp::now);
        let generation = healed.next.ok_or_else(|| no_numbers(&head))?;
        mark_pending(repository, generation, created)?;
        let shared = Shared::new(
            store.clone(),
            repository.id(),
            generation,
            keys,
            (begin.compression, begin.pack_bytes_max),
            lock,
        );
        let shared = match shared {
            Ok(shared) => shared,
            Err(error) => {
                // The error at hand says more than one of cleaning up; the next run tries again.
                let _ = heal::remove_generation(&**store, generation, names::PENDING);
                return Err(error);
            }
        };
        Ok(Self {
            shared: Arc::new(shared),
            head,
            base,
            begin,
            created,
            notes: healed.notes,
            is_over: false,
        })
    }

    /// Returns the number of the generation being written.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.shared.generation
    }

    /// Returns what this run turned out to be: an incremental one without a base is full.
    #[must_use]
    pub fn kind(&self) -> GenerationKind {
        self.base
            .as_ref()
            .map_or(GenerationKind::Full, |base| base.kind)
    }

    /// Returns what earlier, interrupted runs left, and what was done about it.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the generation this run compares with.
    #[must_use]
    pub fn base(&self) -> Option<BaseInfo> {
        self.base.as_ref().map(|base| BaseInfo {
            generation: base.reference.generation,
            token: base::token(self.shared.repository, base.reference),
        })
    }

    /// Finds a file of the base by name.
    pub fn base_file(&self, name: &str) -> Result<Option<Arc<BaseFile>>> {
        let Some(base) = &self.base else {
            return Ok(None);
        };
        match base.list.find(name)? {
            Some(record) if record.meta.kind == FileKind::File => {
                let tree = Tree::new(base.catalog.clone(), &record)?;
                Ok(Some(Arc::new(BaseFile { record, tree })))
            }
            _ => Ok(None),
        }
    }

    /// Makes a worker: one per thread that gives blocks.
    pub fn worker(&self) -> Result<Worker> {
        Worker::new(self.shared.clone())
    }

    /// Begins a regular file, compared with `base` if there is one. Any order of names will do.
    pub fn file_builder(&self, meta: FileMeta, base: Option<Arc<BaseFile>>) -> Result<FileBuilder> {
        FileBuilder::new(self.shared.clone(), meta, base)
    }

    /// Begins a regular file whose length is given at its end; the one in `meta` means nothing.
    pub fn growing_builder(
        &self,
        meta: FileMeta,
        base: Option<Arc<BaseFile>>,
    ) -> Result<GrowingBuilder> {
        GrowingBuilder::new(self.shared.clone(), meta, base)
    }

    /// Adds a directory or a symbolic link.
    pub fn add(&self, meta: FileMeta) -> Result<()> {
        if meta.kind == FileKind::File {
            let name = meta.name;
            return Err(Error::failed(format!(
                "'{name}' is a file: give its blocks"
            )));
        }
        self.shared.list(&FileRecord {
            meta,
            id: 0,
            level: 0,
            map: None,
        })
    }

    /// Gives the run up and removes its objects.
    pub fn abort(mut self) -> Result<()> {
        self.is_over = true;
        heal::remove_generation(&*self.shared.store, self.shared.generation, names::PENDING)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.is_over {
            // What cannot be removed now is removed by the next writer.
            let _ = heal::remove_generation(
                &*self.shared.store,
                self.shared.generation,
                names::PENDING,
            );
        }
    }
}

/// Makes the error for a repository whose newest generation has the highest number that there is.
fn no_numbers(head: &Head) -> Error {
    let highest = head.known().last().map_or(0, |one| one.generation);
    Error::failed("the repository has no generation numbers left").hint(format!(
        "that does not happen by itself: check where generation {highest} comes from, then \
         forget it and run 'evenkeel prune'"
    ))
}

/// Makes the generation's folder and its marker. Two writers never get the same number: the
/// marker is created only if it is not there.
fn mark_pending(repository: &Repository, generation: u32, created: jiff::Timestamp) -> Result<()> {
    let store = &**repository.store();
    let folder = names::folder(generation);
    store
        .make_folder(&folder)
        .map_err(|error| store_failed("make", &folder, error))?;
    let pending = Pending {
        generation,
        created,
        process: std::process::id(),
    };
    let bytes = sealed::seal(names::PENDING, &pending)?;
    let name = names::object(generation, names::PENDING);
    sealed::write_object(store, &name, &bytes, Existing::Refuse)
}
