//! Raw volumes and single files, backed up without any server.

use crate::facts::VOLUME_ROOT;
use evenkeel_op::{Context, Error, Result};
use evenkeel_server::files::{ServerFiles, generation_name};
use evenkeel_snapshot::{Layout, volume};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Bytes that are stored, and compared, in one piece.
const BLOCK: u64 = 16 << 10;

/// Finds the volumes. `Refused` when two have the same name, or one is no volume.
pub(in crate::backup) fn find(paths: &[PathBuf]) -> Result<ServerFiles> {
    let mut files: BTreeMap<String, (PathBuf, u64)> = BTreeMap::new();
    for path in paths {
        let failed = || format!("failed to find {}", path.display());
        let real = match volume::kind(path)? {
            volume::VolumeKind::File => path.canonicalize(),
            // What the links to a block device lead to has another name after each start.
            volume::VolumeKind::Device => std::path::absolute(path),
        }
        .context(failed)?;
        let size = File::open(&real)
            .and_then(|file| volume::size(&file))
            .context(|| format!("failed to examine {}", path.display()))?;
        let name = name_of(path)?;
        if let Some((other, _)) = files.insert(name.clone(), (real, size)) {
            return Err(Error::refused(format!(
                "{} and {} would both be called {name}",
                other.display(),
                path.display()
            ))
            .hint("give one of them another name through a symbolic link"));
        }
    }
    let dir = files
        .values()
        .next()
        .and_then(|(path, _)| path.parent())
        .ok_or_else(|| Error::usage("no volume was given"))?
        .to_owned();
    let files = files
        .into_iter()
        .map(|(name, (path, size))| (name, path, size));
    ServerFiles::of_no_server(VOLUME_ROOT, &dir, files.collect())
}

/// Names a volume in a generation: as it was called by whoever named it, not as links lead on.
fn name_of(path: &Path) -> Result<String> {
    path.file_name()
        .map(|leaf| generation_name(VOLUME_ROOT, Path::new(leaf)))
        .ok_or_else(|| Error::usage(format!("{} has no name of its own", path.display())))
}

/// Describes the volumes for the snapshot providers.
pub(in crate::backup) fn layout(files: &ServerFiles) -> Layout {
    let volumes: Vec<PathBuf> = files.files.iter().map(|file| file.path.clone()).collect();
    let mut dirs: Vec<PathBuf> = volumes
        .iter()
        .filter_map(|path| Some(path.parent()?.to_owned()))
        .collect();
    dirs.sort();
    dirs.dedup();
    Layout {
        datadir: files.datadir.clone(),
        dirs,
        server_running: false,
        page_bytes: BLOCK,
        volumes,
    }
}

/// Returns where each volume of a layout is, by its name; nothing for a server.
pub(in crate::backup) fn places(layout: &Layout, files: &ServerFiles) -> BTreeMap<String, String> {
    if layout.volumes.is_empty() {
        return BTreeMap::new();
    }
    let files = files.files.iter();
    files
        .map(|file| (file.name.clone(), file.path.display().to_string()))
        .collect()
}
