//! Per-file clones on XFS, btrfs and whatever else can make them.
//!
//! Each page of a clone is point-in-time consistent, because the kernel holds the file's I/O lock and waits for
//! direct I/O in flight; two pages may be of two points in time. What makes the whole recoverable is the
//! caller's matter: a [`crate::pause`] around `take`, or a splice of the redo log's checkpoint.
//!
//! Of a raw volume that somebody writes to, only a copy of all of it from one point in time is recoverable.
//! So a single file is cloned in one call, and compared with the kept clone afterwards.
//!
//! The clones are kept and brought forward by the next run, so what a run costs grows with what
//! changed: see `forward` for one file, `mirror` for what a run that dies leaves.

mod changes;
mod folders;
mod forward;
mod mirror;
mod name;

use crate::failpoints::fail_point;
use crate::filesystem::{self, Identity, KnownFilesystem};
use crate::holding::{Holding, HoldingDirectory, places};
use crate::{Atomicity, Changed, Layout, Provider, Settings, SourceFile};
use evenkeel_op::own_directory::shown;
use evenkeel_op::{Context, Error, Result};
use folders::Folder;
use forward::Pages;
use mirror::Mirror;
use std::collections::{HashMap, HashSet};
use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

const NAME: &str = "reflink";
/// What is written in one piece by a server of which that is not known: InnoDB's largest page.
const LARGEST_PAGE: u64 = 64 << 10;

/// Clones files one by one into a holding directory on the filesystem of each.
pub(crate) struct ReflinkProvider {
    stores: Vec<Store>,
    base_token: Option<String>,
    page_bytes: u64,
    /// Whether each file has to be point-in-time consistent, not only each page of it.
    whole_files: bool,
    /// Which store the clone of each name that was taken is in.
    placed: HashMap<String, usize>,
    /// Which store files of a device go to; grows as directories on new devices are met.
    by_device: HashMap<u64, usize>,
}

/// One filesystem's share of the snapshot.
struct Store {
    filesystem: Identity,
    mirror: Mirror,
    true_extents: bool,
}

impl ReflinkProvider {
    /// Opens the holding directories of `layout`, one per filesystem, and deletes what dead runs
    /// left there. `changed` will compare with the base that was committed under `base_token`.
    /// `Refused` when a filesystem cannot clone files, `Busy` when another run is at it.
    pub(crate) fn open(
        layout: &Layout,
        settings: &Settings,
        base_token: Option<&str>,
    ) -> Result<Self> {
        let mut stores = Vec::new();
        for place in places(layout, settings)? {
            probe(&place)?;
            stores.push(Store {
                filesystem: place.filesystem,
                mirror: Mirror::open(Holding::open(&place.holding, &settings.kept_for)?),
                true_extents: KnownFilesystem::of(&place.holding)?.has_true_extents(),
            });
        }
        Ok(Self {
            stores,
            base_token: base_token.map(str::to_owned),
            page_bytes: match layout.page_bytes {
                0 => LARGEST_PAGE,
                known => known,
            },
            whole_files: !layout.volumes.is_empty(),
            placed: HashMap::new(),
            by_device: HashMap::new(),
        })
    }

    /// Puts files together by the folders they are cloned from and to, as far as they stand beside each
    /// other: what a caller has last is not to be cloned before what covers it.
    fn plan(&mut self, files: &[SourceFile]) -> Result<Vec<Folder>> {
        let mut folders: Vec<Folder> = Vec::new();
        let mut last: Option<(PathBuf, &str)> = None;
        for file in files {
            let (directory, leaf) = split(&file.path)?;
            let (folder, stored) = name::split(&file.name)?;
            if last
                .as_ref()
                .is_none_or(|(at, name)| at != directory || *name != folder)
            {
                let store = self.store_of(directory)?;
                let target = self.stores[store].mirror.files().join(name::folder(folder));
                folders.push(Folder::new(directory, target, store));
                last = Some((directory.to_owned(), folder));
            }
            if let Some(current) = folders.last_mut() {
                current.add(leaf, name::leaf(stored), &file.name);
            }
        }
        Ok(folders)
    }

    /// Returns the store for files in a directory, by the device number of its metadata.
    fn store_of(&mut self, directory: &Path) -> Result<usize> {
        let facts = directory
            .metadata()
            .context(|| format!("failed to examine {}", directory.display()))?;
        if let Some(store) = self.by_device.get(&facts.dev()) {
            return Ok(*store);
        }
        let filesystem = Identity::of(directory)?;
        let store = self
            .stores
            .iter()
            .position(|s| s.filesystem == filesystem)
            .ok_or_else(|| {
                Error::refused(format!(
                    "the filesystem of {} was not examined",
                    directory.display()
                ))
            })?;
        self.by_device.insert(facts.dev(), store);
        Ok(store)
    }

    /// Brings the clones of these files forward.
    fn bring(&mut self, files: &[SourceFile]) -> Result<Vec<(String, usize)>> {
        let folders = self.plan(files)?;
        let how = Pages {
            unit: self.page_bytes,
            whole_files: self.whole_files,
        };
        for store in &mut self.stores {
            store.mirror.begin()?;
        }
        let mut brought = Vec::with_capacity(files.len());
        for folder in folders {
            let index = folder.store();
            let Store {
                mirror,
                true_extents,
                ..
            } = &mut self.stores[index];
            folder.bring(how, *true_extents, |name, changed| {
                mirror.note(name, changed);
                brought.push((name.to_owned(), index));
            })?;
        }
        Ok(brought)
    }

    fn store(&self, file: &SourceFile) -> Option<&Store> {
        self.placed
            .get(&file.name)
            .map(|index| &self.stores[*index])
    }
}

/// Fails with the reason when files cannot be cloned from a place's source to its holding directory:
/// `Refused` when they never can, `Failed` when only space is missing.
pub(crate) fn probe(place: &HoldingDirectory) -> Result<()> {
    filesystem::try_clone(&place.source, &place.parent).map_err(|error| {
        let kind = KnownFilesystem::of(&place.source)
            .map_or_else(|_| "filesystem".to_owned(), KnownFilesystem::name);
        let source = place.source.display();
        let noted = match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EINVAL | libc::ENOSYS) => Error::refused(
                format!("{source} is on {kind}, which cannot clone files here"),
            )
            .hint("files can be cloned on XFS made with reflink=1 and on btrfs")
            .hint("'evenkeel doctor' shows which other snapshot methods work here"),
            Some(libc::EXDEV) => Error::refused(format!(
                "files of {source} cannot be cloned to {}",
                place.parent.display()
            ))
            .hint("name a directory on the same filesystem and mount: --snapshot-dir DIR"),
            // No property of the filesystem: another method would only hide it.
            Some(libc::ENOSPC | libc::EDQUOT) => Error::failed(format!(
                "the filesystem of {source} is full; clones need a little space"
            ))
            .hint("free some space there, or choose another --snapshot"),
            _ => Error::refused(format!(
                "a trial clone from {source} to {} failed",
                place.parent.display()
            ))
            .hint("run as root, or as a user who may write to both directories"),
        };
        noted.because(error)
    })
}

impl Provider for ReflinkProvider {
    fn name(&self) -> &'static str {
        NAME
    }

    fn atomicity(&self) -> Atomicity {
        Atomicity::PerFile
    }

    fn prepare(&mut self, files: &[SourceFile]) {
        fail_point!("snapshot::reflink::preparing");
        // What matters about a failure is reported by `take`.
        let _ = self.bring(files);
    }

    fn take(&mut self, files: &[SourceFile]) -> Result<()> {
        fail_point!("snapshot::reflink::cloning");
        let brought = self.bring(files)?;
        self.placed.extend(brought);
        Ok(())
    }

    fn instant(&mut self) -> Result<()> {
        Ok(())
    }

    fn seal(&mut self) -> Result<()> {
        self.stores
            .iter_mut()
            .try_for_each(|store| store.mirror.settle())
    }

    fn frozen_path(&self, file: &SourceFile) -> PathBuf {
        let store = self.store(file).unwrap_or(&self.stores[0]);
        store.mirror.files().join(name::path(&file.name))
    }

    fn patch(&mut self, file: &SourceFile, offset: u64, bytes: &[u8]) -> Result<()> {
        let path = self.frozen_path(file);
        let failed = || format!("failed to patch the clone {}", shown(&path).display());
        let clone = OpenOptions::new().write(true).open(&path).context(failed)?;
        let former_end = clone.metadata().context(failed)?.len();
        clone.write_all_at(bytes, offset).context(failed)?;
        if let Some(index) = self.placed.get(&file.name) {
            // The file may have become longer.
            let patched = offset.min(former_end)..offset + bytes.len() as u64;
            let patched = Changed::Ranges(vec![patched]);
            self.stores[*index].mirror.note(&file.name, patched);
        }
        Ok(())
    }

    fn nothing_to_compare_with(&self) -> Option<&'static str> {
        let token = self.base_token.as_deref();
        if self.stores.iter().any(|store| !store.true_extents) {
            return Some("this filesystem does not report the extents of files");
        }
        match self.stores.iter().all(|store| store.mirror.is_of(token)) {
            true => None,
            false => Some("no clones of the previous generation are kept"),
        }
    }

    fn changed(&self, file: &SourceFile) -> Result<Changed> {
        match self.store(file) {
            Some(store) if store.true_extents => {
                store.mirror.changed(self.base_token.as_deref(), file)
            }
            _ => Ok(Changed::Unknown),
        }
    }

    fn commit(self: Box<Self>, token: &str) -> Result<()> {
        let Self { stores, placed, .. } = *self;
        for (index, store) in stores.into_iter().enumerate() {
            let kept: HashSet<PathBuf> = placed
                .iter()
                .filter(|(_, placed)| **placed == index)
                .map(|(name, _)| name::path(name))
                .collect();
            store.mirror.commit(token, &kept)?;
            fail_point!("snapshot::reflink::store_committed");
        }
        Ok(())
    }

    fn abandon(self: Box<Self>) -> Result<()> {
        self.stores
            .into_iter()
            .try_for_each(|store| store.mirror.abandon())
    }
}

/// Splits a source path into directory and file name.
fn split(path: &Path) -> Result<(&Path, &std::ffi::OsStr)> {
    match (path.parent(), path.file_name()) {
        (Some(directory), Some(leaf)) if path.is_absolute() => Ok((directory, leaf)),
        _ => Err(Error::failed(format!(
            "{} is not an absolute file path",
            path.display()
        ))),
    }
}
