//! `head`: which generations there are. The only object that is ever replaced.

use crate::fault::damaged;
use crate::ids::{Digest, RepositoryId};
use crate::manifest::{GenerationRef, ObjectInfo};
use crate::names;
use crate::sealed;
use crate::store::{Existing, Store};
use evenkeel_op::{ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// No head is replaced more often: what says so was not written by evenkeel, and leaves no next number.
const SEQUENCE_MAX: u64 = u64::MAX / 2;

/// That a generation was restored and started as a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// When.
    pub at: jiff::Timestamp,
    /// How, as the caller tells it.
    pub how: serde_json::Value,
}

/// A generation that can be restored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Live {
    pub(crate) generation: u32,
    pub(crate) manifest: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) proven: Option<Proof>,
}

/// What became of an object after its generation was written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) generation: u32,
    /// The name in the generation's manifest.
    pub(crate) object: String,
    /// What stands in its place; nothing when it was dropped.
    pub(crate) now: Option<ObjectInfo>,
}

/// The repository's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) repository: RepositoryId,
    /// Counts replacements of this object.
    pub(crate) sequence: u64,
    /// In ascending order.
    pub(crate) live: Vec<Live>,
    /// Forgotten generations of which some objects are still there, in ascending order.
    pub(crate) retired: Vec<GenerationRef>,
    /// What prune changed.
    pub(crate) changes: Vec<Change>,
}

/// Says how a lost head comes back.
pub(crate) fn rebuild_hint(store: &dyn Store) -> String {
    format!(
        "the head can be rebuilt from the existing generations: 'evenkeel repository rebuild {}'",
        store.place()
    )
}

impl Head {
    pub(crate) fn empty(repository: RepositoryId) -> Self {
        Self {
            repository,
            sequence: 0,
            live: Vec::new(),
            retired: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Reads the stored head. One that is lost or damaged is an error that says what to do.
    pub(crate) fn read(store: &dyn Store, repository: RepositoryId) -> Result<Self> {
        Self::read_sound(store, repository).map_err(|error| match error.kind() {
            ErrorKind::Differs => error.hint(rebuild_hint(store)),
            _ => error,
        })
    }

    /// Reads the stored head; nothing when it is lost or damaged. One that cannot be read now, or
    /// is of a later version, is an error: it must not pass for a lost one.
    pub(crate) fn read_if_sound(
        store: &dyn Store,
        repository: RepositoryId,
    ) -> Result<Option<Self>> {
        match Self::read_sound(store, repository) {
            Ok(head) => Ok(Some(head)),
            Err(error) if error.kind() == ErrorKind::Differs => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_sound(store: &dyn Store, repository: RepositoryId) -> Result<Self> {
        let bytes = sealed::read_object(store, names::HEAD)?;
        let head: Self = sealed::unseal("head", names::HEAD, &bytes)?;
        if head.repository != repository {
            return Err(damaged(names::HEAD, "it belongs to another repository"));
        }
        if head.sequence > SEQUENCE_MAX {
            return Err(damaged(names::HEAD, "its sequence number is not valid"));
        }
        Ok(head)
    }

    /// Replaces the stored head by this one.
    pub(crate) fn write(&mut self, store: &dyn Store) -> Result<()> {
        self.sequence += 1;
        let bytes = sealed::seal("head", self)?;
        sealed::write_object(store, names::HEAD, &bytes, Existing::Replace)
    }

    pub(crate) fn live(&self, generation: u32) -> Option<&Live> {
        self.live.iter().find(|live| live.generation == generation)
    }

    pub(crate) fn is_retired(&self, generation: u32) -> bool {
        self.retired.iter().any(|old| old.generation == generation)
    }

    /// Returns the digest of the manifest of a live or retired generation.
    pub(crate) fn manifest(&self, generation: u32) -> Option<Digest> {
        let live = self.live(generation).map(|live| live.manifest);
        let retired = || {
            let mut all = self.retired.iter();
            all.find(|old| old.generation == generation)
                .map(|old| old.manifest)
        };
        live.or_else(retired)
    }

    /// Returns every live or retired generation, in ascending order.
    pub(crate) fn known(&self) -> Vec<GenerationRef> {
        let live = self.live.iter().map(|live| GenerationRef {
            generation: live.generation,
            manifest: live.manifest,
        });
        let mut all: Vec<_> = live.chain(self.retired.iter().copied()).collect();
        all.sort_by_key(|one| one.generation);
        all
    }
}
