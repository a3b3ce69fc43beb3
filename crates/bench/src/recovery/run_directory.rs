//! The directory in which all of it happens, and what killed runs left there.
//!
//! ```text
//! lock            held while a run works here
//! crashed/NAME/   a data directory as SIGKILL left it, complete once `made` is beside it
//! copy/           the data directory that is started on
//! slow/           the same, as seen through a filesystem that takes its time
//! run/            sockets and logs of servers
//! ```

use super::make::Crashed;
use super::request::WorkLocation;
use evenkeel_op::disk::remove_any;
use evenkeel_op::own_directory::OwnDirectory;
use evenkeel_op::{Context, Error, ErrorKind, Result, units};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Marks directories of ours: a later run removes those that nobody works in.
const PREFIX: &str = "evenkeel-recovery-";

/// A directory of one run.
#[derive(Debug)]
pub(super) struct RunDirectory {
    top: PathBuf,
    is_kept: bool,
    /// Held until the directory is gone.
    _lock: File,
}

impl RunDirectory {
    /// Makes it, after removing what killed runs left.
    pub(super) fn prepare(place: &WorkLocation) -> Result<Self> {
        let (top, is_kept) = match place {
            WorkLocation::Kept(top) => (top.clone(), true),
            WorkLocation::Below(parent) => {
                remove_leftovers(parent);
                (new_name(parent), false)
            }
        };
        OwnDirectory::make(&top, 0o755)?;
        let top = top
            .canonicalize()
            .context(|| format!("failed to find {}", top.display()))?;
        let lock = lock(&top)?.ok_or_else(|| {
            Error::new(
                ErrorKind::Busy,
                format!("another run works in {}", top.display()),
            )
        })?;
        let run_directory = Self {
            top,
            is_kept,
            _lock: lock,
        };
        run_directory.clear()?;
        for directory in [
            run_directory.run_dir(),
            run_directory.slow(),
            run_directory.at("crashed"),
        ] {
            fs::create_dir_all(&directory)
                .context(|| format!("failed to create {}", directory.display()))?;
        }
        Ok(run_directory)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.top.join(name)
    }

    /// Where sockets and logs lie.
    pub(super) fn run_dir(&self) -> PathBuf {
        self.at("run")
    }

    /// The data directory that is started on.
    pub(super) fn copy(&self) -> PathBuf {
        self.at("copy")
    }

    /// Where it is shown as if it lay on slow storage.
    pub(super) fn slow(&self) -> PathBuf {
        self.at("slow")
    }

    /// Where the crashed data directory of that name lies.
    pub(super) fn crashed(&self, name: &str) -> PathBuf {
        self.at("crashed").join(name)
    }

    /// Removes the copy of a crashed data directory, and itself unless it must stay.
    pub(super) fn forget(&self, crashed: &Crashed) -> Result<()> {
        remove_any(&self.copy())?;
        match self.is_kept {
            true => Ok(()),
            false => remove_any(crashed.top()),
        }
    }

    /// Fails with `Refused` unless this much space, and room for so many files, is there.
    pub(super) fn refuse_too_small(&self, bytes: u64, files: u64) -> Result<()> {
        let place = self.top.display();
        let room = rustix::fs::statvfs(&self.top)
            .context(|| format!("failed to look at the space of {place}"))?;
        let free = room.f_bavail * room.f_frsize;
        let refuse = |what: String| {
            Err(
                Error::refused(format!("{place} has too little space: {what}"))
                    .hint("name another directory with --work, or ask for fewer --tables"),
            )
        };
        if free < bytes {
            return refuse(format!(
                "{} are needed, {} are free",
                units::bytes(bytes),
                units::bytes(free)
            ));
        }
        // Filesystems that make inodes as they need them say that they have none.
        if room.f_files > 0 && room.f_favail < files {
            return refuse(format!("{files} files, {} are left", room.f_favail));
        }
        Ok(())
    }

    /// Removes all that only one run needs.
    fn clear(&self) -> Result<()> {
        evenkeel_mount::heal(&self.slow())?;
        for directory in [self.copy(), self.run_dir()] {
            remove_any(&directory)?;
        }
        Ok(())
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        // Nothing useful can be done about a failure: the next run tries again.
        if self.clear().is_ok() && fs::remove_dir(self.slow()).is_ok() && !self.is_kept {
            let _ = fs::remove_dir_all(&self.top);
        }
    }
}

fn new_name(parent: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    parent.join(format!("{PREFIX}{}-{number}", std::process::id()))
}

/// Locks a directory of ours; `None` when somebody works in it. `Refused` when it is another user's: anybody
/// can make such a name where temporary files are, and lead what is written and removed elsewhere.
pub(crate) fn lock(top: &Path) -> Result<Option<File>> {
    OwnDirectory::open(top)?;
    let path = top.join("lock");
    let file = File::create(&path).context(|| format!("failed to create {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => {
            Err(error).context(|| format!("failed to lock {}", path.display()))
        }
    }
}

fn remove_leftovers(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let pid = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.split('-').next());
        // One that lives may not have locked its directory yet.
        if pid.is_none_or(|pid| Path::new("/proc").join(pid).exists()) {
            continue;
        }
        let top = entry.path();
        let slow = top.join("slow");
        if let Ok(Some(_lock)) = lock(&top)
            && evenkeel_mount::heal(&slow).is_ok()
            // Still somebody's filesystem: nothing below it is removed.
            && (!slow.exists() || fs::remove_dir(&slow).is_ok())
        {
            let _ = fs::remove_dir_all(&top);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_works_in_is_removed_by_the_next_run() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join(format!("{PREFIX}4194305-0"));
        fs::create_dir_all(left.join("copy/shop")).unwrap();
        let foreign = parent.path().join("evenkeel-other");
        fs::create_dir(&foreign).unwrap();
        let place = WorkLocation::Below(parent.path().to_owned());
        let first = RunDirectory::prepare(&place).unwrap();
        assert!(!left.exists());
        let second = RunDirectory::prepare(&place).unwrap();
        assert!(first.run_dir().exists() && second.run_dir().exists());
        drop((first, second));
        let names: Vec<_> = fs::read_dir(parent.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "{names:?}");
    }

    #[test]
    fn what_others_made_is_left_alone() {
        assert!(
            rustix::process::geteuid().is_root(),
            "only root can give a directory away"
        );
        let parent = tempfile::tempdir().unwrap();
        let theirs = parent.path().join(format!("{PREFIX}4194305-0"));
        fs::create_dir(&theirs).unwrap();
        let precious = parent.path().join("precious");
        fs::write(&precious, "root's").unwrap();
        std::os::unix::fs::symlink(&precious, theirs.join("lock")).unwrap();
        std::os::unix::fs::lchown(&theirs, Some(4242), None).unwrap();
        remove_leftovers(parent.path());
        assert!(theirs.exists());
        assert_eq!(fs::read_to_string(&precious).unwrap(), "root's");
        let error = RunDirectory::prepare(&WorkLocation::Kept(theirs)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
    }

    #[test]
    fn a_kept_directory_stays_and_has_one_user() {
        let top = tempfile::tempdir().unwrap();
        let place = WorkLocation::Kept(top.path().join("work"));
        let run_directory = RunDirectory::prepare(&place).unwrap();
        fs::create_dir(run_directory.crashed("one")).unwrap();
        fs::create_dir(run_directory.copy()).unwrap();
        let busy = RunDirectory::prepare(&place).unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::Busy);
        drop(run_directory);
        let run_directory = RunDirectory::prepare(&place).unwrap();
        assert!(run_directory.crashed("one").exists());
        assert!(!run_directory.copy().exists());
    }

    #[test]
    fn too_little_space_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let run_directory =
            RunDirectory::prepare(&WorkLocation::Below(parent.path().to_owned())).unwrap();
        run_directory.refuse_too_small(1, 1).unwrap();
        let error = run_directory.refuse_too_small(1 << 60, 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("are free"), "{error}");
    }
}
