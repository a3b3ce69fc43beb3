//! The filesystem in a snapshot, mounted read-only and nowhere: only this process can see it, through
//! a descriptor, and it goes with the process however that ends.
//!
//! A volume that is suspended for a snapshot freezes the filesystem on it: everything is written out
//! and the log holds nothing that matters. So no recovery is needed, which could not be done on a
//! read-only mount of a volume that is not to be written to.

use evenkeel_op::{Context, Error, Result};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A filesystem that is mounted as long as this lives.
#[derive(Debug)]
pub(super) struct Mounted(OwnedFd);

impl Mounted {
    /// Returns where its root directory is, for this process.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}

/// Returns the options with which a kind of filesystem is mounted from a snapshot; `Refused` for kinds
/// of which that is not known.
fn options(kind: &str) -> Result<&'static [&'static str]> {
    match kind {
        "xfs" => Ok(&["ro", "nouuid", "norecovery"]),
        "ext4" | "ext3" | "ext2" => Ok(&["ro", "noload"]),
        _ => Err(Error::refused(format!(
            "evenkeel does not mount snapshots of volumes with {kind}"
        ))
        .hint("it supports XFS and ext4")),
    }
}

/// Fails when a kind of filesystem cannot be mounted from a snapshot.
pub(super) fn require(kind: &str) -> Result<()> {
    options(kind).map(|_| ())
}

/// Mounts what is on a device.
pub(super) fn mount(device: &Path, kind: &str) -> Result<Mounted> {
    let failed = || format!("failed to mount {} read-only as {kind}", device.display());
    let options = options(kind)?;
    let filesystem = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).context(failed)?;
    rustix::mount::fsconfig_set_string(&filesystem, "source", device).context(failed)?;
    for option in options {
        rustix::mount::fsconfig_set_flag(&filesystem, *option).context(failed)?;
    }
    rustix::mount::fsconfig_create(&filesystem).context(failed)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
        | MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    rustix::mount::fsmount(&filesystem, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
        .map(Mounted)
        .context(failed)
}
