//! The scratch directory of a proof: it goes with everything in it, and what a killed proof left goes with
//! the next one.

use evenkeel_op::living::{Living, sweep};
use evenkeel_op::own_directory::OwnDirectory;
use evenkeel_op::paths::absolute;
use evenkeel_op::{Context, Error, ErrorKind, Result};
use std::ffi::OsStr;
use std::path::Path;

/// Says that a scratch directory is ours, so that one left by a killed run can be removed.
const MARKER: &str = ".evenkeel-scratch";
/// Where a mount is, in the scratch directory.
pub(super) const MOUNTPOINT: &str = "mnt";
/// Ends the name of one that nobody chose, before the number of the process that made it.
const CHOSEN_BY_US: &str = ".boot-";
/// Others pass through, to what is theirs in it.
const PASSABLE: u32 = 0o711;
const CLOSED: u32 = 0o700;

/// A scratch directory that is held.
#[derive(Debug)]
pub(super) struct Scratch(Living);

impl Scratch {
    pub(super) fn claim(path: &Path) -> Result<Self> {
        let path = &absolute(path);
        sweep_beside(path);
        evenkeel_mount::heal(&path.join(MOUNTPOINT))?;
        // An empty one of another user's could be filled, or swapped, while a server is started in it.
        let directory = OwnDirectory::make(path, CLOSED)?;
        let anchor = directory.anchor();
        let is_left = anchor.join(MARKER).exists();
        let failed = || format!("failed to read {}", path.display());
        let used = std::fs::read_dir(&anchor).context(failed)?.next().is_some();
        if used && !is_left {
            return Err(Error::usage(format!("{} is not empty", path.display()))
                .hint("give an empty or new directory with --scratch"));
        }
        let Some(living) = Living::hold(directory) else {
            let busy = format!("another verify --boot is running in {}", path.display());
            return Err(Error::new(ErrorKind::Busy, busy).hint("name another directory: --scratch"));
        };
        living.set_mode(CLOSED)?;
        living
            .clear()
            .context(|| format!("failed to empty {}", path.display()))?;
        std::fs::File::create_new(living.anchor().join(MARKER))
            .context(|| format!("failed to write in {}", path.display()))?;
        Ok(Self(living))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Lets others pass through, to what is theirs in it.
    pub(super) fn open_up(&self) -> Result<()> {
        self.0.set_mode(PASSABLE)
    }
}

/// Removes what proofs left that were killed in directories of the same name but for their number.
fn sweep_beside(path: &Path) {
    let (Some(parent), Some((stem, _))) = (path.parent(), path.file_name().and_then(numbered))
    else {
        return;
    };
    let is_named = |name: &OsStr| numbered(name).is_some_and(|(other, _)| other == stem);
    sweep(parent, is_named, |name, anchor| {
        // What is still mounted could not be removed.
        anchor.join(MARKER).is_file()
            && evenkeel_mount::heal(&parent.join(name).join(MOUNTPOINT)).is_ok()
    });
}

/// Splits a name that we chose.
fn numbered(name: &OsStr) -> Option<(&str, u32)> {
    let (stem, number) = name.to_str()?.rsplit_once(CHOSEN_BY_US)?;
    Some((stem, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn one_in_use_is_left_alone_and_a_dead_one_is_not() {
        let room = tempfile::tempdir().unwrap();
        let at = |name: &str| room.path().join(name);
        let first = Scratch::claim(&at("r.boot-1")).unwrap();
        fs::create_dir(first.path().join("data")).unwrap();
        for (name, marked) in [("r.boot-2", true), ("q.boot-3", true), ("r.boot-4", false)] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("x"), "").unwrap();
            if marked {
                fs::write(at(name).join(MARKER), "").unwrap();
            }
        }
        let second = Scratch::claim(&at("r.boot-5")).unwrap();
        assert!(first.path().join("data").exists());
        assert!(!at("r.boot-2").exists());
        assert!(at("q.boot-3").exists(), "it is of another repository");
        assert!(at("r.boot-4").exists(), "it has no marker");
        let error = Scratch::claim(&at("r.boot-1")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert!(first.path().join("data").exists());
        drop((first, second));
        assert!(!at("r.boot-1").exists() && !at("r.boot-5").exists());
        let error = Scratch::claim(&at("r.boot-4")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        Scratch::claim(&at("q.boot-3")).unwrap();
    }

    #[test]
    fn an_empty_one_of_another_user_is_refused() {
        let room = tempfile::tempdir().unwrap();
        let theirs = room.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        std::os::unix::fs::chown(&theirs, Some(4242), Some(4242)).expect("only root can");
        let error = Scratch::claim(&theirs).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(fs::read_dir(&theirs).unwrap().next().is_none());
    }
}
