//! Makes what was sent real: markers first, manifests when all objects are there, the head last.

use super::plan::{Batch, Part};
use super::run::Sides;
use crate::fault::{damaged, store_failed};
use crate::format::header::{ObjectId, ObjectKind};
use crate::head::{Change, Head, Live};
use crate::heal;
use crate::ids::Digest;
use crate::manifest::GenerationRef;
use crate::names::{self, GENERATIONS, MANIFEST, PENDING};
use crate::sealed;
use crate::store::{Existing, Store};
use evenkeel_op::{ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Marks a generation that is being copied.
#[derive(Serialize, Deserialize)]
struct Pending {
    generation: u32,
    created: jiff::Timestamp,
    process: u32,
    /// The manifest of which generation: what is there of it is of use to the next copy.
    copy_of: Digest,
}

/// Returns the generations of which an earlier copy has sent a part.
pub(super) fn begun(sides: &Sides<'_>, head: &Head) -> Result<BTreeSet<u32>> {
    let store = &**sides.to.store();
    let mut found = BTreeSet::new();
    for folder in heal::list(store, GENERATIONS)? {
        let Ok(generation) = folder.name.parse::<u32>() else {
            continue;
        };
        let known = sides.source.head.manifest(generation);
        if let Some(manifest) = known.filter(|_| head.manifest(generation).is_none())
            && is_of(store, generation, manifest)?
        {
            found.insert(generation);
        }
    }
    Ok(found)
}

/// Whether a generation's marker is one of a copy of this manifest.
fn is_of(store: &dyn Store, generation: u32, manifest: Digest) -> Result<bool> {
    let name = names::object(generation, PENDING);
    let read = sealed::read_object(store, &name);
    match read.and_then(|bytes| sealed::unseal::<Pending>(PENDING, &name, &bytes)) {
        Ok(pending) => Ok(pending.copy_of == manifest && pending.generation == generation),
        // None, or one of a backup.
        Err(error) if error.kind() == ErrorKind::Differs => Ok(false),
        Err(error) => Err(error),
    }
}

/// Marks what is about to be sent. Of what was begun before, only what is whole stays.
pub(super) fn prepare(sides: &Sides<'_>, batch: &Batch, begun: &BTreeSet<u32>) -> Result<()> {
    let store = &**sides.to.store();
    for part in batch.parts.iter().filter(|part| part.is_new) {
        let folder = names::folder(part.generation);
        if begun.contains(&part.generation) {
            for one in heal::list(store, &folder)? {
                if heal::is_unfinished(&one.name) {
                    heal::remove(store, &names::object(part.generation, &one.name))?;
                }
            }
            continue;
        }
        store
            .make_folder(&folder)
            .map_err(|error| store_failed("make", &folder, error))?;
        let pending = Pending {
            generation: part.generation,
            created: jiff::Timestamp::now(),
            process: std::process::id(),
            copy_of: part.manifest,
        };
        let bytes = sealed::seal(PENDING, &pending)?;
        let name = names::object(part.generation, PENDING);
        sealed::write_object(store, &name, &bytes, Existing::Refuse)?;
    }
    Ok(())
}

/// Writes manifests, then the head that names them.
pub(super) fn commit(sides: &Sides<'_>, head: &mut Head, batch: &Batch) -> Result<()> {
    let store = &**sides.to.store();
    for part in batch.parts.iter().filter(|part| part.is_new) {
        manifest(sides, part)?;
    }
    fail::fail_point!("copy::manifests_sent");
    let mut next = head.clone();
    for part in &batch.parts {
        changes(sides, &mut next, part, batch.generation)?;
        if part.is_new && part.generation != batch.generation {
            next.retired.push(GenerationRef {
                generation: part.generation,
                manifest: part.manifest,
            });
        }
    }
    next.retired
        .retain(|one| one.generation != batch.generation);
    next.retired.sort_by_key(|one| one.generation);
    if let Some(live) = sides.source.head.live(batch.generation) {
        next.live.push(Live::clone(live));
        next.live.sort_by_key(|live| live.generation);
    }
    next.write(store)?;
    *head = next;
    fail::fail_point!("copy::committed");
    for part in batch.parts.iter().filter(|part| part.is_new) {
        // It is there. A marker that stays is removed by the next writer.
        let _ = heal::remove(store, &names::object(part.generation, PENDING));
        let _ = heal::sync(store, &names::folder(part.generation));
    }
    Ok(())
}

fn manifest(sides: &Sides<'_>, part: &Part) -> Result<()> {
    let store = &**sides.to.store();
    let name = names::object(part.generation, MANIFEST);
    let bytes = sealed::read_object(&**sides.from.store(), &name)?;
    if Digest::of(&bytes) != part.manifest {
        return Err(damaged(&name, "it is not the one that the head lists"));
    }
    let there = heal::list(store, &names::folder(part.generation))?;
    if there.iter().any(|one| one.name == MANIFEST) {
        if Digest::of(&sealed::read_object(store, &name)?) == part.manifest {
            return Ok(());
        }
        heal::remove(store, &name)?;
    }
    sealed::write_object(store, &name, &bytes, Existing::Refuse)
}

/// Records which objects of a manifest are there as something else, or not at all.
fn changes(sides: &Sides<'_>, head: &mut Head, part: &Part, live: u32) -> Result<()> {
    let generation = part.generation;
    let known = sides.source.generation(generation)?;
    for listed in &known.manifest.objects {
        let id = ObjectId::from_file_name(sides.source.repository, generation, &listed.name);
        let Some(id) = id else { continue };
        let mut sent = part.objects.iter();
        let sent = sent.find(|one| (one.id.kind, one.id.number) == (id.kind, id.number));
        if sent.is_none() && (!part.is_new || (id.kind == ObjectKind::Files && generation != live))
        {
            continue;
        }
        head.changes
            .retain(|one| one.generation != generation || one.object != listed.name);
        if sent.is_none_or(|sent| sent.info.name != listed.name) {
            head.changes.push(Change {
                generation,
                object: listed.name.clone(),
                now: sent.map(|sent| sent.info.clone()),
            });
        }
    }
    Ok(())
}
