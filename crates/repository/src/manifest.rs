//! What a generation is: its manifest, the last object written, without which it does not exist.

use crate::fault::damaged;
use crate::ids::{Digest, RepositoryId};
use crate::names;
use crate::sealed;
use crate::store::Store;
use evenkeel_op::Result;
use serde::{Deserialize, Serialize};

/// How a generation relates to earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Compared with nothing; everything was stored.
    Full,
    /// Compared with the generation before it.
    Incremental,
    /// Compared with an earlier generation that the caller chose.
    Differential,
}

impl Kind {
    /// Returns the name used in JSON output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Incremental => "incremental",
            Self::Differential => "differential",
        }
    }
}

/// Another generation, and the digest of the manifest it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerationRef {
    /// Its number.
    pub generation: u32,
    /// Blake3 of its manifest object.
    pub manifest: Digest,
}

/// An object of a generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectInfo {
    /// Name inside the generation's folder.
    pub name: String,
    /// Length in bytes.
    pub size: u64,
    /// Blake3 of a pack's header, table and trailer (whose checksums cover the rest), or of all
    /// bytes of any other object.
    pub hash: Digest,
}

/// What a generation is and which objects it has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The repository it was written for.
    pub repository: RepositoryId,
    /// Its number: 1, 2, 3 … in the order of writing, whatever the clock says.
    pub generation: u32,
    /// How it relates to earlier ones.
    pub kind: Kind,
    /// What it was compared with.
    pub based_on: Option<GenerationRef>,
    /// When the run began.
    pub created: jiff::Timestamp,
    /// What was backed up, as the caller names it.
    pub source: String,
    /// Regular files in it.
    pub files: u64,
    /// Sum of their lengths, in bytes.
    pub bytes_logical: u64,
    /// Bytes that this run added to the repository, its manifest not counted.
    pub bytes_stored: u64,
    /// Replication coordinates, as the caller gave them.
    pub coordinates: serde_json::Value,
    /// Report fields, settings, roots: as the caller gave them.
    pub facts: serde_json::Value,
    /// The objects that this run wrote.
    pub objects: Vec<ObjectInfo>,
    /// Every older generation that its maps may point into.
    pub references: Vec<GenerationRef>,
}

/// Reads a generation's manifest; returns it and its digest.
pub(crate) fn read(
    store: &dyn Store,
    repository: RepositoryId,
    generation: u32,
) -> Result<(Manifest, Digest)> {
    let name = names::object(generation, names::MANIFEST);
    let bytes = sealed::read_object(store, &name)?;
    decode(&bytes, repository, generation)
}

/// Reads the manifests of many generations together, in the order of their numbers.
pub(crate) fn read_all(
    store: &dyn Store,
    repository: RepositoryId,
    generations: &[u32],
) -> Vec<Result<(Manifest, Digest)>> {
    let name = |generation: &u32| names::object(*generation, names::MANIFEST);
    let names: Vec<String> = generations.iter().map(name).collect();
    let read = sealed::read_objects(store, &names);
    let each = read.into_iter().zip(generations);
    each.map(|(bytes, generation)| decode(&bytes?, repository, *generation))
        .collect()
}

fn decode(bytes: &[u8], repository: RepositoryId, generation: u32) -> Result<(Manifest, Digest)> {
    let name = names::object(generation, names::MANIFEST);
    let manifest: Manifest = sealed::unseal(names::MANIFEST, &name, bytes)?;
    if manifest.repository != repository {
        return Err(damaged(&name, "it belongs to another repository"));
    }
    if manifest.generation != generation {
        let found = manifest.generation;
        return Err(damaged(
            &name,
            format!("it is the one of generation {found}"),
        ));
    }
    Ok((manifest, Digest::of(bytes)))
}
