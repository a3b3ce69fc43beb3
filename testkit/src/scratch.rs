//! Scratch directories that carry their owner's process id, so that the next run can remove what a
//! killed one left behind.

use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// What scratch directories are called: this, the owner's process id, a number.
const PREFIX: &str = "evenkeel-test-";
/// What the product's server launcher calls its directories.
const LAUNCHER_PREFIX: &str = "evenkeel-";

/// Where temporary files are on a disk.
const ON_DISK: &str = "/var/tmp";

/// A directory for one test, removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes an empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self::below(&parent())
    }

    /// Makes one on a disk, whatever `make test` does with temporary files: for a test of what the kernel remembers
    /// of files, and can forget.
    #[must_use]
    pub fn on_disk() -> Self {
        Self::below(Path::new(ON_DISK))
    }

    fn below(parent: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        static REAPED: Once = Once::new();
        REAPED.call_once(reap);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path)
            .unwrap_or_else(|e| panic!("failed to create {}: {e}", path.display()));
        Self { path }
    }

    /// Returns the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of something inside.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// The parent of all scratch directories.
fn parent() -> PathBuf {
    std::env::temp_dir()
}

/// Removes the scratch directories, mounts and loop devices of processes that no longer exist.
pub fn reap() {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for parent in [parent(), PathBuf::from("/tmp"), PathBuf::from(ON_DISK)] {
        for entry in std::fs::read_dir(&parent).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if !owner_of(&name.to_string_lossy()).is_some_and(is_dead) {
                continue;
            }
            let dir = entry.path();
            for mount in mounts.lines().filter_map(|line| line.split(' ').nth(1)) {
                if Path::new(mount).starts_with(&dir) {
                    crate::loopfs::unmount(Path::new(mount));
                }
            }
            let _ = std::fs::remove_dir_all(&dir);
        }
    }
}

/// Reads the process id out of `evenkeel-test-123-0` or `evenkeel-123-0`.
fn owner_of(name: &str) -> Option<i32> {
    let rest = name
        .strip_prefix(PREFIX)
        .or_else(|| name.strip_prefix(LAUNCHER_PREFIX))?;
    let (pid, number) = rest.split_once('-')?;
    number.parse::<u32>().ok()?;
    pid.parse().ok()
}

fn is_dead(pid: i32) -> bool {
    !Path::new(&format!("/proc/{pid}")).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_read_from_names() {
        assert_eq!(owner_of("evenkeel-test-123-0"), Some(123));
        assert_eq!(owner_of("evenkeel-77-3"), Some(77));
        assert_eq!(owner_of("evenkeel-notes"), None);
        assert_eq!(owner_of("evenkeel-1-notes"), None);
        assert_eq!(owner_of("somebody-1-2"), None);
    }

    #[test]
    fn what_a_dead_process_left_is_removed_and_nothing_else() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let dead = child.id();
        child.wait().unwrap();
        let left = parent().join(format!("{PREFIX}{dead}-0"));
        std::fs::create_dir_all(left.join("deep")).unwrap();
        let mine = Scratch::new();
        std::fs::write(mine.join("kept"), "x").unwrap();
        reap();
        assert!(!left.exists());
        assert!(mine.join("kept").exists());
    }
}
