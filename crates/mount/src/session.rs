//! A filesystem at its mount point: made, watched, taken away.

use crate::THREADS;
use crate::browse::Browse;
use crate::scratch::{Overlay, Writable};
use crate::tree::Tree;
use evenkeel_op::{Context, Error, ErrorKind, Result};
use fuser::{BackgroundSession, Config, Filesystem, MountOption, SessionACL};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// What a mount of ours is called in the kernel's table.
const NAME: &str = "evenkeel";
/// A filesystem that is shown at a place until it is unmounted, by us or by anybody.
#[derive(Debug)]
pub struct Mounted {
    mountpoint: PathBuf,
    session: BackgroundSession,
}

impl Mounted {
    /// Shows a tree, read-only.
    pub fn tree(tree: impl Tree, mountpoint: &Path) -> Result<Self> {
        Self::mount(Browse::new(tree), mountpoint, MountOption::RO, THREADS)
    }

    /// Shows a scratch directory, for reading and writing.
    pub fn overlay(overlay: Arc<Overlay>, mountpoint: &Path) -> Result<Self> {
        Self::mount(Writable::new(overlay), mountpoint, MountOption::RW, THREADS)
    }

    pub(crate) fn mount(
        filesystem: impl Filesystem,
        mountpoint: &Path,
        access: MountOption,
        threads: usize,
    ) -> Result<Self> {
        let mut config = Config::default();
        config.mount_options = vec![
            access,
            MountOption::FSName(NAME.to_owned()),
            MountOption::DefaultPermissions,
            MountOption::NoAtime,
        ];
        // Others see it where root mounts it: a server has an account of its own.
        config.acl = match rustix::process::geteuid().is_root() {
            true => SessionACL::All,
            false => SessionACL::Owner,
        };
        config.n_threads = Some(threads);
        config.clone_fd = true;
        let session = fuser::spawn_mount(filesystem, mountpoint, &config)
            .map_err(|error| cannot_mount(mountpoint, error))?;
        Ok(Self {
            mountpoint: whole(mountpoint),
            session,
        })
    }

    /// Returns whether it was unmounted.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.session.guard.is_finished()
    }

    /// Unmounts it, unless somebody still uses it: then that is [`ErrorKind::Busy`] and nothing
    /// has changed.
    pub fn unmount(&self) -> Result<()> {
        if self.has_ended() || !is_mounted(&self.mountpoint) {
            return Ok(());
        }
        run_unmount(&self.mountpoint, false)
    }

    /// Waits until everything that was asked is answered, after it was unmounted.
    pub fn join(self) -> Result<()> {
        let place = self.mountpoint.display().to_string();
        self.session
            .join()
            .context(|| format!("the filesystem at {place} ended early"))
    }
}

/// Takes away a mount of ours at a place whose process has died. Anything else is left alone.
/// Returns whether there was one.
pub fn heal(mountpoint: &Path) -> Result<bool> {
    // Attributes may come from the kernel's memory; for this it has to ask whoever serves it.
    let asked = rustix::fs::statvfs(mountpoint);
    let dead = matches!(asked, Err(rustix::io::Errno::NOTCONN));
    let place = whole(mountpoint);
    if !dead || !is_ours(&place) {
        return Ok(false);
    }
    run_unmount(&place, true)?;
    Ok(true)
}

fn cannot_mount(mountpoint: &Path, error: io::Error) -> Error {
    let is_missing = !Path::new("/dev/fuse").exists();
    let failed = Error::failed(format!("failed to mount at {}", mountpoint.display()));
    match is_missing {
        true => failed
            .because(error)
            .hint("load the kernel's FUSE: modprobe fuse"),
        false if !rustix::process::geteuid().is_root() => failed
            .because(error)
            .hint("users other than root need fusermount3: install the package fuse3"),
        false => failed.because(error),
    }
}

/// Unmounts by the system's own programs: they know who may.
fn run_unmount(mountpoint: &Path, lazily: bool) -> Result<()> {
    let mut command = match rustix::process::geteuid().is_root() {
        true => {
            let mut command = Command::new("umount");
            command.args(lazily.then_some("-l"));
            command
        }
        false => {
            let mut command = Command::new("fusermount3");
            command.arg("-u").args(lazily.then_some("-z"));
            command
        }
    };
    let output = command
        .arg("--")
        .arg(mountpoint)
        .env("LC_ALL", "C")
        .output()
        .context(|| format!("failed to unmount {}", mountpoint.display()))?;
    if output.status.success() || !is_mounted(mountpoint) {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let kind = match said.contains("busy") {
        true => ErrorKind::Busy,
        false => ErrorKind::Failed,
    };
    let place = mountpoint.display();
    Err(Error::new(
        kind,
        format!("failed to unmount {place}: {}", said.trim()),
    ))
}

fn is_mounted(mountpoint: &Path) -> bool {
    kind_at(mountpoint).is_some()
}

fn is_ours(mountpoint: &Path) -> bool {
    kind_at(mountpoint).is_some_and(|(kind, source)| kind.starts_with("fuse") && source == NAME)
}

/// Returns type and source of what is mounted at a place, from the kernel's table: a dead mount
/// cannot be asked.
fn kind_at(mountpoint: &Path) -> Option<(String, String)> {
    let place = whole(mountpoint);
    let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let found = table.lines().rev().find_map(|line| {
        let (front, back) = line.split_once(" - ")?;
        let mounted = unescaped(front.split(' ').nth(4)?);
        let mut back = back.split(' ');
        (Path::new(&mounted) == place).then(|| Some((back.next()?, back.next()?)))?
    });
    found.map(|(kind, source)| (kind.to_owned(), source.to_owned()))
}

/// How many links may lead to a mount point; the kernel's own limit.
const LINKS: u32 = 40;

/// Resolves a path without touching what is mounted there.
fn whole(path: &Path) -> PathBuf {
    let mut place = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for _ in 0..LINKS {
        if let (Some(parent), Some(name)) = (place.parent(), place.file_name())
            && let Ok(parent) = parent.canonicalize()
        {
            place = parent.join(name);
        }
        // Fails for anything but a link, a dead mount too.
        let Ok(target) = std::fs::read_link(&place) else {
            break;
        };
        place.pop();
        place.push(target);
    }
    place
}

/// Undoes the table's `\040`.
fn unescaped(field: &str) -> String {
    let mut text = String::new();
    let mut rest = field;
    while let Some((front, back)) = rest.split_once('\\') {
        text.push_str(front);
        let digits = back.get(..3).and_then(|d| u8::from_str_radix(d, 8).ok());
        match digits {
            Some(byte) => {
                text.push(char::from(byte));
                rest = &back[3..];
            }
            None => {
                text.push('\\');
                rest = back;
            }
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_in_the_table_are_read() {
        assert_eq!(unescaped("/a\\040b"), "/a b");
        assert_eq!(unescaped("/plain"), "/plain");
        assert_eq!(unescaped("/odd\\9"), "/odd\\9");
    }

    #[test]
    fn links_are_followed_to_where_it_is_mounted() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("real")).unwrap();
        for (link, target) in [("one", "real"), ("two", "./one"), ("ring", "ring")] {
            std::os::unix::fs::symlink(target, top.join(link)).unwrap();
        }
        assert_eq!(whole(&top.join("two")), top.join("real"));
        assert_eq!(whole(&top.join("missing")), top.join("missing"));
        assert_eq!(whole(&top.join("ring")), top.join("ring"));
        assert_eq!(whole(Path::new("/")), Path::new("/"));
    }

    #[test]
    fn what_is_no_dead_mount_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!heal(dir.path()).unwrap());
        assert!(!heal(Path::new("/proc")).unwrap());
        assert!(!heal(&dir.path().join("missing")).unwrap());
        assert!(!is_ours(Path::new("/proc")));
        assert!(is_mounted(Path::new("/proc")));
    }
}
