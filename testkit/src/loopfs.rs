//! Filesystems on loop devices: the ones whose snapshots are tested, and ones that are full soon.

use crate::Scratch;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The smallest size that `mkfs.xfs` accepts, in bytes.
pub const XFS_BYTES_MIN: u64 = 300 << 20;

/// A mounted filesystem on a sparse file. Unmounted, detached and deleted when dropped.
#[derive(Debug)]
pub struct LoopFs {
    // Dropped after our own Drop has unmounted what lies in it.
    scratch: Scratch,
    mount: PathBuf,
    kind: &'static str,
}

impl LoopFs {
    /// Makes an XFS with reflinks, of `bytes` (at least [`XFS_BYTES_MIN`]).
    #[must_use]
    pub fn xfs(bytes: u64) -> Self {
        assert!(bytes >= XFS_BYTES_MIN, "mkfs.xfs needs 300 MiB or more");
        Self::make("xfs", bytes, &["mkfs.xfs", "-q", "-m", "reflink=1"])
    }

    /// Makes a btrfs of `bytes` (at least 128 MiB).
    #[must_use]
    pub fn btrfs(bytes: u64) -> Self {
        Self::make("btrfs", bytes, &["mkfs.btrfs", "-q"])
    }

    /// Makes an ext4 of `bytes`: no reflinks, no snapshots, and soon full when small. Root may use
    /// every block of it.
    #[must_use]
    pub fn ext4(bytes: u64) -> Self {
        Self::make("ext4", bytes, &["mkfs.ext4", "-q", "-m", "0"])
    }

    /// Returns where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.mount
    }

    /// Returns the path of something inside.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.mount.join(name)
    }

    /// Returns the filesystem's name: `xfs`, `btrfs`, `ext4`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Makes the filesystem read-only or writable again.
    pub fn set_read_only(&self, read_only: bool) {
        let mode = if read_only {
            "remount,ro"
        } else {
            "remount,rw"
        };
        run(Command::new("mount").args(["-o", mode]).arg(&self.mount));
    }

    /// Unmounts and mounts again: nothing of it is in the page cache afterwards.
    pub fn remount(&self) {
        run(Command::new("umount").arg(&self.mount));
        mount(&self.image(), &self.mount);
    }

    fn image(&self) -> PathBuf {
        self.scratch.join("image")
    }

    fn make(kind: &'static str, bytes: u64, mkfs: &[&str]) -> Self {
        assert!(
            rustix::process::geteuid().is_root(),
            "tests that mount filesystems need root: run them as root or with sudo"
        );
        let scratch = Scratch::new();
        let mount_point = scratch.join("fs");
        let made = Self {
            mount: mount_point,
            kind,
            scratch,
        };
        std::fs::create_dir(&made.mount).expect("failed to create a mount point");
        let image = std::fs::File::create(made.image()).expect("failed to create an image file");
        image.set_len(bytes).expect("failed to size an image file");
        drop(image);
        run(Command::new(mkfs[0]).args(&mkfs[1..]).arg(made.image()));
        mount(&made.image(), &made.mount);
        made
    }
}

impl Drop for LoopFs {
    fn drop(&mut self) {
        unmount(&self.mount);
    }
}

/// Mounts an image; the kernel detaches the loop device with the last user.
fn mount(image: &Path, mount: &Path) {
    run(Command::new("mount")
        .args(["-o", "loop,noatime"])
        .arg(image)
        .arg(mount));
}

/// Unmounts as well as can be: a directory that something still uses is detached, and goes when
/// its last user goes.
pub(crate) fn unmount(mount: &Path) {
    for args in [&[][..], &["--lazy"]] {
        let ended = Command::new("umount").args(args).arg(mount).output();
        if ended.is_ok_and(|output| output.status.success()) {
            return;
        }
    }
}

fn run(command: &mut Command) {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("failed to run {name} ({e}): run testkit/setup"));
    assert!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
