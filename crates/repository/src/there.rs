//! What the store shows of generations, whatever the head says.
//!
//! The head is replaced by every run, so that whoever may write can replace it; nobody without the right to
//! delete can take an object away. What is gone therefore counts as proof, and what the head says does not:
//! a generation was forgotten when its `files` is gone, and it never was, or is being removed, when its
//! `manifest` is not there.

use crate::fault::{damaged, store_failed};
use crate::head::{Head, Live, rebuild_hint};
use crate::manifest::Manifest;
use crate::names::{self, FILES, GENERATIONS, MANIFEST, PENDING, REMOVING};
use crate::repository::Repository;
use crate::store::{Listed, Store};
use evenkeel_op::Result;
use std::collections::BTreeMap;
use std::io;

/// The folders of generations, and what is in them.
pub(crate) struct There {
    folders: BTreeMap<u32, Vec<Listed>>,
}

/// Lists a folder; a missing one is empty.
pub(crate) fn list(store: &dyn Store, folder: &str) -> Result<Vec<Listed>> {
    or_none(folder, store.list(folder))
}

fn or_none(folder: &str, listed: io::Result<Vec<Listed>>) -> Result<Vec<Listed>> {
    match listed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(|error| store_failed("list", folder, error)),
    }
}

/// Returns the number of a generation whose folder this is.
pub(crate) fn number_of(folder: &Listed) -> Option<u32> {
    let number = folder.name.parse::<u32>().ok()?;
    (folder.is_folder && number.to_string() == folder.name).then_some(number)
}

impl There {
    /// Lists all generations. Read the head afterwards where others may be adding to it: it then knows
    /// whatever is complete here.
    pub(crate) fn read(store: &dyn Store) -> Result<Self> {
        let mut numbers: Vec<u32> = list(store, GENERATIONS)?
            .iter()
            .filter_map(number_of)
            .collect();
        numbers.sort_unstable();
        let folders: Vec<String> = numbers.iter().map(|one| names::folder(*one)).collect();
        let listed = store.list_all(&folders).into_iter().zip(&folders);
        let listed = listed.map(|(listed, folder)| or_none(folder, listed));
        Ok(Self {
            folders: numbers
                .into_iter()
                .zip(listed)
                .map(|(number, listed)| Ok((number, listed?)))
                .collect::<Result<_>>()?,
        })
    }

    /// Returns the generations that have a folder, in ascending order.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.folders.keys().copied()
    }

    /// Returns what is in a generation's folder.
    pub(crate) fn objects(&self, generation: u32) -> &[Listed] {
        self.folders.get(&generation).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn has(&self, generation: u32, name: &str) -> bool {
        self.objects(generation).iter().any(|one| one.name == name)
    }

    /// Whether a generation that the head does not name can be restored by nobody, and says that a run was
    /// ended while it was made or removed: what is left of it is for prune, which looks who needs it.
    pub(crate) fn is_left_over(&self, generation: u32) -> bool {
        self.has(generation, MANIFEST)
            && !self.has(generation, FILES)
            && (self.has(generation, PENDING) || self.has(generation, REMOVING))
    }

    /// Returns the number of the next generation: the first above those that the head knows which has no
    /// folder. So a folder with a high number, whoever made it, uses up no numbers.
    pub(crate) fn next(&self, head: &Head) -> Option<u32> {
        let mut next = head.known().last().map_or(0, |one| one.generation);
        loop {
            next = next.checked_add(1)?;
            if !self.folders.contains_key(&next) {
                return Some(next);
            }
        }
    }

    /// Puts back among the live generations those that the head calls forgotten and whose `files` is there:
    /// the forgetting was interrupted, or nobody who may forget wrote that. Returns which.
    pub(crate) fn raise(&self, head: &mut Head) -> Vec<u32> {
        let (raised, retired): (Vec<_>, Vec<_>) = head
            .retired
            .drain(..)
            .partition(|one| self.has(one.generation, FILES));
        head.retired = retired;
        head.live.extend(raised.iter().map(|one| Live {
            generation: one.generation,
            manifest: one.manifest,
            proven: None,
        }));
        head.live.sort_by_key(|live| live.generation);
        raised.iter().map(|one| one.generation).collect()
    }

    /// Fails if there is a generation that the head does not know, and that no run is adding: what it needs
    /// could be removed by mistake.
    pub(crate) fn check_known(&self, store: &dyn Store, head: &Head) -> Result<()> {
        let unknown = |one: &u32| {
            head.manifest(*one).is_none()
                && self.has(*one, MANIFEST)
                && !self.has(*one, PENDING)
                && !self.is_left_over(*one)
        };
        match self.numbers().find(unknown) {
            None => Ok(()),
            Some(generation) => Err(not_known(store, generation)),
        }
    }
}

impl Repository {
    /// Returns the manifests of all generations that are there, those included that the head calls forgotten
    /// and that were not: what they need must stay.
    ///
    /// Errors: `Differs` where there is one that the head does not know, or that is damaged.
    pub fn standing(&self) -> Result<Vec<Manifest>> {
        let store = &**self.store();
        let there = There::read(store)?;
        let mut head = self.head()?;
        there.check_known(store, &head)?;
        there.raise(&mut head);
        let each = head.live.iter();
        each.map(|live| self.checked_manifest(live.generation, live.manifest))
            .collect()
    }
}

/// Makes the error for a generation that is there and that the head does not know.
pub(crate) fn not_known(store: &dyn Store, generation: u32) -> evenkeel_op::Error {
    damaged(
        names::HEAD,
        format!("generation {generation} was committed, but the head does not list it"),
    )
    .hint(rebuild_hint(store))
}
