//! Finishes or undoes what an interrupted run left. Called with the writer lock held, so nobody
//! is in the middle of anything.

use crate::catalog::Catalog;
use crate::crypt::{self, Keyring};
use crate::fault::{damaged, refused, store_failed};
use crate::format::header::ObjectId;
use crate::head::{Head, Live, rebuild_hint};
use crate::ids::RepositoryId;
use crate::manifest;
use crate::names::{self, GENERATIONS, MANIFEST, PENDING, REMOVING};
use crate::store::{Listed, Store, UNFINISHED};
use evenkeel_op::{ErrorKind, Result};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

/// What was found and done.
#[derive(Default)]
pub(crate) struct Healed {
    /// One sentence per thing done or found.
    pub(crate) notes: Vec<String>,
    /// The highest generation number seen, in the head or on the store.
    pub(crate) highest: u32,
    /// Generations with a manifest that the head does not know: a rolled-back head.
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
            Some(generation) => Err(damaged(
                names::HEAD,
                format!("generation {generation} was committed, but it does not know it"),
            )
            .hint(rebuild_hint(store))),
        }
    }
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

/// Heals the repository and updates `head` to what it is then.
pub(crate) fn heal(
    store: &Arc<dyn Store>,
    repository: RepositoryId,
    keys: &Keyring,
    head: &mut Head,
) -> Result<Healed> {
    heal_sparing(store, repository, keys, head, &BTreeSet::new())
}

/// Does the same, but leaves these unfinished generations to who goes on with them.
pub(crate) fn heal_sparing(
    store: &Arc<dyn Store>,
    repository: RepositoryId,
    keys: &Keyring,
    head: &mut Head,
    spared: &BTreeSet<u32>,
) -> Result<Healed> {
    let mut healed = Healed::default();
    if keys.is_encrypted() && crypt::mend(&**store, repository)? {
        healed
            .notes
            .push("finished an interrupted change of keys".to_owned());
    }
    for listed in list(&**store, "")? {
        if listed.name.ends_with(UNFINISHED) && !listed.is_folder {
            remove(&**store, &listed.name)?;
        }
    }
    let known = head.known();
    healed.highest = known.iter().map(|one| one.generation).max().unwrap_or(0);
    for folder in list(&**store, GENERATIONS)? {
        let Ok(generation) = folder.name.parse::<u32>() else {
            continue;
        };
        if !folder.is_folder || generation.to_string() != folder.name {
            continue;
        }
        healed.highest = healed.highest.max(generation);
        if head.manifest(generation).is_none() && !spared.contains(&generation) {
            stray(&**store, keys, generation, head, &mut healed)?;
        }
    }
    let known: Vec<u32> = head.known().iter().map(|one| one.generation).collect();
    let folders: Vec<String> = known.iter().map(|one| names::folder(*one)).collect();
    let listed = store.list_all(&folders);
    let mut filled = Vec::new();
    for ((generation, folder), listed) in known.into_iter().zip(&folders).zip(listed) {
        let objects = or_none(folder, listed)?;
        if objects.iter().any(is_suspect) {
            filled.push((generation, objects));
        }
    }
    let catalog = Catalog::new(store.clone(), repository, keys.clone(), head.clone());
    catalog.prepare(filled.iter().map(|(generation, _)| *generation));
    for (generation, objects) in filled {
        leftovers(&catalog, generation, &objects, &mut healed)?;
    }
    if !healed.refused.is_empty() {
        healed.notes.push(refused(&healed.refused).to_string());
    }
    healed.catalog = Some(Arc::new(catalog));
    Ok(healed)
}

/// Handles a generation that the head does not name.
fn stray(
    store: &dyn Store,
    keys: &Keyring,
    generation: u32,
    head: &mut Head,
    healed: &mut Healed,
) -> Result<()> {
    let folder = names::folder(generation);
    let objects = list(store, &folder)?;
    let has = |name: &str| objects.iter().any(|object| object.name == name);
    if has(REMOVING) {
        return clear_generation(store, generation, REMOVING, &mut healed.refused);
    }
    if !has(PENDING) && !has(MANIFEST) && objects.iter().all(|one| is_unfinished(&one.name)) {
        return clear_generation(store, generation, PENDING, &mut healed.refused);
    }
    if !has(PENDING) {
        healed.unknown.push(generation);
        healed.notes.push(format!(
            "generation {generation} is there, but the head does not know it; left as it is"
        ));
        return Ok(());
    }
    if has(MANIFEST) && adopt(store, keys, generation, head)? {
        healed
            .notes
            .push(format!("finished the commit of generation {generation}"));
        return Ok(());
    }
    clear_generation(store, generation, PENDING, &mut healed.refused)?;
    healed.notes.push(format!(
        "removed what an interrupted run left of generation {generation}"
    ));
    Ok(())
}

/// Puts a generation that was committed in full into the head; returns whether it was.
fn adopt(store: &dyn Store, keys: &Keyring, generation: u32, head: &mut Head) -> Result<bool> {
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
    let folder = list(store, &names::folder(generation))?;
    let complete = manifest.objects.iter().all(|object| {
        let mut listed = folder.iter();
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

/// Whether something in a known generation's folder may have to go.
fn is_suspect(object: &Listed) -> bool {
    object.name != MANIFEST && !object.is_folder
}

/// Removes from a known generation what the head says is not there any more.
fn leftovers(
    catalog: &Catalog,
    generation: u32,
    objects: &[Listed],
    healed: &mut Healed,
) -> Result<()> {
    let (store, repository) = (&*catalog.store, catalog.repository);
    let known = match catalog.generation(generation) {
        Ok(known) => known,
        Err(error) => {
            // Damage is for verify to report; a backup can go on beside it.
            healed.notes.push(error.chain());
            return Ok(());
        }
    };
    let mut removed = false;
    for object in objects.iter().filter(|one| is_suspect(one)) {
        let id = ObjectId::from_file_name(repository, generation, &object.name);
        let current = |id: ObjectId| {
            let expected = known.objects.get(&(id.kind, id.number));
            expected.is_some_and(|expected| expected.id == id)
        };
        let ours = object.name == PENDING
            || object.name == REMOVING
            || is_unfinished(&object.name)
            || id.is_some_and(|id| is_superseded(&known, id));
        if ours && !id.is_some_and(current) {
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

/// Removes all objects of a generation that the head does not name. `marker` goes last: while it
/// is there, whoever comes next knows what to do.
pub(crate) fn remove_generation(store: &dyn Store, generation: u32, marker: &str) -> Result<()> {
    let mut kept = Vec::new();
    clear_generation(store, generation, marker, &mut kept)?;
    if kept.is_empty() {
        return Ok(());
    }
    Err(refused(&kept))
}

/// Does the same as far as the store allows it. What stays keeps its marker.
pub(crate) fn clear_generation(
    store: &dyn Store,
    generation: u32,
    marker: &str,
    refused: &mut Vec<String>,
) -> Result<()> {
    let before = refused.len();
    let folder = names::folder(generation);
    let objects = match store.list(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(|error| store_failed("list", &folder, error))?,
    };
    // Without its manifest the generation cannot be taken for a committed one.
    if objects.iter().any(|object| object.name == MANIFEST) {
        remove_if_allowed(store, &names::object(generation, MANIFEST), refused)?;
        if refused.len() > before {
            return Ok(());
        }
        sync(store, &folder)?;
    }
    for object in objects.iter().filter(|object| object.name != marker) {
        remove_if_allowed(store, &names::object(generation, &object.name), refused)?;
    }
    if refused.len() > before {
        return Ok(());
    }
    sync(store, &folder)?;
    remove(store, &names::object(generation, marker))?;
    sync(store, &folder)?;
    store
        .remove_folder(&folder)
        .map_err(|error| store_failed("remove", &folder, error))?;
    sync(store, GENERATIONS)
}

/// Removes an object, or notes that the store does not allow it: a retention, or credentials that may
/// not delete, keep nobody from going on.
pub(crate) fn remove_if_allowed(
    store: &dyn Store,
    name: &str,
    refused: &mut Vec<String>,
) -> Result<()> {
    match store.remove(name) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            refused.push(name.to_owned());
            Ok(())
        }
        other => other.map_err(|error| store_failed("remove", name, error)),
    }
}

pub(crate) fn remove(store: &dyn Store, name: &str) -> Result<()> {
    store
        .remove(name)
        .map_err(|error| store_failed("remove", name, error))
}

pub(crate) fn sync(store: &dyn Store, folder: &str) -> Result<()> {
    store
        .sync_folder(folder)
        .map_err(|error| store_failed("sync", folder, error))
}
