//! Filesystems on loop devices: the ones whose snapshots are tested, and ones that are full soon. And
//! filesystems on devices that are there already, such as logical volumes.

use crate::Scratch;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The smallest size that `mkfs.xfs` accepts, in bytes.
pub const XFS_BYTES_MIN: u64 = 300 << 20;

/// A mounted filesystem on a sparse file: unmounted, detached and deleted when dropped. Or on a
/// device: that is only unmounted.
#[derive(Debug)]
pub struct LoopFs {
    // Dropped after our own Drop has unmounted what lies in it.
    _scratch: Scratch,
    mount: PathBuf,
    kind: &'static str,
    /// The file or the device.
    image: PathBuf,
}

impl LoopFs {
    /// Makes an XFS with reflinks, of `bytes` (at least [`XFS_BYTES_MIN`]).
    #[must_use]
    pub fn xfs(bytes: u64) -> Self {
        assert!(bytes >= XFS_BYTES_MIN, "mkfs.xfs needs 300 MiB or more");
        Self::make("xfs", bytes)
    }

    /// Makes a btrfs of `bytes` (at least 128 MiB).
    #[must_use]
    pub fn btrfs(bytes: u64) -> Self {
        Self::make("btrfs", bytes)
    }

    /// Makes an ext4 of `bytes`: no reflinks, no snapshots, and soon full when small. Root may use
    /// every block of it.
    #[must_use]
    pub fn ext4(bytes: u64) -> Self {
        Self::make("ext4", bytes)
    }

    /// Makes a filesystem of a `kind` (as above) on a block device.
    #[must_use]
    pub fn on(device: &Path, kind: &'static str) -> Self {
        let scratch = Scratch::new();
        Self::put(scratch, kind, device.to_owned())
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
        mount(&self.image, &self.mount);
    }

    fn make(kind: &'static str, bytes: u64) -> Self {
        let scratch = Scratch::new();
        let path = scratch.join("image");
        let image = std::fs::File::create(&path).expect("failed to create an image file");
        image.set_len(bytes).expect("failed to size an image file");
        Self::put(scratch, kind, path)
    }

    fn put(scratch: Scratch, kind: &'static str, image: PathBuf) -> Self {
        assert!(
            rustix::process::geteuid().is_root(),
            "tests that mount filesystems need root: run them as root or with sudo"
        );
        let made = Self {
            mount: scratch.join("fs"),
            kind,
            image,
            _scratch: scratch,
        };
        std::fs::create_dir(&made.mount).expect("failed to create a mount point");
        let mkfs: &[&str] = match kind {
            "xfs" => &["mkfs.xfs", "-q", "-m", "reflink=1"],
            "btrfs" => &["mkfs.btrfs", "-q"],
            "ext4" => &["mkfs.ext4", "-q", "-m", "0"],
            other => panic!("no filesystem called {other}"),
        };
        run(Command::new(mkfs[0]).args(&mkfs[1..]).arg(&made.image));
        mount(&made.image, &made.mount);
        made
    }
}

impl Drop for LoopFs {
    fn drop(&mut self) {
        unmount(&self.mount);
    }
}

/// Mounts an image, whose loop device the kernel detaches with its last user, or a device.
fn mount(image: &Path, mount: &Path) {
    let options = match image.is_file() {
        true => "loop,noatime",
        false => "noatime",
    };
    run(Command::new("mount")
        .args(["-o", options])
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

/// Runs a command and returns what it printed. Panics when it fails.
pub(crate) fn run(command: &mut Command) -> String {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("failed to run {name} ({e}): run testkit/setup"));
    assert!(
        output.status.success(),
        "{command:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
