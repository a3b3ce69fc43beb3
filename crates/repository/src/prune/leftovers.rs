//! What a prune that was ended has left, and what only the head says is dead.
//!
//! Anybody who may write can make a head that calls packs dropped or rewritten. So the head
//! alone removes nothing: the plan has walked through all that can be restored, and one of two revisions of a
//! pack is removed only if the other has every block that is needed.

use super::plan::PrunePlan;
use crate::catalog::{Catalog, Expected, Opened};
use crate::crypt::Access;
use crate::fault::damaged;
use crate::format::header::ObjectId;
use crate::heal::{self, is_superseded};
use crate::names::{self, PENDING, REMOVING};
use crate::rebuild::describe;
use crate::repository::Repository;
use crate::there::There;
use evenkeel_op::{Cancel, Context, Error, ErrorKind, Result};

/// A pack that was rewritten, before or after: one of the two may go when the other has all that is needed.
pub(crate) struct Double {
    pub(super) left: ObjectId,
    pub(super) size: u64,
    /// The one that the head names.
    pub(super) named: ObjectId,
}

impl PrunePlan {
    /// Finds what a prune that was ended has left of a generation. The walk went through everything that can
    /// be restored: what the head calls dropped, nobody needs.
    pub(super) fn left_over(&mut self, catalog: &Catalog, generation: u32, there: &There) {
        let Ok(known) = catalog.generation(generation) else {
            return;
        };
        for object in there.objects(generation) {
            let id = ObjectId::from_file_name(catalog.repository, generation, &object.name);
            let Some(left) = id.filter(|id| is_superseded(&known, *id)) else {
                continue;
            };
            let size = object.size;
            match known.objects.get(&(left.kind, left.number)) {
                None => self.leftovers.push((left, size)),
                // What is in them has to be compared.
                Some(_) if catalog.keys.access() < Access::Reader => {
                    self.unreadable += 1;
                    continue;
                }
                Some(named) => self.doubles.push(Double {
                    left,
                    size,
                    named: named.id,
                }),
            }
            self.goes(left.name(), size);
        }
    }

    /// Finds what is left of generations that the head does not name.
    pub(super) fn stray(&mut self, catalog: &Catalog, there: &There) {
        let stray = |one: &u32| catalog.head.manifest(*one).is_none() && there.is_left_over(*one);
        for generation in there.numbers().filter(stray) {
            self.strays.push(generation);
            for object in there.objects(generation) {
                self.goes(names::object(generation, &object.name), object.size);
            }
        }
    }
}

impl Repository {
    /// Removes what the plan calls left over; returns the bytes freed. What of it is not what evenkeel
    /// leaves stays, and is put into `strange`.
    pub(super) fn remove_leftovers(
        &self,
        plan: &PrunePlan,
        catalog: &Catalog,
        there: &There,
        (kept, strange): (&mut Vec<String>, &mut Vec<Error>),
        cancel: &Cancel,
    ) -> Result<u64> {
        let store = &**self.store();
        let mut gone = plan.leftovers.clone();
        for double in &plan.doubles {
            cancel.check()?;
            match has_all(catalog, plan, double) {
                Ok(true) => gone.push((double.left, double.size)),
                Ok(false) => strange.push(differs(double)),
                Err(error) if error.kind() == ErrorKind::Differs => strange.push(error),
                Err(error) => return Err(error),
            }
        }
        let mut freed = 0;
        for (id, size) in gone {
            heal::remove_if_allowed(store, &id.name(), kept)?;
            heal::sync(store, &names::folder(id.generation))?;
            freed += size;
        }
        for &generation in &plan.strays {
            let size = there.objects(generation).iter().map(|one| one.size);
            let marker = match there.has(generation, REMOVING) {
                true => REMOVING,
                false => PENDING,
            };
            heal::clear_generation(store, generation, marker, kept)?;
            freed += size.sum::<u64>();
        }
        Ok(freed)
    }
}

fn differs(double: &Double) -> Error {
    damaged(
        &double.named.name(),
        format!(
            "needed blocks are not intact in {}, so it is kept",
            double.left.name()
        ),
    )
    .hint("if someone may have changed the head: 'evenkeel repository rebuild' rebuilds it")
}

/// Whether the revision that the head names has every block that is needed, and none other than the one
/// that is left.
fn has_all(catalog: &Catalog, plan: &PrunePlan, double: &Double) -> Result<bool> {
    let (left, named) = (double.left, double.named);
    let Some(marks) = plan.marks.pack(named.generation, named.number) else {
        // Nobody needs the pack, in whichever revision.
        return Ok(true);
    };
    let known = catalog.generation(left.generation)?;
    let master = known.manifest.master(&catalog.keys, true)?;
    let info = describe(&*catalog.store, &catalog.keys, left)?;
    let left = Opened::open(&*catalog.store, Expected { id: left, info }, &master)?;
    let named = catalog.object(named.generation, named.kind, named.number)?;
    let mut decompressor =
        zstd::bulk::Decompressor::new().context(|| "failed to set up decompression")?;
    let (left_table, named_table) = (left.table()?, named.table()?);
    for (number, entry) in (0..).zip(named_table.iter()) {
        if !marks.has_any(number) {
            continue;
        }
        if entry.length == 0 {
            return Ok(false);
        }
        let ours = catalog.opened_frame(&named, number, &mut decompressor)?;
        let theirs = match left_table.get(number as usize) {
            Some(entry) if entry.length > 0 => {
                Some(catalog.opened_frame(&left, number, &mut decompressor)?)
            }
            _ => None,
        };
        let same = (0..ours.slots() as u16)
            .filter(|slot| marks.has(number, *slot))
            .all(|slot| {
                let other = theirs.as_ref().and_then(|theirs| theirs.slot(slot));
                let ours = ours.slot(slot).unwrap_or_default();
                !ours.is_empty() && other.is_none_or(|other| other.is_empty() || other == ours)
            });
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}
