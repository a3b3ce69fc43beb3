//! Finishes or undoes what an interrupted run left. Called with the writer lock held, so nobody
//! is in the middle of anything.
//!
//! Nothing is removed here on the head's word: who may write can replace it. What goes is unfinished, or
//! has no manifest, which only who may delete can have taken away. The rest is for prune, which looks who
//! needs it: see `docs/src/design/repository.md`.

use crate::catalog::Catalog;
use crate::crypt::{self, Keyring};
use crate::fault::refused;
use crate::format::header::ObjectId;
use crate::head::{Head, Live};
use crate::ids::RepositoryId;
use crate::manifest;
use crate::names::{self, MANIFEST, PENDING, REMOVING};
pub(crate) use crate::removal::{
    clear_generation, remove, remove_generation, remove_if_allowed, sync,
};
use crate::store::{Store, UNFINISHED};
pub(crate) use crate::there::list;
use crate::there::{There, not_known};
use evenkeel_op::{ErrorKind, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What was found and done.
#[derive(Default)]
pub(crate) struct Healed {
    /// One sentence per thing done or found.
    pub(crate) notes: Vec<String>,
    /// The number of the next generation; none when there are no more.
    pub(crate) next: Option<u32>,
    /// Generations that are there and that the head does not know: a rolled-back head.
    pub(crate) unknown: Vec<u32>,
    /// What nothing needs and the store refuses to remove.
    pub(crate) refused: Vec<String>,
    /// What the head says now, with the manifests that were read.
    pub(crate) catalog: Option<Arc<Catalog>>,
}

impl Healed {
    /// Fails if there are generations that the head does not know: what they need could be
    /// removed by mistake.
    pub(crate) fn check_known(&self, store: &dyn Store) -> Result<()> {
        match self.unknown.first() {
            None => Ok(()),
            Some(generation) => Err(not_known(store, *generation)),
        }
    }
}

/// Heals the repository and updates `head` to what it is then.
pub(crate) fn heal(
    store: &Arc<dyn Store>,
    repository: RepositoryId,
    keys: &Keyring,
    head: &mut Head,
) -> Result<Healed> {
    heal_sparing(store, repository, keys, head, &BTreeSet::new())
}

/// Does the same, but leaves these unfinished generations to the run that resumes them.
pub(crate) fn heal_sparing(
    store: &Arc<dyn Store>,
    repository: RepositoryId,
    keys: &Keyring,
    head: &mut Head,
    spared: &BTreeSet<u32>,
) -> Result<Healed> {
    let mut healed = Healed::default();
    if keys.is_encrypted() && crypt::repair(&**store, repository)? {
        healed
            .notes
            .push("finished an interrupted change of keys".to_owned());
    }
    for listed in list(&**store, "")? {
        if listed.name.ends_with(UNFINISHED) && !listed.is_folder {
            remove(&**store, &listed.name)?;
        }
    }
    let there = There::read(&**store)?;
    healed.next = there.next(head);
    for generation in there.numbers() {
        if head.manifest(generation).is_none() && !spared.contains(&generation) {
            stray(&**store, keys, generation, &there, head, &mut healed)?;
        }
    }
    let raised = there.raise(head);
    if !raised.is_empty() {
        head.write(&**store)?;
    }
    healed.notes.extend(raised.iter().map(|generation| {
        format!(
            "generation {generation} was being forgotten, but is complete: it is kept; forget it \
             again to remove it"
        )
    }));
    for one in head.known() {
        unfinished(&**store, one.generation, &there, &mut healed)?;
    }
    if !healed.refused.is_empty() {
        healed.notes.push(refused(&healed.refused).to_string());
    }
    let catalog = Catalog::new(store.clone(), repository, keys.clone(), head.clone());
    healed.catalog = Some(Arc::new(catalog));
    Ok(healed)
}

/// Handles a generation that the head does not name.
fn stray(
    store: &dyn Store,
    keys: &Keyring,
    generation: u32,
    there: &There,
    head: &mut Head,
    healed: &mut Healed,
) -> Result<()> {
    let has = |name: &str| there.has(generation, name);
    let mut objects = there.objects(generation).iter();
    if !has(MANIFEST) && (has(REMOVING) || objects.all(|one| is_unfinished(&one.name))) {
        let marker = if has(REMOVING) { REMOVING } else { PENDING };
        return clear_generation(store, generation, marker, &mut healed.refused);
    }
    if !has(MANIFEST) && has(PENDING) {
        clear_generation(store, generation, PENDING, &mut healed.refused)?;
        healed.notes.push(format!(
            "removed the remains of an interrupted run of generation {generation}"
        ));
        return Ok(());
    }
    if has(PENDING) && adopt(store, keys, generation, there, head)? {
        healed
            .notes
            .push(format!("finished the commit of generation {generation}"));
        return Ok(());
    }
    if there.is_left_over(generation) {
        healed.notes.push(format!(
            "an interrupted run left parts of generation {generation}: prune checks whether they \
             are needed"
        ));
        return Ok(());
    }
    healed.unknown.push(generation);
    healed.notes.push(format!(
        "generation {generation} exists, but the head does not list it; left unchanged"
    ));
    Ok(())
}

/// Puts a generation that was committed in full into the head; returns whether it was.
fn adopt(
    store: &dyn Store,
    keys: &Keyring,
    generation: u32,
    there: &There,
    head: &mut Head,
) -> Result<bool> {
    let (manifest, digest) = match manifest::read(store, head.repository, keys, generation) {
        Ok(read) => read,
        Err(error) if error.kind() == ErrorKind::Differs => return Ok(false),
        // A newer version, or a store that cannot be read: nothing to decide here.
        Err(error) => return Err(error),
    };
    // Bases may have been forgotten since only by someone who healed first, as we do.
    let based = manifest.references.iter();
    if based
        .clone()
        .any(|base| head.manifest(base.generation) != Some(base.manifest))
    {
        return Ok(false);
    }
    let complete = manifest.objects.iter().all(|object| {
        let mut listed = there.objects(generation).iter();
        listed.any(|one| one.name == object.name && one.size == object.size)
    });
    if !complete {
        return Ok(false);
    }
    head.live.push(Live {
        generation,
        manifest: digest,
        proven: None,
    });
    head.live.sort_by_key(|live| live.generation);
    head.write(store)?;
    Ok(true)
}

/// Removes markers and unfinished objects of a known generation.
fn unfinished(
    store: &dyn Store,
    generation: u32,
    there: &There,
    healed: &mut Healed,
) -> Result<()> {
    let is_mark = |name: &str| name == PENDING || name == REMOVING || is_unfinished(name);
    let mut removed = false;
    for object in there.objects(generation) {
        if is_mark(&object.name) && !object.is_folder {
            let name = names::object(generation, &object.name);
            remove_if_allowed(store, &name, &mut healed.refused)?;
            removed = true;
        }
    }
    if removed {
        sync(store, &names::folder(generation))?;
    }
    Ok(())
}

/// Whether an object is one that this generation had, or was about to have, in another state
/// than its present one: dropped, compacted, or a compaction that was not published.
pub(crate) fn is_superseded(known: &crate::catalog::Known, id: ObjectId) -> bool {
    let original = ObjectId { revision: 0, ..id }.file_name();
    let listed = known
        .manifest
        .objects
        .iter()
        .any(|one| one.name == original);
    let present = known.objects.get(&(id.kind, id.number));
    listed && present.is_none_or(|present| present.id != id)
}

pub(crate) fn is_unfinished(name: &str) -> bool {
    name.ends_with(UNFINISHED)
}
