//! Volumes that nobody writes to: read in place.

use crate::volume::{self, Users, VolumeKind};
use crate::{Atomicity, Changed, Layout, Provider, SourceFile};
use evenkeel_op::{Context, Error, Result};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Reads volumes where they are. Block devices are claimed meanwhile, so that nobody can mount them.
pub struct VolumesInPlace {
    volumes: Vec<InPlace>,
}

struct InPlace {
    path: PathBuf,
    file: File,
    stamp: Stamp,
}

/// What changes when a volume is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stamp {
    File(super::Stamp),
    Device { size: u64, writes: [u64; 4] },
}

impl InPlace {
    fn open(path: &Path) -> Result<Self> {
        refuse_if_used(path)?;
        let failed = || format!("failed to open {}", path.display());
        let file = match volume::kind(path)? {
            VolumeKind::File => File::open(path).context(failed)?,
            VolumeKind::Device => {
                let file = volume::claim(path, false).map_err(|error| error.hint(HINT))?;
                // What somebody wrote before and the kernel still holds back is no write of later.
                file.sync_all().context(failed)?;
                file
            }
        };
        let stamp = Stamp::of(&file)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            stamp,
        })
    }

    fn check(&self) -> Result<()> {
        refuse_if_used(&self.path)?;
        // By its path again: another file may have been put in its place.
        let now = match self.stamp {
            Stamp::File(_) => Stamp::File(super::stamp(&self.path)?),
            Stamp::Device { .. } => Stamp::of(&self.file)?,
        };
        if now == self.stamp {
            return Ok(());
        }
        Err(
            Error::failed(format!("{} changed during the copy", self.path.display()))
                .hint("do not use it until the copy is done, and run again"),
        )
    }
}

impl Stamp {
    fn of(file: &File) -> Result<Self> {
        let failed = || "failed to examine a volume";
        let facts = file.metadata().context(failed)?;
        if facts.is_file() {
            return Ok(Self::File(super::Stamp::of(&facts)));
        }
        Ok(Self::Device {
            size: volume::size(file).context(failed)?,
            writes: volume::writes(file)?,
        })
    }
}

const HINT: &str = "stop the program that uses it; or move it to LVM, XFS or btrfs, where it can \
     be frozen; or use your own snapshot command: --snapshot hook --hook COMMAND";

/// Fails with the reason when somebody may write to a volume.
pub(crate) fn refuse_if_used(path: &Path) -> Result<()> {
    match volume::user_of(path, Users::Writers)? {
        Some(user) => Err(Error::refused(format!(
            "{user} has {} open for writing",
            path.display()
        ))
        .hint(HINT)),
        None => Ok(()),
    }
}

/// Fails with the reason when the volumes of a layout cannot be read in place.
pub(crate) fn examine(layout: &Layout) -> Result<()> {
    layout
        .volumes
        .iter()
        .try_for_each(|path| InPlace::open(path).map(drop))
}

impl VolumesInPlace {
    /// Opens the volumes of a layout; `Refused` when one is in use.
    pub fn open(layout: &Layout) -> Result<Self> {
        let volumes: Result<_> = layout
            .volumes
            .iter()
            .map(|path| InPlace::open(path))
            .collect();
        Ok(Self { volumes: volumes? })
    }
}

impl Provider for VolumesInPlace {
    fn name(&self) -> &'static str {
        "copy"
    }

    fn atomicity(&self) -> Atomicity {
        Atomicity::Stopped
    }

    fn take(&mut self, _: &[SourceFile]) -> Result<()> {
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
        Err(Error::failed("a volume itself cannot be patched"))
    }

    fn changed(&self, _: &SourceFile) -> Result<Changed> {
        Ok(Changed::Unknown)
    }

    fn check(&self) -> Result<()> {
        self.volumes.iter().try_for_each(InPlace::check)
    }

    fn commit(self: Box<Self>, _: &str) -> Result<()> {
        Ok(())
    }

    fn abandon(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
