//! One bit per stored block: seen or not. About 12 MiB for a tebibyte of 16 KiB blocks.

use crate::catalog::Catalog;
use crate::fault::damaged;
use crate::format::header::ObjectKind;
use crate::map::BlockAddress;
use evenkeel_op::Result;
use std::collections::HashMap;

#[derive(Default)]
pub(crate) struct Marks {
    packs: HashMap<(u32, u32), PackMarks>,
}

pub(crate) struct PackMarks {
    /// Per frame the number of its first slot, and the number of all slots at the end.
    starts: Vec<u32>,
    bits: Vec<u64>,
    /// Sum of the lengths of the marked blocks.
    pub(crate) bytes: u64,
}

impl PackMarks {
    fn position(&self, frame: u32, slot: u16) -> Option<usize> {
        let start = *self.starts.get(frame as usize)?;
        let end = *self.starts.get(frame as usize + 1)?;
        let position = start.checked_add(u32::from(slot))?;
        (position < end).then_some(position as usize)
    }

    /// Returns whether a slot is marked.
    pub(crate) fn has(&self, frame: u32, slot: u16) -> bool {
        self.position(frame, slot)
            .is_some_and(|at| self.bits[at / 64] >> (at % 64) & 1 == 1)
    }

    /// Returns whether any slot of a frame is marked.
    pub(crate) fn has_any(&self, frame: u32) -> bool {
        let slots = match (
            self.starts.get(frame as usize),
            self.starts.get(frame as usize + 1),
        ) {
            (Some(start), Some(end)) => end - start,
            _ => 0,
        };
        (0..slots).any(|slot| self.has(frame, slot as u16))
    }
}

impl Marks {
    /// Marks a block of `length` bytes; returns whether it was not marked before. A place that
    /// its pack does not have is an error.
    pub(crate) fn mark(
        &mut self,
        catalog: &Catalog,
        place: BlockAddress,
        length: usize,
    ) -> Result<bool> {
        let key = (place.generation, place.pack);
        let marks = match self.packs.entry(key) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => {
                let pack = catalog.object(place.generation, ObjectKind::Pack, place.pack)?;
                let mut starts = vec![0u32];
                let mut slots = 0u32;
                for entry in pack.table()?.iter() {
                    slots = slots.saturating_add(entry.slots);
                    starts.push(slots);
                }
                new.insert(PackMarks {
                    starts,
                    bits: vec![0; (slots as usize).div_ceil(64)],
                    bytes: 0,
                })
            }
        };
        let Some(at) = marks.position(place.frame, place.slot) else {
            let pack = format!("generations/{}/pack-{:04}", place.generation, place.pack);
            let what = format!("it has no slot {} of frame {}", place.slot, place.frame);
            return Err(damaged(&pack, what));
        };
        let bit = 1 << (at % 64);
        let is_new = marks.bits[at / 64] & bit == 0;
        if is_new {
            marks.bits[at / 64] |= bit;
            marks.bytes += length as u64;
        }
        Ok(is_new)
    }

    /// Returns the marks of a pack, if it has any.
    pub(crate) fn pack(&self, generation: u32, pack: u32) -> Option<&PackMarks> {
        self.packs.get(&(generation, pack))
    }
}
