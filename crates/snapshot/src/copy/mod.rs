//! A data directory that no server is running on: its files are read in place.

mod in_use;
pub(crate) mod volumes;

pub(crate) use in_use::user_where;
pub use in_use::{User, user_of};
pub use volumes::VolumesInPlace;

use crate::{Atomicity, Changed, Layout, Provider, SourceFile};
use evenkeel_op::{Context, Error, Result};
use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Reads the files of a stopped server where they are.
pub(crate) struct CopyProvider {
    layout: Layout,
    taken: HashMap<PathBuf, Stamp>,
}

/// What changes when a file is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(facts: &Metadata) -> Self {
        Self {
            device: facts.dev(),
            inode: facts.ino(),
            size: facts.size(),
            modified: (facts.mtime(), facts.mtime_nsec()),
            changed: (facts.ctime(), facts.ctime_nsec()),
        }
    }
}

impl CopyProvider {
    /// Opens the data directory; `Refused` when a server is running on it.
    pub(crate) fn open(layout: &Layout) -> Result<Self> {
        refuse_if_used(layout)?;
        Ok(Self {
            layout: layout.clone(),
            taken: HashMap::new(),
        })
    }
}

/// Fails with the reason when a server is running on a layout.
pub(crate) fn refuse_if_used(layout: &Layout) -> Result<()> {
    let datadir = layout.datadir.display();
    let hint = "stop the server, or use a snapshot: --snapshot auto";
    if let Some(user) = user_of(layout)? {
        return Err(Error::refused(format!("{user} is using {datadir}")).hint(hint));
    }
    if layout.server_running {
        return Err(Error::refused(format!("a server is running on {datadir}")).hint(hint));
    }
    Ok(())
}

fn stamp(path: &Path) -> Result<Stamp> {
    let facts = path
        .metadata()
        .context(|| format!("failed to examine {}", path.display()))?;
    Ok(Stamp::of(&facts))
}

impl Provider for CopyProvider {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn atomicity(&self) -> Atomicity {
        Atomicity::Stopped
    }

    fn take(&mut self, files: &[SourceFile]) -> Result<()> {
        for file in files {
            self.taken.insert(file.path.clone(), stamp(&file.path)?);
        }
        Ok(())
    }

    fn instant(&mut self) -> Result<()> {
        Ok(())
    }

    fn seal(&mut self) -> Result<()> {
        Ok(())
    }

    fn frozen_path(&self, file: &SourceFile) -> PathBuf {
        file.path.clone()
    }

    fn patch(&mut self, _: &SourceFile, _: u64, _: &[u8]) -> Result<()> {
        Err(Error::failed("the server's own files cannot be patched"))
    }

    fn changed(&self, _: &SourceFile) -> Result<Changed> {
        Ok(Changed::Unknown)
    }

    fn check(&self) -> Result<()> {
        refuse_if_used(&self.layout).context(|| "a server was started during the copy")?;
        for (path, before) in &self.taken {
            if stamp(path)? != *before {
                return Err(
                    Error::failed(format!("{} changed during the copy", path.display())).hint(
                        "do not use the data directory until the copy is done, and run again",
                    ),
                );
            }
        }
        Ok(())
    }

    fn commit(self: Box<Self>, _: &str) -> Result<()> {
        self.check()
    }

    fn abandon(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
