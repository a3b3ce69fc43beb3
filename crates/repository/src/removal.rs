//! Takes objects and generations off the store.

use crate::fault::{refused, store_failed};
use crate::names::{self, GENERATIONS, MANIFEST};
use crate::store::Store;
use evenkeel_op::Result;
use std::io;

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
/// not delete, keep no run from continuing.
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
