//! Finds out which objects nobody needs, and which are mostly dead.

use super::leftovers::Double;
use crate::catalog::Catalog;
use crate::crypt::Access;
use crate::format::header::{ObjectId, ObjectKind};
use crate::head::Head;
use crate::list::FileMeta;
use crate::locks;
use crate::map::{Entry, RecordRef};
use crate::marks::Marks;
use crate::repository::Repository;
use crate::there::There;
use crate::walk::{Visit, Walker};
use evenkeel_op::{Cancel, Error, Result};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How to prune.
#[derive(Debug, Clone)]
pub struct Prune {
    /// A pack of which less than this share is needed is rewritten; 0 never, 1 whenever any of
    /// it is not needed.
    pub live_share_min: f64,
    /// Generations taken for forgotten already, to see what forgetting them would free. Such a
    /// plan cannot be performed.
    pub assume_forgotten: Vec<u32>,
    /// How long to wait for others to end.
    pub wait: Duration,
}

impl Default for Prune {
    fn default() -> Self {
        Self {
            live_share_min: 0.5,
            assume_forgotten: Vec::new(),
            wait: Duration::ZERO,
        }
    }
}

/// One thing that pruning would do.
#[derive(Debug, Clone, PartialEq)]
pub enum PruneStep {
    /// An object that nothing refers to is removed.
    Drop {
        /// Its name in the store.
        object: String,
        /// Its length in bytes.
        size: u64,
    },
    /// A pack is rewritten without its dead blocks.
    Compact {
        /// Its name in the store.
        object: String,
        /// Its length in bytes.
        size: u64,
        /// Which share of its blocks' bytes is needed.
        live_share: f64,
    },
}

/// What pruning would do.
pub struct PrunePlan {
    /// In the order in which it would be done.
    pub steps: Vec<PruneStep>,
    /// Bytes that would be freed; those of rewritten packs are estimated.
    pub bytes_freed: u64,
    /// Packs that would be rewritten if the keys at hand could read them.
    pub unreadable: u64,
    pub(crate) drops: Vec<ObjectId>,
    pub(crate) compacts: Vec<ObjectId>,
    /// Forgotten generations of which nothing is left.
    pub(crate) removes: Vec<u32>,
    /// Objects that the head says are not there, and that the walk has shown to be needed by nobody.
    pub(crate) leftovers: Vec<(ObjectId, u64)>,
    /// Packs of which the head names another revision.
    pub(crate) doubles: Vec<Double>,
    /// What is left of generations that the head does not name, and that nobody needs.
    pub(crate) strays: Vec<u32>,
    pub(crate) marks: Marks,
    /// The head that the plan was made for.
    pub(crate) head: Head,
    pub(crate) is_assumed: bool,
}

struct Liveness<'c> {
    catalog: &'c Catalog,
    marks: Marks,
    /// Generations whose maps are needed.
    maps: BTreeSet<u32>,
}

impl Visit for Liveness<'_> {
    fn record(&mut self, at: RecordRef) -> Result<()> {
        self.maps.insert(at.generation);
        Ok(())
    }

    fn entries(&mut self, meta: &FileMeta, entries: Vec<(u64, Entry)>) -> Result<()> {
        for (number, entry) in entries {
            if let Entry::Data { place, .. } = entry {
                let length = meta.block_length(number);
                self.marks.mark(self.catalog, place, length)?;
            }
        }
        Ok(())
    }

    fn broken(&mut self, _file: &str, error: Error) -> Result<()> {
        // What a broken map needs cannot be known: nothing may be removed.
        Err(error)
    }
}

impl Repository {
    /// Plans a prune. Busy beside another prune or forget. Damaged maps are an error: what they
    /// need cannot be known.
    pub fn plan_prune(&self, how: &Prune, cancel: &Cancel) -> Result<PrunePlan> {
        let store = self.store();
        let _lock = locks::reader(&**store, how.wait)?;
        let there = There::read(&**store)?;
        // After the list, so that it knows all that is complete there.
        let mut head = self.head()?;
        if how.assume_forgotten.is_empty() {
            there.check_known(&**store, &head)?;
        }
        there.raise(&mut head);
        let live: Vec<u32> = head.live.iter().map(|live| live.generation).collect();
        let catalog = Arc::new(Catalog::new(
            store.clone(),
            self.id(),
            self.keys().clone(),
            head,
        ));
        let mut walker = Walker::new(catalog.clone(), cancel.clone());
        let mut needs = Liveness {
            catalog: &catalog,
            marks: Marks::default(),
            maps: BTreeSet::new(),
        };
        let stays = |number: &u32| !how.assume_forgotten.contains(number);
        for number in live.iter().copied().filter(stays) {
            walker.generation(number, &mut needs)?;
            needs.maps.insert(number);
        }
        let Liveness { marks, maps, .. } = needs;
        let mut plan = PrunePlan {
            steps: Vec::new(),
            bytes_freed: 0,
            unreadable: 0,
            drops: Vec::new(),
            compacts: Vec::new(),
            removes: Vec::new(),
            leftovers: Vec::new(),
            doubles: Vec::new(),
            strays: Vec::new(),
            marks,
            head: catalog.head.clone(),
            is_assumed: !how.assume_forgotten.is_empty(),
        };
        for known in catalog.head.known() {
            plan.generation(&catalog, known.generation, &maps, how)?;
            plan.left_over(&catalog, known.generation, &there);
        }
        plan.stray(&catalog, &there);
        plan.steps
            .sort_by_key(|step| matches!(step, PruneStep::Compact { .. }));
        Ok(plan)
    }
}

impl PrunePlan {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.drops.is_empty()
            && self.compacts.is_empty()
            && self.removes.is_empty()
            && self.leftovers.is_empty()
            && self.doubles.is_empty()
            && self.strays.is_empty()
    }

    pub(super) fn goes(&mut self, object: String, size: u64) {
        self.bytes_freed += size;
        self.steps.push(PruneStep::Drop { object, size });
    }

    fn generation(
        &mut self,
        catalog: &Catalog,
        generation: u32,
        maps: &BTreeSet<u32>,
        how: &Prune,
    ) -> Result<()> {
        let forgotten =
            catalog.head.is_retired(generation) || how.assume_forgotten.contains(&generation);
        let known = match catalog.generation(generation) {
            Ok(known) => known,
            // Nothing live rests on it, or the walk would have failed.
            Err(_) if forgotten => {
                self.removes.push(generation);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let mut remaining = known.objects.len();
        for ((kind, number), expected) in &known.objects {
            let (name, size) = (expected.id.name(), expected.info.size);
            let marks = self.marks.pack(generation, *number);
            let is_dead = match kind {
                ObjectKind::Pack => marks.is_none(),
                ObjectKind::Maps => forgotten && !maps.contains(&generation),
                ObjectKind::Files | ObjectKind::Run => forgotten,
            };
            if is_dead {
                remaining -= 1;
                self.drops.push(expected.id);
                self.goes(name, size);
                continue;
            }
            let (ObjectKind::Pack, Some(marks)) = (kind, marks) else {
                continue;
            };
            let opened = catalog.object(generation, *kind, *number)?;
            let table = opened.table()?;
            let raw: u64 = table.iter().map(|entry| u64::from(entry.raw_length)).sum();
            let live_share = marks.bytes as f64 / raw.max(1) as f64;
            if live_share >= how.live_share_min {
                continue;
            }
            if catalog.keys.access() < Access::Reader {
                self.unreadable += 1;
            } else {
                self.bytes_freed += (size as f64 * (1.0 - live_share)) as u64;
                self.compacts.push(expected.id);
                self.steps.push(PruneStep::Compact {
                    object: name,
                    size,
                    live_share,
                });
            }
        }
        if forgotten && remaining == 0 {
            self.removes.push(generation);
        }
        Ok(())
    }
}
