//! Deleting a snapshot: a tree of files in which btrfs snapshots may sit.

use crate::failpoints::fail_point;
use crate::filesystem::KnownFilesystem;
use crate::ioctl;
use evenkeel_op::own_directory::shown;
use evenkeel_op::{Context, Result};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The name under which the btrfs provider keeps its snapshot in a run's directory.
pub(crate) const SNAPSHOT: &str = "snapshot";

/// The inode number of every btrfs subvolume's root directory.
pub(crate) const SUBVOLUME_ROOT: u64 = 256;

/// Deletes a run's directory or a base with everything in it; one that is gone already is fine.
/// Follows no symbolic link.
pub(super) fn tree(path: &Path) -> Result<()> {
    let failed = || format!("failed to delete {}", shown(path).display());
    fail_point!("snapshot::holding::deleting");
    let snapshot = path.join(SNAPSHOT);
    match snapshot.symlink_metadata() {
        Ok(facts)
            if facts.is_dir()
                && facts.ino() == SUBVOLUME_ROOT
                && KnownFilesystem::of(&snapshot)? == KnownFilesystem::Btrfs =>
        {
            let parent = File::open(path).context(failed)?;
            ioctl::btrfs_delete(&parent, SNAPSHOT.as_ref()).context(|| {
                format!(
                    "failed to delete the btrfs snapshot {}",
                    shown(&snapshot).display()
                )
            })?;
            fail_point!("snapshot::holding::snapshot_deleted");
        }
        _ => {}
    }
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context(failed),
        _ => Ok(()),
    }
}
