//! What sort of filesystem a path is on, and whether two paths are on the same one.

use crate::ioctl;
use evenkeel_op::{Context, Result};
use rustix::fs::{CWD, Mode, OFlags};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The kinds of filesystem that are distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownFilesystem {
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// Anything else, by its magic number.
    Other(u64),
}

impl KnownFilesystem {
    /// Returns the sort of filesystem that `path` is on.
    pub fn of(path: &Path) -> Result<Self> {
        let facts = rustix::fs::statfs(path)
            .context(|| format!("failed to examine the filesystem of {}", path.display()))?;
        // The kernel's numbers are 32 bits wide; the field is a signed word on some machines.
        Ok(match facts.f_type as u64 & 0xFFFF_FFFF {
            0x5846_5342 => Self::Xfs,
            0x9123_683E => Self::Btrfs,
            other => Self::Other(other),
        })
    }

    /// Returns the name that people know it by.
    #[must_use]
    pub fn name(self) -> String {
        let name = match self {
            Self::Xfs => "XFS",
            Self::Btrfs => "btrfs",
            Self::Other(0xEF53) => "ext4",
            Self::Other(0x0102_1994) => "tmpfs",
            Self::Other(0x794C_7630) => "overlayfs",
            Self::Other(0x6969) => "NFS",
            Self::Other(0x2FC1_2FC1) => "ZFS",
            Self::Other(0xCA45_1A4E) => "bcachefs",
            Self::Other(0xF2F5_2010) => "F2FS",
            Self::Other(0x6573_5546) => "FUSE",
            Self::Other(magic) => return format!("filesystem {magic:#x}"),
        };
        name.to_owned()
    }

    /// Returns whether an extent address means one place for as long as an extent lives, so that
    /// [`crate::extents::changed`] may be believed.
    #[must_use]
    pub fn has_true_extents(self) -> bool {
        matches!(self, Self::Xfs | Self::Btrfs)
    }
}

/// Which filesystem a path is on: equal for all subvolumes of one btrfs, whose device numbers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Identity {
    /// A btrfs, by its UUID.
    Btrfs([u8; 16]),
    /// Any other, by its device number.
    Device(u64),
}

impl Identity {
    /// Returns the identity of the filesystem that directory `path` is on.
    pub fn of(path: &Path) -> Result<Self> {
        let failed = || format!("failed to examine {}", path.display());
        if KnownFilesystem::of(path)? == KnownFilesystem::Btrfs {
            let directory = File::open(path).context(failed)?;
            return Ok(Self::Btrfs(ioctl::btrfs_uuid(&directory).context(failed)?));
        }
        Ok(Self::Device(path.metadata().context(failed)?.dev()))
    }
}

/// Clones a nameless 4 KiB file of directory `from` into a nameless file of directory `to`, the only
/// trustworthy answer to whether files can be cloned that way. Leaves nothing behind.
pub fn try_clone(from: &Path, to: &Path) -> io::Result<()> {
    let nameless = |directory: &Path| {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, directory, flags, Mode::RUSR | Mode::WUSR).map(File::from)
    };
    let mut source = nameless(from)?;
    source.write_all(&[b'e'; 4096])?;
    let target = nameless(to)?;
    Ok(rustix::fs::ioctl_ficlone(&target, &source)?)
}

/// Returns a 64-bit FNV-1a hash: names holding directories, so it must never change.
#[must_use]
pub fn stable_hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        assert_eq!(stable_hash(b""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(stable_hash(b"foobar"), 0x8594_4171_F739_67E8);
    }

    #[test]
    fn proc_is_no_place_for_clones() {
        let proc = Path::new("/proc");
        assert!(!KnownFilesystem::of(proc).unwrap().has_true_extents());
        assert!(try_clone(proc, proc).is_err());
        assert_ne!(
            Identity::of(proc).unwrap(),
            Identity::of(Path::new("/")).unwrap()
        );
    }
}
