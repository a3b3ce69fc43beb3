//! Snapshots of subvolumes by path, for callers that manage them themselves.

use crate::filesystem::KnownFilesystem;
use crate::holding::SUBVOLUME_ROOT;
use crate::ioctl;
use evenkeel_op::{Context, Error, Result};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Returns whether `path` is the root directory of a btrfs subvolume; a symbolic link is none.
pub fn is_subvolume(path: &Path) -> Result<bool> {
    let facts = path
        .symlink_metadata()
        .context(|| format!("failed to examine {}", path.display()))?;
    Ok(facts.is_dir()
        && facts.ino() == SUBVOLUME_ROOT
        && KnownFilesystem::of(path)? == KnownFilesystem::Btrfs)
}

/// Makes `to` a snapshot of the subvolume `from`. It contains what was synced; subvolumes
/// inside `from` are empty directories in it.
pub fn snapshot_subvolume(from: &Path, to: &Path, read_only: bool) -> Result<()> {
    let failed = || {
        format!(
            "failed to create {} as a snapshot of {}",
            to.display(),
            from.display()
        )
    };
    let (parent, name) = split(to)?;
    let (source, into) = (File::open(from), File::open(parent));
    ioctl::btrfs_snapshot(
        &source.context(failed)?,
        &into.context(failed)?,
        name,
        read_only,
    )
    .context(failed)
}

/// Deletes a subvolume with everything in it.
pub fn delete_subvolume(path: &Path) -> Result<()> {
    let failed = || format!("failed to delete the btrfs subvolume {}", path.display());
    let (parent, name) = split(path)?;
    let parent = File::open(parent).context(failed)?;
    ioctl::btrfs_delete(&parent, name).context(failed)
}

fn split(path: &Path) -> Result<(&Path, &OsStr)> {
    path.parent()
        .zip(path.file_name())
        .ok_or_else(|| Error::failed(format!("{} has no name", path.display())))
}
