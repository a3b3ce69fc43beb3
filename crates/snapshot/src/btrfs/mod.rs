//! Read-only snapshots of one btrfs subvolume: one point in time for everything in it.

mod index;
mod plain;
mod subvolume;

pub use plain::{delete_subvolume, is_subvolume, snapshot_subvolume};
pub use subvolume::Subvolume;

use crate::extents;
use crate::failpoints::fail_point;
use crate::filesystem::{Identity, KnownFilesystem};
use crate::holding::{Holding, HoldingDirectory, Run, SNAPSHOT, places};
use crate::ioctl;
use crate::{Atomicity, Changed, Layout, Provider, Settings, SourceFile};
use evenkeel_op::{Context, Error, Result};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const NAME: &str = "btrfs";

/// Snapshots the subvolume that the data directory is in.
pub(crate) struct BtrfsProvider {
    subvolume: Subvolume,
    run: Run,
    base: Option<Base>,
    taken: HashMap<String, Taken>,
    snapped: bool,
}

/// The kept snapshot to compare with.
struct Base {
    snapshot: PathBuf,
    /// Path inside the snapshot, by generation name.
    paths: HashMap<String, PathBuf>,
}

/// A file that belongs to the snapshot.
struct Taken {
    /// Relative to the subvolume.
    path: PathBuf,
    inode: u64,
}

impl BtrfsProvider {
    /// Opens the holding directory of `layout` and deletes what dead runs left there. `changed` will
    /// compare with the base that was committed under `base_token`. `Refused` when not all of the
    /// server's directories are in one subvolume, `Busy` when another run is at it.
    pub(crate) fn open(
        layout: &Layout,
        settings: &Settings,
        base_token: Option<&str>,
    ) -> Result<Self> {
        let (subvolume, place) = examine(layout, settings)?;
        let holding = Holding::open(&place.holding, &settings.kept_for)?;
        let base = match base_token.and_then(|token| holding.base(NAME, token)) {
            Some(base) => index::read(&base)?.map(|paths| Base {
                snapshot: base.join(SNAPSHOT),
                paths,
            }),
            None => None,
        };
        let run = holding.start()?;
        Ok(Self {
            subvolume,
            run,
            base,
            taken: HashMap::new(),
            snapped: false,
        })
    }

    fn snapshot(&self) -> PathBuf {
        self.run.path().join(SNAPSHOT)
    }

    /// Returns where a file is inside the snapshot, and its inode there: it may be gone outside.
    fn locate_frozen(&self, live: &Path) -> Result<(PathBuf, u64)> {
        let failed = || format!("failed to find {} in the snapshot", live.display());
        let folder = self.subvolume.strip(live.parent().unwrap_or(live))?;
        let path = folder.join(live.file_name().unwrap_or_default());
        let facts = self.snapshot().join(&path).symlink_metadata();
        Ok((path, facts.context(failed)?.ino()))
    }

    /// Fails if a file of the snapshot is not the file that was taken: something was mounted over
    /// part of the subvolume, and the snapshot has what lies beneath.
    fn verify(&self, file: &Taken) -> Result<()> {
        let live = self.subvolume.root().join(&file.path);
        let failed = || format!("failed to find {} in the snapshot", live.display());
        let frozen = self
            .snapshot()
            .join(&file.path)
            .symlink_metadata()
            .context(failed)?;
        if frozen.ino() == file.inode {
            return Ok(());
        }
        // A file that was replaced between `take` and `instant` is a different one by right.
        match live.symlink_metadata() {
            Ok(now) if now.ino() == file.inode => Err(Error::refused(format!(
                "the snapshot does not hold {}: another directory is mounted over it",
                live.display()
            ))
            .hint("clone it file by file instead: --snapshot reflink")),
            _ => Ok(()),
        }
    }
}

/// Returns the subvolume that holds all of a layout, and where its snapshots go.
pub(crate) fn examine(
    layout: &Layout,
    settings: &Settings,
) -> Result<(Subvolume, HoldingDirectory)> {
    let kind = KnownFilesystem::of(&layout.datadir)?;
    if kind != KnownFilesystem::Btrfs {
        let datadir = layout.datadir.display();
        return Err(Error::refused(format!(
            "{datadir} is on {}, not on btrfs",
            kind.name()
        )));
    }
    let subvolume = Subvolume::containing(&layout.datadir)?;
    for directory in &layout.dirs {
        subvolume.relative(directory)?;
    }
    let filesystem = Identity::of(&layout.datadir)?;
    let place = places(layout, settings)?
        .into_iter()
        .find(|place| place.filesystem == filesystem)
        .ok_or_else(|| Error::failed("the data directory has no place for snapshots"))?;
    if place.inside {
        return Err(Error::refused(format!(
            "{} is inside the data directory: the server would see its files twice",
            place.parent.display()
        ))
        .hint("name a directory outside of it with --snapshot-dir"));
    }
    Ok((subvolume, place))
}

impl Provider for BtrfsProvider {
    fn name(&self) -> &'static str {
        NAME
    }

    fn atomicity(&self) -> Atomicity {
        // It flushes file after file while others are written, and then is one transaction.
        Atomicity::Synced
    }

    fn prepare(&mut self, _: &[SourceFile]) {
        // Less is left for the snapshot to flush; it flushes the rest, and finds the errors.
        let _ = rustix::fs::syncfs(self.subvolume.handle());
    }

    fn take(&mut self, files: &[SourceFile]) -> Result<()> {
        let mut folders: HashMap<PathBuf, PathBuf> = HashMap::new();
        for file in files {
            let (path, inode) = match self.snapped {
                true => self.locate_frozen(&file.path)?,
                false => self.subvolume.locate(&file.path, &mut folders)?,
            };
            self.taken.insert(file.name.clone(), Taken { path, inode });
        }
        Ok(())
    }

    fn instant(&mut self) -> Result<()> {
        let failed = || {
            format!(
                "failed to create a snapshot of subvolume {}",
                self.subvolume.root().display()
            )
        };
        let into = File::open(self.run.path()).context(failed)?;
        ioctl::btrfs_snapshot(self.subvolume.handle(), &into, SNAPSHOT.as_ref(), true)
            .context(failed)?;
        self.snapped = true;
        fail_point!("snapshot::btrfs::snapped");
        Ok(())
    }

    fn seal(&mut self) -> Result<()> {
        // The snapshot itself was a transaction commit, so it is on disk already.
        self.taken.values().try_for_each(|file| self.verify(file))
    }

    fn frozen_dir(&self, live: &Path) -> Result<PathBuf> {
        Ok(self.snapshot().join(self.subvolume.relative(live)?))
    }

    fn frozen_path(&self, file: &SourceFile) -> PathBuf {
        let inside = self
            .taken
            .get(&file.name)
            .map_or(Path::new(&file.name), |file| &file.path);
        self.snapshot().join(inside)
    }

    fn patch(&mut self, _: &SourceFile, _: u64, _: &[u8]) -> Result<()> {
        Err(Error::failed(
            "a btrfs snapshot is read-only: nothing in it can be patched",
        ))
    }

    fn nothing_to_compare_with(&self) -> Option<&'static str> {
        match self.base {
            Some(_) => None,
            None => Some("no snapshot of the previous generation is kept"),
        }
    }

    fn changed(&self, file: &SourceFile) -> Result<Changed> {
        let Some(base) = &self.base else {
            return Ok(Changed::Unknown);
        };
        let Some(path) = base.paths.get(&file.name) else {
            return Ok(Changed::Unknown);
        };
        let failed = || format!("failed to find what changed in {}", file.name);
        let old = match File::open(base.snapshot.join(path)) {
            Ok(old) => old,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Changed::Unknown),
            Err(error) => return Err(error).context(failed),
        };
        let now = File::open(self.frozen_path(file)).context(failed)?;
        extents::changed(&old, &now)
            .map(Changed::Ranges)
            .context(failed)
    }

    fn commit(self: Box<Self>, token: &str) -> Result<()> {
        if !self.snapped {
            return Err(Error::failed("there is no snapshot to keep"));
        }
        let paths = self
            .taken
            .iter()
            .map(|(name, file)| (name.as_str(), file.path.as_path()));
        index::write(self.run.path(), paths)?;
        self.run.commit(NAME, token)
    }

    fn abandon(self: Box<Self>) -> Result<()> {
        self.run.abandon()
    }
}
