//! Makes a new head from what is there, when the old one is lost, damaged or an older copy.
//!
//! Manifests are self-verifying and say everything a head says, except when a generation was last
//! proven. What was forgotten lacks its `files`; what was compacted has a higher revision. Of several the
//! lowest is taken: rewriting only leaves things out.

use crate::catalog::{Expected, Opened, pack_hash};
use crate::crypt::{Keyring, Master};
use crate::fault::{damaged, store_failed};
use crate::forget::changed;
use crate::format::frame::{self, TRAILER};
use crate::format::header::{HEADER_LENGTH, Header, ObjectId, ObjectKind};
use crate::head::{Change, Head, Live};
use crate::ids::Digest;
use crate::locks;
use crate::manifest::{self, GenerationRef, Manifest, ObjectInfo};
use crate::names::{FILES, MANIFEST};
use crate::repository::Repository;
use crate::store::{Listed, Store};
use crate::there::There;
use evenkeel_op::Result;
use std::time::Duration;

/// What a rebuilt head would say.
#[derive(Debug)]
pub struct RebuildPlan {
    /// Generations that it would name as restorable.
    pub live: Vec<u32>,
    /// Forgotten generations of which objects are still there.
    pub retired: Vec<u32>,
    /// Generations that the present head does not name, or names wrongly.
    pub regained: Vec<u32>,
    /// Generations that the present head names as restorable, and the new one would not.
    pub dropped: Vec<u32>,
    /// Whether there is something to do: the present head is lost, damaged or an older copy.
    pub needed: bool,
    /// What was found and left out.
    pub notes: Vec<String>,
    head: Head,
    /// The present head's sequence, where it can be read.
    sequence: Option<u64>,
}

impl Repository {
    /// Plans a new head. Changes nothing.
    pub fn plan_rebuild(&self) -> Result<RebuildPlan> {
        let store = &**self.store();
        let present = Head::read_if_sound(store, self.id())?;
        let mut head = Head::empty(self.id());
        let mut notes = Vec::new();
        let there = There::read(store)?;
        for generation in there.numbers() {
            // What has none is for the next writer to undo. A mark of a run that was ended says nothing:
            // anybody can make one, and prune finds out what nobody needs.
            if !there.has(generation, MANIFEST) {
                continue;
            }
            match manifest::read(store, self.id(), self.keys(), generation) {
                Ok((manifest, digest)) => {
                    let objects = there.objects(generation);
                    self.take(&mut head, &manifest, digest, objects, &mut notes);
                }
                Err(error) => notes.push(error.chain()),
            }
        }
        head.live.sort_by_key(|live| live.generation);
        head.retired.sort_by_key(|one| one.generation);
        if let Some(present) = &present {
            head.sequence = present.sequence;
            for live in &mut head.live {
                live.proven = present
                    .live(live.generation)
                    .and_then(|live| live.proven.clone());
            }
        }
        let is_same = |live: &Live| {
            let present = present.as_ref();
            present.is_some_and(|head| head.manifest(live.generation) == Some(live.manifest))
        };
        let regained = head.live.iter().filter(|live| !is_same(live));
        let regained: Vec<u32> = regained.map(|live| live.generation).collect();
        let named = present.iter().flat_map(|head| &head.live);
        let dropped: Vec<u32> = named
            .map(|live| live.generation)
            .filter(|generation| head.live(*generation).is_none())
            .collect();
        // A generation whose manifest cannot be read is damage of its own, which no head repairs.
        let was_forgotten = |generation: &u32| head.is_retired(*generation);
        let is_known = |generation| present.as_ref().and_then(|head| head.manifest(generation));
        let mut retired = head.retired.iter();
        let needed = present.is_none()
            || !regained.is_empty()
            || retired.any(|one| is_known(one.generation) != Some(one.manifest))
            || dropped.iter().any(was_forgotten);
        Ok(RebuildPlan {
            live: head.live.iter().map(|live| live.generation).collect(),
            retired: head.retired.iter().map(|one| one.generation).collect(),
            regained,
            dropped,
            needed,
            notes,
            sequence: present.map(|present| present.sequence),
            head,
        })
    }

    /// Replaces the head by the planned one.
    pub fn perform_rebuild(&self, plan: RebuildPlan, wait: Duration) -> Result<()> {
        let store = &**self.store();
        let _locks = locks::remover(store, wait)?;
        let present = Head::read_if_sound(store, self.id())?;
        if present.map(|head| head.sequence) != plan.sequence {
            return Err(changed());
        }
        let mut head = plan.head;
        head.write(store)
    }

    /// Adds a generation to the head, with what became of its objects.
    fn take(
        &self,
        head: &mut Head,
        manifest: &Manifest,
        digest: Digest,
        objects: &[Listed],
        notes: &mut Vec<String>,
    ) {
        let generation = manifest.generation;
        let is_live = objects.iter().any(|object| object.name == FILES);
        if is_live {
            head.live.push(Live {
                generation,
                manifest: digest,
                proven: None,
            });
        } else {
            head.retired.push(GenerationRef {
                generation,
                manifest: digest,
            });
        }
        for listed in &manifest.objects {
            let id = ObjectId::from_file_name(self.id(), generation, &listed.name);
            let Some(id) = id.filter(|id| id.kind != ObjectKind::Files) else {
                continue;
            };
            if objects.iter().any(|object| object.name == listed.name) {
                continue;
            }
            let now = match oldest_revision(&**self.store(), self.keys(), id, objects) {
                Ok(now) => now,
                Err(error) => {
                    notes.push(error.chain());
                    None
                }
            };
            // Nothing of a live generation is ever dropped: there it is damage, for verify to say.
            if now.is_some() || !is_live {
                head.changes.push(Change {
                    generation,
                    object: listed.name.clone(),
                    now,
                });
            }
        }
    }
}

/// Returns the compacted pack that stands in the place of `id`, if there is one.
fn oldest_revision(
    store: &dyn Store,
    keys: &Keyring,
    id: ObjectId,
    objects: &[Listed],
) -> Result<Option<ObjectInfo>> {
    let revisions = objects.iter().filter_map(|object| {
        let found = ObjectId::from_file_name(id.repository, id.generation, &object.name)?;
        (found.kind == id.kind && found.number == id.number).then_some(found)
    });
    match revisions.min_by_key(|found| found.revision) {
        Some(found) => describe(store, keys, found).map(Some),
        None => Ok(None),
    }
}

/// Returns what a head says of a pack, after checking it against itself.
pub(crate) fn describe(store: &dyn Store, keys: &Keyring, id: ObjectId) -> Result<ObjectInfo> {
    let name = id.name();
    let failed = |error| store_failed("read", &name, error);
    let broken = || damaged(&name, "its table cannot be read");
    let object = store.open(&name).map_err(failed)?;
    let size = object.size();
    let trailer_at = size.checked_sub((TRAILER + HEADER_LENGTH) as u64);
    let trailer_at = trailer_at.ok_or_else(broken)? + HEADER_LENGTH as u64;
    let mut trailer = [0; TRAILER];
    object
        .read_exact_at(trailer_at, &mut trailer)
        .map_err(failed)?;
    let table_at = frame::table_offset(&trailer, size).map_err(|_| broken())?;
    let mut tail = vec![0; (size - table_at) as usize];
    object.read_exact_at(table_at, &mut tail).map_err(failed)?;
    let mut header = [0; HEADER_LENGTH];
    object.read_exact_at(0, &mut header).map_err(failed)?;
    let header = Header::read(id, keys.is_encrypted(), &header)?;
    let info = ObjectInfo {
        name: id.file_name(),
        size,
        hash: pack_hash(&header, &tail),
    };
    // Checks header and table as a reader would.
    let expected = Expected {
        id,
        info: info.clone(),
    };
    let master = match keys.is_encrypted() {
        false => Master::Plain,
        true => Master::Missing(keys.access()),
    };
    Opened::open(store, expected, &master)?.table()?;
    Ok(info)
}
