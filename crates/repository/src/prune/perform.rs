//! Performs a plan. At every moment everything that the head names is there.

use super::plan::PrunePlan;
use crate::catalog::{Catalog, Expected, Opened};
use crate::crypt::Master;
use crate::fault::{damaged, refused};
use crate::forget::changed;
use crate::format::frame;
use crate::format::header::ObjectId;
use crate::head::{Change, Head};
use crate::heal;
use crate::locks;
use crate::manifest::ObjectInfo;
use crate::marks::PackMarks;
use crate::names::{self, REMOVING};
use crate::repository::Repository;
use crate::sealed;
use crate::store::{Existing, FrameEncoder, Store};
use crate::there::{There, list};
use crate::write::PackWriter;
use evenkeel_op::{Cancel, Context, Error, Result};
use std::sync::Arc;
use std::time::Duration;

impl Repository {
    /// Does what the plan says and returns the bytes freed. Busy if the repository has changed
    /// since the plan was made. A cancelled prune has done part of its work and no harm; so has one
    /// whose store refuses to remove something, which is reported when all else is done.
    pub fn perform_prune(&self, plan: &PrunePlan, wait: Duration, cancel: &Cancel) -> Result<u64> {
        if plan.is_assumed {
            return Err(Error::usage("the plan assumes a step that was not done")
                .hint("forget the generations, then plan again"));
        }
        let store = self.store();
        let _locks = locks::remover(&**store, wait)?;
        let mut head = self.head()?;
        let healed = heal::heal(store, self.id(), self.keys(), &mut head)?;
        healed.check_known(&**store)?;
        let mut kept = healed.refused;
        check_same(&head, &plan.head)?;
        let there = There::read(&**store)?;
        let catalog = healed.catalog.unwrap_or_else(|| {
            Catalog::new(store.clone(), self.id(), self.keys().clone(), head.clone()).into()
        });
        let mut strange = Vec::new();
        let found = (&mut kept, &mut strange);
        let mut freed = self.remove_leftovers(plan, &catalog, &there, found, cancel)?;
        freed += self.drop_dead(plan, &mut head, &mut kept)?;
        for id in &plan.compacts {
            cancel.check()?;
            freed += self.compact(plan, &mut head, *id, &mut kept)?;
        }
        if let Some(strange) = strange.pop() {
            return Err(strange);
        }
        if !kept.is_empty() {
            return Err(refused(&kept));
        }
        Ok(freed)
    }

    /// Takes dead objects out of the head, then removes them.
    fn drop_dead(&self, plan: &PrunePlan, head: &mut Head, kept: &mut Vec<String>) -> Result<u64> {
        if plan.drops.is_empty() && plan.removes.is_empty() {
            return Ok(0);
        }
        let store = &**self.store();
        let mut freed = 0;
        for id in &plan.drops {
            freed += store.open(&id.name()).map_or(0, |object| object.size());
            set_change(head, *id, None);
        }
        for &generation in &plan.removes {
            // With this mark a generation that the head no longer names is no riddle.
            let mark = sealed::seal(REMOVING, &generation)?;
            let name = names::object(generation, REMOVING);
            sealed::write_object(store, &name, &mark, Existing::Replace)?;
            head.retired.retain(|one| one.generation != generation);
            head.changes.retain(|one| one.generation != generation);
        }
        head.write(store)?;
        for id in &plan.drops {
            heal::remove_if_allowed(store, &id.name(), kept)?;
        }
        for &generation in &plan.removes {
            heal::clear_generation(store, generation, REMOVING, kept)?;
        }
        let mut folders: Vec<u32> = plan.drops.iter().map(|id| id.generation).collect();
        folders.dedup();
        folders.retain(|generation| !plan.removes.contains(generation));
        for generation in folders {
            heal::sync(store, &names::folder(generation))?;
        }
        Ok(freed)
    }

    /// Rewrites a pack without its dead blocks. Frames and slots keep their numbers, so no map
    /// has to change.
    fn compact(
        &self,
        plan: &PrunePlan,
        head: &mut Head,
        id: ObjectId,
        kept: &mut Vec<String>,
    ) -> Result<u64> {
        let store = self.store();
        let catalog = Catalog::new(store.clone(), self.id(), self.keys().clone(), head.clone());
        let old = catalog.object(id.generation, id.kind, id.number)?;
        let marks = plan.marks.pack(id.generation, id.number);
        let marks =
            marks.ok_or_else(|| Error::failed("the plan rewrites a pack without live blocks"))?;
        let new_id = next_revision(&**store, id)?;
        let mut encoder = FrameEncoder::new(3)?;
        let mut decompressor =
            zstd::bulk::Decompressor::new().context(|| "failed to set up decompression")?;
        let known = catalog.generation(id.generation)?;
        let master = known.manifest.master(self.keys(), true)?;
        let data = match &master {
            Master::Key(key) => Some(key),
            _ => None,
        };
        let mut pack = PackWriter::create(&**store, new_id, data)?;
        for (number, entry) in old.table()?.iter().enumerate() {
            let number = number as u32;
            if entry.length == 0 || !marks.has_any(number) {
                pack.push_dropped(entry.slots);
                continue;
            }
            let frame = catalog.opened_frame(&old, number, &mut decompressor)?;
            let (lengths, raw) = live_part(&frame, number, marks);
            pack.push(&mut encoder, &lengths, &raw)?;
        }
        let info = pack.finish()?;
        let saved = old.size().saturating_sub(info.size);
        self.check_compacted(&catalog, (&old, &master), new_id, &info, marks)?;
        set_change(head, id, Some(info));
        head.write(&**store)?;
        heal::remove_if_allowed(&**store, &old.name, kept)?;
        heal::sync(&**store, &names::folder(id.generation))?;
        Ok(saved)
    }

    /// Reads a rewritten pack back and compares it with the old one, before that is removed.
    fn check_compacted(
        &self,
        catalog: &Catalog,
        (old, master): (&Arc<Opened>, &Master),
        id: ObjectId,
        info: &ObjectInfo,
        marks: &PackMarks,
    ) -> Result<()> {
        let expected = Expected {
            id,
            info: info.clone(),
        };
        let new = Opened::open(&**self.store(), expected, master)?;
        let mut decompressor =
            zstd::bulk::Decompressor::new().context(|| "failed to set up decompression")?;
        let table = new.table()?;
        for (number, entry) in table.iter().enumerate() {
            if entry.length == 0 {
                continue;
            }
            let number = number as u32;
            let mut read = |pack: &Opened| catalog.opened_frame(pack, number, &mut decompressor);
            let (before, after) = (read(old)?, read(&new)?);
            let same = (0..before.slots() as u16)
                .filter(|slot| marks.has(number, *slot))
                .all(|slot| before.slot(slot) == after.slot(slot));
            if !same {
                return Err(damaged(
                    &new.name,
                    format!("frame {number} was written incorrectly"),
                ));
            }
        }
        Ok(())
    }
}

/// Fails if the head is not the one that the plan was made for, or not any more.
fn check_same(head: &Head, planned: &Head) -> Result<()> {
    // That what was never forgotten stands among the live ones again was planned, too.
    let same = Head {
        sequence: planned.sequence,
        ..head.clone()
    } == *planned;
    match same {
        true => Ok(()),
        false => Err(changed()),
    }
}

/// Returns the name of a pack that is about to be rewritten: a new one.
fn next_revision(store: &dyn Store, id: ObjectId) -> Result<ObjectId> {
    let listed = list(store, &names::folder(id.generation))?;
    let found = listed
        .iter()
        .filter_map(|one| ObjectId::from_file_name(id.repository, id.generation, &one.name))
        .filter(|found| (found.kind, found.number) == (id.kind, id.number));
    let highest = found.map(|found| found.revision).max();
    let next = highest.unwrap_or(0).max(id.revision).checked_add(1);
    let revision = next.ok_or_else(|| damaged(&id.name(), "it has no next revision"))?;
    Ok(ObjectId { revision, ..id })
}

/// Returns slot lengths and bytes of a frame without its dead slots.
fn live_part(frame: &frame::Frame, number: u32, marks: &PackMarks) -> (Vec<u32>, Vec<u8>) {
    let mut lengths = Vec::with_capacity(frame.slots());
    let mut raw = Vec::new();
    for slot in 0..frame.slots() as u16 {
        let bytes = match frame.slot(slot) {
            Some(bytes) if marks.has(number, slot) => bytes,
            _ => &[],
        };
        lengths.push(bytes.len() as u32);
        raw.extend_from_slice(bytes);
    }
    (lengths, raw)
}

/// Records what stands in the place of an object from now on.
fn set_change(head: &mut Head, id: ObjectId, now: Option<ObjectInfo>) {
    let object = ObjectId { revision: 0, ..id }.file_name();
    head.changes
        .retain(|one| one.generation != id.generation || one.object != object);
    head.changes.push(Change {
        generation: id.generation,
        object,
        now,
    });
}
