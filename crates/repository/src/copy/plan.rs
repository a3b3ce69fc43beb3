//! What has to be there before a generation can be: its own objects, and those of older ones that
//! it rests on.

use super::run::Sides;
use crate::catalog::{Catalog, Expected};
use crate::crypt::Access;
use crate::fault::damaged;
use crate::format::header::ObjectKind;
use crate::head::Head;
use crate::ids::Digest;
use crate::names;
use crate::prune::Prune;
use crate::repository::Repository;
use evenkeel_op::{Cancel, Context, Error, ErrorKind, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Objects of one generation that should be sent.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) generation: u32,
    pub(super) manifest: Digest,
    pub(super) objects: Vec<Expected>,
    /// The other head does not name this generation yet.
    pub(super) is_new: bool,
}

/// A generation, and what it rests on that is not there: they become real together.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) generation: u32,
    /// In ascending order; the last is the generation's own.
    pub(super) parts: Vec<Part>,
}

/// Objects that none of the generations that are copied needs.
pub(super) type Unneeded = BTreeSet<(u32, ObjectKind, u32)>;

/// Finds out what only generations need that are not copied. Without a key that cannot be known:
/// then everything is taken for needed.
pub(super) fn unneeded(from: &Repository, wanted: &[u32], cancel: &Cancel) -> Result<Unneeded> {
    let head = from.head()?;
    let others = head.live.iter().map(|live| live.generation);
    let others: Vec<u32> = others.filter(|number| !wanted.contains(number)).collect();
    if others.is_empty() || from.access() == Access::Locked {
        return Ok(Unneeded::new());
    }
    let how = Prune {
        assume_forgotten: others,
        ..Prune::default()
    };
    let plan = from.plan_prune(&how, cancel)?;
    let drops = plan.drops.iter();
    Ok(drops
        .map(|id| (id.generation, id.kind, id.number))
        .collect())
}

impl Batch {
    /// Plans a generation; `unneeded` is asked only if it rests on others that are not there.
    pub(super) fn of(
        sides: &Sides<'_>,
        head: &Head,
        generation: u32,
        unneeded: &mut dyn FnMut() -> Result<Arc<Unneeded>>,
    ) -> Result<Self> {
        let source = &sides.source;
        let known = source.generation(generation)?;
        let there = Catalog::new(
            sides.to.store().clone(),
            source.repository,
            source.keys.clone(),
            head.clone(),
        );
        let mut parts = Vec::new();
        let base = known.manifest.based_on;
        // A base that can be restored has all that this one shares with it, whatever was pruned.
        let rests_there = base.is_none_or(|base| {
            head.live(base.generation)
                .is_some_and(|live| live.manifest == base.manifest)
        });
        if !rests_there {
            source.check_references(generation)?;
            let unneeded = unneeded()?;
            for older in &known.manifest.references {
                if source.head.manifest(older.generation).is_some() {
                    parts.extend(Part::of(source, &there, older.generation, |expected| {
                        let id = expected.id;
                        id.kind != ObjectKind::Files
                            && !unneeded.contains(&(id.generation, id.kind, id.number))
                    })?);
                }
            }
        }
        parts.retain(|part| !part.objects.is_empty());
        parts.sort_by_key(|part| part.generation);
        parts.extend(Part::of(source, &there, generation, |_| true)?);
        Ok(Self { generation, parts })
    }
}

impl Part {
    fn of(
        source: &Catalog,
        there: &Catalog,
        generation: u32,
        is_wanted: impl Fn(&Expected) -> bool,
    ) -> Result<Option<Self>> {
        let folder = names::folder(generation);
        let manifest = source
            .head
            .manifest(generation)
            .ok_or_else(|| damaged(&folder, "it is referenced, but not in the head"))?;
        let known = source.generation(generation)?;
        let wanted = known.objects.values().filter(|one| is_wanted(one));
        let part = |objects, is_new| {
            Some(Self {
                generation,
                manifest,
                objects,
                is_new,
            })
        };
        if there.head.manifest(generation).is_none() {
            return Ok(part(wanted.cloned().collect(), true));
        }
        let present = there.generation(generation)?;
        let mut missing = Vec::new();
        for one in wanted {
            match present.objects.get(&(one.id.kind, one.id.number)) {
                None => missing.push(one.clone()),
                // As it was written it has everything.
                Some(found) if found.info == one.info || found.id.revision == 0 => {}
                Some(_) if covers(there, source, one)? => {}
                Some(_) => return Err(rewritten(&there.store.place(), &one.id.name())),
            }
        }
        Ok(part(missing, false))
    }
}

/// Whether a pack that was rewritten in the copy has every block that this side's still has.
/// Without a reader's key nobody can tell.
fn covers(there: &Catalog, source: &Catalog, one: &Expected) -> Result<bool> {
    if source.keys.access() < Access::Reader {
        return Ok(false);
    }
    let open = |catalog: &Catalog| {
        let id = one.id;
        catalog.object(id.generation, id.kind, id.number)
    };
    let (theirs, ours) = (open(there)?, open(source)?);
    let (their_table, our_table) = (theirs.table()?, ours.table()?);
    let mut decompressor =
        zstd::bulk::Decompressor::new().context(|| "failed to set up decompression")?;
    for (number, entry) in (0..).zip(our_table.iter()) {
        if entry.length == 0 {
            continue;
        }
        let found = their_table.get(number as usize);
        let Some(found) = found.filter(|found| found.length > 0) else {
            return Ok(false);
        };
        if found.raw_length < entry.raw_length {
            return Ok(false);
        }
        let ours = source.opened_frame(&ours, number, &mut decompressor)?;
        let theirs = there.opened_frame(&theirs, number, &mut decompressor)?;
        let has = |slot| {
            ours.slot(slot)
                .is_none_or(|bytes| bytes.is_empty() || theirs.slot(slot) == Some(bytes))
        };
        if !(0..ours.slots() as u16).all(has) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The other side has left out of a pack what it did not need, and that is needed now, or nobody can
/// say whether it is.
fn rewritten(place: &str, pack: &str) -> Error {
    Error::refused(format!(
        "{place} has rewritten {pack} without unneeded blocks, and the copied generations may need them"
    ))
    .hint("copy the generations in between first: an increment whose base is already there needs \
         only its own objects")
    .hint("or copy to a new or empty place")
}

/// Fails if the other repository is not a copy of this one any more: somebody backed up into it.
pub(super) fn check_same(source: &Head, there: &Head, place: &str) -> Result<()> {
    for known in source.known() {
        if let Some(found) = there.manifest(known.generation)
            && found != known.manifest
        {
            return Err(Error::new(
                ErrorKind::Differs,
                format!(
                    "generation {} of {place} differs from the one here: {place} was a copy, and \
                     then a backup was written into it",
                    known.generation
                ),
            )
            .hint("copy to a new or empty place, and back up into only one of the two"));
        }
    }
    Ok(())
}
