//! What a run compares with: the base, and its files.

use crate::catalog::Catalog;
use crate::format::header::ObjectKind;
use crate::ids::RepositoryId;
use crate::list::{FileMeta, FileRecord, ListReader};
use crate::manifest::{GenerationKind, GenerationRef};
use crate::map::tree::Tree;
use crate::repository::list_hint;
use evenkeel_op::{Error, Result};
use std::sync::Arc;

/// What a run compares with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    /// Nothing: everything is stored.
    Full,
    /// The newest generation; without one, nothing.
    Incremental,
    /// The generation of this number.
    Against(u32),
}

/// The generation a run compares with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseInfo {
    /// Its number.
    pub generation: u32,
    /// Names exactly this generation of this repository: what a kept snapshot is filed under.
    pub token: String,
}

/// A file of the base.
pub struct BaseFile {
    pub(super) record: FileRecord,
    pub(super) tree: Tree,
}

impl BaseFile {
    /// Returns what was known of it.
    #[must_use]
    pub fn meta(&self) -> &FileMeta {
        &self.record.meta
    }

    pub(crate) fn id(&self) -> u64 {
        self.record.id
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }
}

pub(crate) struct Base {
    pub(crate) kind: GenerationKind,
    pub(crate) reference: GenerationRef,
    pub(super) list: ListReader,
    pub(super) catalog: Arc<Catalog>,
}

impl Base {
    /// Returns every generation that maps built on this base may point into.
    pub(crate) fn references(&self) -> Result<Vec<GenerationRef>> {
        let known = self.catalog.generation(self.reference.generation)?;
        let older = known.manifest.references.iter().copied();
        // What prune has removed since, nothing can point into any more.
        let mut all: Vec<_> = older
            .filter(|one| self.catalog.head.manifest(one.generation).is_some())
            .collect();
        all.push(self.reference);
        Ok(all)
    }
}

/// Returns the name of exactly this generation.
pub(crate) fn token(repository: RepositoryId, generation: GenerationRef) -> String {
    let number = generation.generation;
    format!("{repository}-{number}-{}", generation.manifest)
}

pub(super) fn find_base(catalog: Arc<Catalog>, kind: RunKind) -> Result<Option<Base>> {
    let head = &catalog.head;
    let newest = head.live.last();
    let (live, kind) = match kind {
        RunKind::Full => return Ok(None),
        RunKind::Incremental => match newest {
            Some(live) => (live, GenerationKind::Incremental),
            None => return Ok(None),
        },
        RunKind::Against(number) => {
            let live = head.live(number).ok_or_else(|| {
                Error::usage(format!("there is no generation {number} to compare with"))
                    .hint(list_hint(&catalog.store.place()))
            })?;
            (live, GenerationKind::Differential)
        }
    };
    let list = ListReader::open(catalog.object(live.generation, ObjectKind::Files, 0)?)?;
    // What the base refers to must be what it was when the base was written.
    catalog.check_references(live.generation)?;
    Ok(Some(Base {
        kind,
        reference: GenerationRef {
            generation: live.generation,
            manifest: live.manifest,
        },
        list,
        catalog: catalog.clone(),
    }))
}
