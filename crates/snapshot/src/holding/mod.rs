//! A holding directory: where a run's snapshot lives while it is read, and the kept base.
//!
//! ```text
//! .evenkeel-0123456789abcdef/     one per data directory and filesystem
//!     EVENKEEL-HOLDING            says whose it is; nothing is touched in a directory without it
//!     lock                        held (flock) by the one run there may be
//!     base-89abcdef01234567/      what a repository's next run compares with: one or none for each
//!         base.json               token, provider, when
//!         files/ | snapshot/      what the provider keeps
//!         changes                 see [`crate::reflink`]
//!     run-<pid>-<random>/         the snapshot of the run that holds the lock
//!     old-<pid>-<random>/         a former base on its way out
//! ```
//!
//! A new snapshot is complete and on disk before it gets the base's name, and takes its
//! predecessor's place in one rename (`RENAME_EXCHANGE`). One that is changed in place has no token
//! meanwhile. So at any moment a base is one whole snapshot, or has no token, or is not there.
//! Whatever else is found by whoever gets the lock belonged to a run that died: it is deleted. The
//! worst that a crash can cost is a full scan by the next run.

mod bases;
mod door;
mod facts;
mod layout;
mod remove;

pub use door::is_ours;
pub use facts::BaseFacts;
pub use layout::{HoldingDirectory, places};
pub(crate) use remove::{SNAPSHOT, SUBVOLUME_ROOT};

use crate::failpoints::fail_point;
use door::{Lock, lock, make};
use evenkeel_op::disk::sync_directory;
use evenkeel_op::own_directory::{OwnDirectory, shown};
use evenkeel_op::{Context, Error, ErrorKind, Result};
use rustix::fs::{CWD, RenameFlags};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A holding directory that this process has locked.
#[derive(Debug)]
pub struct Holding {
    /// A path that leads through `door`, whatever is at the directory's own path by now.
    directory: PathBuf,
    door: OwnDirectory,
    /// What the base of this run's repository is called.
    base: String,
    _lock: Lock,
}

impl Holding {
    /// Makes the directory if needed, locks it, and deletes what dead runs left in it, and bases that nobody
    /// used for long. `kept_for` says whose base this run uses. `Busy` when another run has it; `Refused`
    /// when it exists and is not evenkeel's, or another user's.
    pub fn open(directory: &Path, kept_for: &str) -> Result<Self> {
        let door = make(directory)?;
        let lock = lock(&door)?.ok_or_else(|| {
            Error::new(
                ErrorKind::Busy,
                format!("another run is using {}", shown(directory).display()),
            )
            .hint("wait until the other backup of this server is done")
        })?;
        let holding = Self {
            directory: door.anchor(),
            door,
            base: bases::name(kept_for),
            _lock: lock,
        };
        holding.set_lost_bases_aside()?;
        holding.clean()?;
        Ok(holding)
    }

    /// Returns the directory of the base if there is one, `provider` made it and its token is `token`.
    #[must_use]
    pub fn base(&self, provider: &str, token: &str) -> Option<PathBuf> {
        let facts = self.facts()?;
        (facts.provider == provider && facts.token.as_deref() == Some(token))
            .then(|| self.base_path())
    }

    /// Returns where the base is, if there is one.
    #[must_use]
    pub fn base_path(&self) -> PathBuf {
        self.directory.join(&self.base)
    }

    /// Replaces what is known of the base in one step, on disk when it returns.
    pub(crate) fn write_facts(&self, facts: &BaseFacts) -> Result<()> {
        facts::write(&self.base_path(), facts)
    }

    /// Makes a new base of these empty directories, in place of the one there may be.
    pub(crate) fn make_base(&self, facts: &BaseFacts, directories: &[&str]) -> Result<()> {
        let path = self.directory.join(unique("run"));
        let failed = || format!("failed to create {}", shown(&path).display());
        let make = |path: &Path| DirBuilder::new().mode(0o700).create(path).context(failed);
        make(&path)?;
        fail_point!("snapshot::holding::run_made");
        directories
            .iter()
            .try_for_each(|name| make(&path.join(name)))?;
        facts::write(&path, facts)?;
        self.set_aside(&self.base)?;
        fs::rename(&path, self.base_path())
            .and_then(|()| sync_directory(&self.directory))
            .context(failed)?;
        self.clean()
    }

    /// Returns what is known of the base, if there is one.
    #[must_use]
    pub fn facts(&self) -> Option<BaseFacts> {
        facts::read(&self.base_path())
    }

    /// Deletes the base.
    pub fn drop_base(&self) -> Result<()> {
        self.set_aside(&self.base)?;
        self.clean()
    }

    /// Deletes the bases of all repositories.
    pub fn drop_bases(&self) -> Result<()> {
        for base in bases::all(&self.directory)? {
            self.set_aside(&base)?;
        }
        self.clean()
    }

    /// Makes the directory of a new run.
    pub fn start(self) -> Result<Run> {
        let path = self.directory.join(unique("run"));
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .context(|| format!("failed to create {}", shown(&path).display()))?;
        fail_point!("snapshot::holding::run_made");
        Ok(Run {
            holding: self,
            path,
            ended: false,
        })
    }

    /// Deletes everything of ours that is neither marker, lock nor a base that may be of use.
    fn clean(&self) -> Result<()> {
        for base in bases::useless(&self.directory, &self.base)? {
            self.set_aside(&base)?;
        }
        for name in leftovers(&self.directory)? {
            remove::tree(&self.directory.join(name))?;
        }
        Ok(())
    }

    /// Has `clean` delete bases that were being changed when their runs died.
    fn set_lost_bases_aside(&self) -> Result<()> {
        for base in bases::all(&self.directory)? {
            let facts = facts::read(&self.directory.join(&base));
            if facts.is_some_and(|facts| facts.token.is_none()) {
                self.set_aside(&base)?;
            }
        }
        Ok(())
    }

    /// Renames a base, if it is there, to a name that `clean` deletes.
    fn set_aside(&self, base: &str) -> Result<()> {
        match fs::rename(
            self.directory.join(base),
            self.directory.join(unique("old")),
        ) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).context(|| format!("failed to move a base of {}", self.shown()))
            }
            _ => Ok(()),
        }
    }

    fn shown(&self) -> String {
        self.door.path().display().to_string()
    }
}

/// The directory of the run that holds the lock. Deleted on drop unless committed.
#[derive(Debug)]
pub struct Run {
    holding: Holding,
    path: PathBuf,
    ended: bool,
}

impl Run {
    /// Returns the run's directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the holding directory that the run is in.
    #[must_use]
    pub fn holding(&self) -> &Holding {
        &self.holding
    }

    /// Makes this run's directory the base under `token`, and deletes the former base. Everything
    /// in it must be on disk already.
    pub fn commit(mut self, provider: &str, token: &str) -> Result<()> {
        let facts = BaseFacts::now(provider, Some(token.to_owned()), false);
        facts::write(&self.path, &facts)?;
        fail_point!("snapshot::holding::facts_written");
        self.replace_base()
            .context(|| format!("failed to replace the base of {}", self.holding.shown()))?;
        // From here on this run's directory is the base, and its old name is the former base.
        self.ended = true;
        fail_point!("snapshot::holding::base_replaced");
        self.holding.clean()
    }

    /// Deletes this run's directory; the base stays what it was.
    pub fn abandon(mut self) -> Result<()> {
        self.ended = true;
        remove::tree(&self.path)
    }

    /// Puts this run's directory in the base's place in one step.
    fn replace_base(&self) -> io::Result<()> {
        let base = self.holding.base_path();
        let swap = |flags| rustix::fs::renameat_with(CWD, &self.path, CWD, &base, flags);
        match swap(RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(rustix::io::Errno::NOENT) => fs::rename(&self.path, &base)?,
            Err(other) => return Err(other.into()),
        }
        sync_directory(&self.holding.directory)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.ended {
            // Nobody is left to tell of a failure here, and the next run deletes it anyway.
            let _ = remove::tree(&self.path);
        }
    }
}

/// Deletes what dead runs left in a holding directory and returns whether there was anything.
/// Does nothing when the directory is not evenkeel's, is not there, or a run is using it.
pub fn heal(directory: &Path) -> Result<bool> {
    let Some(door) = door::open(directory) else {
        return Ok(false);
    };
    let Some(lock) = lock(&door)? else {
        return Ok(false);
    };
    let holding = Holding {
        directory: door.anchor(),
        door,
        base: bases::name(""),
        _lock: lock,
    };
    holding.set_lost_bases_aside()?;
    let found = !leftovers(&holding.directory)?.is_empty();
    holding.clean()?;
    Ok(found)
}

/// Returns the names in a holding directory that only a dead run can have left. The caller has the
/// lock.
fn leftovers(directory: &Path) -> Result<Vec<String>> {
    let failed = || format!("failed to list {}", shown(directory).display());
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).context(failed)? {
        if let Ok(name) = entry.context(failed)?.file_name().into_string()
            && (name.starts_with("run-") || name.starts_with("old-"))
        {
            names.push(name);
        }
    }
    Ok(names)
}

/// Returns a name that no other run has used: `kind-<pid>-<random>`.
fn unique(kind: &str) -> String {
    use std::hash::{BuildHasher, RandomState};
    // A fresh `RandomState` is seeded by the system: random enough to tell directories apart.
    let random = RandomState::new().hash_one(SystemTime::now());
    format!("{kind}-{}-{random:016x}", std::process::id())
}

#[cfg(test)]
mod tests;
