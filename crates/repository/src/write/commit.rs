//! Makes a generation real: all objects durable, then the manifest, then the head.

use super::base::token;
use super::begin::Writer;
use crate::head::{Head, Live};
use crate::heal;
use crate::ids::Digest;
use crate::manifest::{GenerationKind, GenerationRef, Manifest, ObjectInfo};
use crate::mutex::held;
use crate::names;
use crate::sealed;
use crate::store::Existing;
use evenkeel_op::{Error, Result};
use std::sync::atomic::Ordering;

/// What was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitInfo {
    /// Its number.
    pub generation: u32,
    /// How it relates to earlier ones.
    pub kind: GenerationKind,
    /// The generation it was compared with.
    pub based_on: Option<u32>,
    /// Names exactly this generation of this repository.
    pub token: String,
    /// Regular files.
    pub files: u64,
    /// Sum of their lengths.
    pub bytes_logical: u64,
    /// Blocks that were given to workers.
    pub blocks_given: u64,
    /// Their bytes, holes not counted.
    pub bytes_given: u64,
    /// Blocks that differ from the base.
    pub blocks_changed: u64,
    /// Their bytes, holes not counted.
    pub bytes_changed: u64,
    /// Bytes added to the repository, the manifest not counted.
    pub bytes_stored: u64,
}

impl Writer {
    /// Commits the generation. On an error it does not exist and its objects are gone, unless the
    /// error says otherwise.
    pub fn commit(
        mut self,
        facts: serde_json::Value,
        coordinates: serde_json::Value,
    ) -> Result<CommitInfo> {
        // Dropping `self` on an error removes what was written.
        let mut manifest = self.finish_objects(facts, coordinates)?;
        let bytes = match self.shared.keys.clone() {
            None => sealed::seal(names::MANIFEST, &manifest)?,
            Some(keys) => {
                let stored = manifest.seal(&keys)?;
                sealed::seal_as(sealed::VERSION, names::MANIFEST, &stored)?
            }
        };
        let generation = manifest.generation;
        let name = names::object(generation, names::MANIFEST);
        let store = self.shared.store.clone();
        sealed::write_object(&*store, &name, &bytes, Existing::Refuse)?;
        let digest = Digest::of(&bytes);
        self.publish(generation, digest)?;
        self.is_over = true;
        // The generation is there. A marker that stays is removed by the next writer.
        let _ = heal::remove(&*store, &names::object(generation, names::PENDING));
        let _ = heal::sync(&*store, &names::folder(generation));
        Ok(self.info(&manifest, digest))
    }

    /// Writes maps and files; fails if anything was left unfinished.
    fn finish_objects(
        &self,
        facts: serde_json::Value,
        coordinates: serde_json::Value,
    ) -> Result<Manifest> {
        let shared = &self.shared;
        shared.check_complete()?;
        let over = || Error::failed("the run has already ended");
        let maps = held(&shared.maps).take().ok_or_else(over)?.finish()?;
        let list = held(&shared.list).take().ok_or_else(over)?.finish()?;
        let mut objects: Vec<ObjectInfo> = std::mem::take(&mut *held(&shared.packs));
        objects.sort_by(|a, b| a.name.cmp(&b.name));
        objects.push(maps);
        objects.push(list);
        let based_on = self.base.as_ref().map(|base| base.reference);
        let references = match &self.base {
            Some(base) => base.references()?,
            None => Vec::new(),
        };
        Ok(Manifest {
            repository: shared.repository,
            generation: shared.generation,
            kind: self.kind(),
            based_on,
            created: self.created,
            source: self.begin.source.clone(),
            files: shared.totals.files.load(Ordering::Relaxed),
            bytes_logical: shared.totals.bytes_logical.load(Ordering::Relaxed),
            bytes_stored: objects.iter().map(|object| object.size).sum(),
            coordinates,
            facts,
            objects,
            references,
            sealed: None,
        })
    }

    /// Puts the generation into the head.
    fn publish(&mut self, generation: u32, manifest: Digest) -> Result<()> {
        self.head.live.push(Live {
            generation,
            manifest,
            proven: None,
        });
        let store = &*self.shared.store;
        let Err(error) = self.head.write(store) else {
            return Ok(());
        };
        // The head may have been replaced all the same; then the objects must stay.
        let repository = self.shared.repository;
        let gone =
            Head::read(store, repository).is_ok_and(|head| head.manifest(generation).is_none());
        self.is_over = !gone;
        Err(if gone {
            error
        } else {
            error.hint(format!(
                "generation {generation} is complete; the next command checks whether it reached \
                 the disk"
            ))
        })
    }

    fn info(&self, manifest: &Manifest, digest: Digest) -> CommitInfo {
        let totals = &self.shared.totals;
        let reference = GenerationRef {
            generation: manifest.generation,
            manifest: digest,
        };
        CommitInfo {
            generation: manifest.generation,
            kind: manifest.kind,
            based_on: manifest.based_on.map(|base| base.generation),
            token: token(manifest.repository, reference),
            files: manifest.files,
            bytes_logical: manifest.bytes_logical,
            blocks_given: totals.blocks_given.load(Ordering::Relaxed),
            bytes_given: totals.bytes_given.load(Ordering::Relaxed),
            blocks_changed: totals.blocks_changed.load(Ordering::Relaxed),
            bytes_changed: totals.bytes_changed.load(Ordering::Relaxed),
            bytes_stored: manifest.bytes_stored,
        }
    }
}
