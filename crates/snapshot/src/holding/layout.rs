//! Where the holding directories of a data directory are.

use crate::filesystem::{Identity, stable_hash};
use crate::{Layout, Settings, volume};
use evenkeel_op::{Context, Error, Result};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One filesystem that the server has files on, and the holding directory for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldingDirectory {
    /// The filesystem.
    pub filesystem: Identity,
    /// A directory of the server on it, the topmost.
    pub source: PathBuf,
    /// The existing directory in which the holding directory is made.
    pub parent: PathBuf,
    /// The holding directory. It may not exist yet.
    pub holding: PathBuf,
    /// Whether it is inside one of the server's own directories, which only the user can choose.
    pub inside: bool,
}

/// Returns one place for each filesystem that `layout` has directories on, the data directory's
/// first. `Refused` when there is no place for one of them outside the server's own directories.
pub fn places(layout: &Layout, settings: &Settings) -> Result<Vec<HoldingDirectory>> {
    if !layout.volumes.is_empty() {
        return places_of_volumes(layout, settings);
    }
    let datadir = canonical(&layout.datadir)?;
    let mut directories = vec![datadir.clone()];
    for directory in &layout.dirs {
        directories.push(canonical(directory)?);
    }
    let name = format!(
        ".evenkeel-{:016x}",
        stable_hash(datadir.as_os_str().as_bytes())
    );
    let mut places: Vec<HoldingDirectory> = Vec::new();
    // Parents sort before their children, so the first directory of a filesystem is a topmost one;
    // the data directory goes first whatever its name.
    directories[1..].sort();
    directories.dedup();
    for directory in &directories {
        let filesystem = Identity::of(directory)?;
        if places.iter().any(|place| place.filesystem == filesystem) {
            continue;
        }
        let named = named(filesystem, settings)?;
        let is_named = named.is_some();
        let parent = match named {
            Some(parent) => parent,
            None => beside(directory, filesystem)?,
        };
        let inside = directories.iter().any(|dir| parent.starts_with(dir));
        if inside && !is_named {
            return Err(no_place(directory));
        }
        places.push(HoldingDirectory {
            filesystem,
            source: directory.clone(),
            holding: parent.join(&name),
            parent,
            inside,
        });
    }
    Ok(places)
}

/// Returns one place for each filesystem that single files are on. No server looks into their
/// directories, so the holding directory is made there.
fn places_of_volumes(layout: &Layout, settings: &Settings) -> Result<Vec<HoldingDirectory>> {
    let mut volumes = Vec::new();
    for volume in &layout.volumes {
        volume::refuse_devices(volume)?;
        volumes.push(canonical(volume)?);
    }
    volumes.sort();
    let name = format!(".evenkeel-{:016x}", volume::id(&volumes));
    let mut places: Vec<HoldingDirectory> = Vec::new();
    for path in &volumes {
        let directory = path.parent().unwrap_or(path);
        let filesystem = Identity::of(directory)?;
        if places.iter().any(|place| place.filesystem == filesystem) {
            continue;
        }
        let parent = named(filesystem, settings)?.unwrap_or_else(|| directory.to_owned());
        places.push(HoldingDirectory {
            filesystem,
            source: directory.to_owned(),
            holding: parent.join(&name),
            parent,
            inside: false,
        });
    }
    Ok(places)
}

/// Returns the directory that the user named for a filesystem, if any.
fn named(filesystem: Identity, settings: &Settings) -> Result<Option<PathBuf>> {
    for directory in &settings.snapshot_dirs {
        let directory = canonical(directory)?;
        if Identity::of(&directory)? == filesystem {
            return Ok(Some(directory));
        }
    }
    Ok(None)
}

/// Returns the parent of a directory if it is on the same filesystem.
fn beside(directory: &Path, filesystem: Identity) -> Result<PathBuf> {
    match directory.parent() {
        Some(parent) if Identity::of(parent)? == filesystem => Ok(parent.to_owned()),
        _ => Err(no_place(directory)),
    }
}

fn no_place(directory: &Path) -> Error {
    Error::refused(format!(
        "there is no place beside {} on its filesystem for snapshots",
        directory.display()
    ))
    .hint("name a directory on the same filesystem, outside the server's own: --snapshot-dir DIR")
}

fn canonical(path: &Path) -> Result<PathBuf> {
    path.canonicalize()
        .context(|| format!("failed to find {}", path.display()))
}
