//! Per-file clones (`FICLONE`) on XFS, btrfs and whatever else can do them.
//!
//! Each clone is of one instant, because the kernel holds the file's I/O lock and waits for direct
//! I/O in flight; two clones are of two instants. What makes the whole recoverable is the caller's
//! matter: a [`crate::pause`] around `take`, or a splice of the redo log's checkpoint.

mod clone;
mod name;

use crate::extents;
use crate::failpoints::fail_point;
use crate::filesystem::{self, Identity, Kind};
use crate::holding::{Holding, Place, Run, places};
use crate::{Atomicity, Changed, Layout, Provider, Settings, SourceFile};
use evenkeel_op::{Context, Error, Result};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

const NAME: &str = "reflink";

/// The subdirectory of a run or base that the clones are in.
const FILES: &str = "files";

/// Clones files one by one into a holding directory on the filesystem of each.
pub struct ReflinkProvider {
    stores: Vec<Store>,
    /// Which store the clone of each name is in.
    placed: HashMap<String, usize>,
    /// Which store files of a device go to; grows as directories on new devices are met.
    by_device: HashMap<u64, usize>,
}

/// One filesystem's share of the snapshot.
struct Store {
    filesystem: Identity,
    run: Run,
    files: PathBuf,
    base_files: Option<PathBuf>,
    true_extents: bool,
}

impl ReflinkProvider {
    /// Opens the holding directories of `layout`, one per filesystem, and deletes what dead runs
    /// left there. `changed` will compare with the base that was committed under `base_token`.
    /// `Refused` when a filesystem cannot clone files, `Busy` when another run is at it.
    pub fn open(layout: &Layout, settings: &Settings, base_token: Option<&str>) -> Result<Self> {
        let mut stores = Vec::new();
        for place in places(layout, settings)? {
            probe(&place)?;
            stores.push(Store::open(&place, base_token)?);
        }
        Ok(Self {
            stores,
            placed: HashMap::new(),
            by_device: HashMap::new(),
        })
    }

    /// Sorts files by the directories they are cloned from and to.
    fn plan(&mut self, files: &[SourceFile]) -> Result<Vec<clone::Group>> {
        let mut groups: HashMap<(PathBuf, &str), clone::Group> = HashMap::new();
        for file in files {
            // A table's file may be a symbolic link to another filesystem's store.
            let path = match file.path.symlink_metadata() {
                Ok(facts) if facts.is_symlink() => file.path.canonicalize().ok(),
                _ => None,
            };
            let (directory, leaf) = split(path.as_deref().unwrap_or(&file.path))?;
            let (folder, stored) = name::split(&file.name)?;
            let group = match groups.entry((directory.to_owned(), folder)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let store = self.store_of(directory)?;
                    let target = self.stores[store].files.join(name::folder(folder));
                    new.insert(clone::Group::new(directory, target, store))
                }
            };
            group.add(leaf, name::leaf(stored));
            self.placed.insert(file.name.clone(), group.store());
        }
        Ok(groups.into_values().collect())
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
                    "{} is on a filesystem that was not examined",
                    directory.display()
                ))
            })?;
        self.by_device.insert(facts.dev(), store);
        Ok(store)
    }

    fn open_frozen(&self, file: &SourceFile, options: &OpenOptions) -> Result<File> {
        let path = self.frozen_path(file);
        options
            .open(&path)
            .context(|| format!("failed to open the clone {}", path.display()))
    }
}

impl Store {
    fn open(place: &Place, base_token: Option<&str>) -> Result<Self> {
        let holding = Holding::open(&place.holding)?;
        let base = base_token.and_then(|token| holding.base(NAME, token));
        let run = holding.start()?;
        let files = run.path().join(FILES);
        std::fs::create_dir(&files).context(|| format!("failed to make {}", files.display()))?;
        Ok(Self {
            filesystem: place.filesystem,
            files,
            base_files: base.map(|base| base.join(FILES)),
            true_extents: Kind::of(&place.holding)?.has_true_extents(),
            run,
        })
    }
}

/// Fails with the reason when files cannot be cloned from a place's source to its holding directory.
pub(crate) fn probe(place: &Place) -> Result<()> {
    filesystem::try_clone(&place.source, &place.parent).map_err(|error| {
        let kind = Kind::of(&place.source).map_or_else(|_| "filesystem".to_owned(), Kind::name);
        let source = place.source.display();
        let (message, hint) = match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EINVAL | libc::ENOSYS) => (
                format!("{source} is on {kind}, which cannot clone files here"),
                "files can be cloned on XFS made with reflink=1 and on btrfs",
            ),
            Some(libc::EXDEV) => (
                format!(
                    "files of {source} cannot be cloned to {}",
                    place.parent.display()
                ),
                "name a directory on the same filesystem and mount: --snapshot-dir DIR",
            ),
            _ => (
                format!(
                    "a trial clone from {source} to {} failed",
                    place.parent.display()
                ),
                "run as root, or as a user who may write to both directories",
            ),
        };
        Error::refused(message).hint(hint).because(error)
    })
}

impl Provider for ReflinkProvider {
    fn name(&self) -> &'static str {
        NAME
    }

    fn atomicity(&self) -> Atomicity {
        Atomicity::PerFile
    }

    fn prepare(&mut self, files: &[SourceFile]) -> Result<()> {
        clone::make_targets(&self.plan(files)?)
    }

    fn take(&mut self, files: &[SourceFile]) -> Result<()> {
        let groups = self.plan(files)?;
        fail_point!("snapshot::reflink::cloning");
        clone::all(&groups)
    }

    fn instant(&mut self) -> Result<()> {
        Ok(())
    }

    fn seal(&mut self) -> Result<()> {
        for store in &self.stores {
            File::open(&store.files)
                .and_then(|directory| Ok(rustix::fs::syncfs(directory)?))
                .context(|| format!("failed to bring {} to disk", store.files.display()))?;
        }
        Ok(())
    }

    fn frozen_path(&self, file: &SourceFile) -> PathBuf {
        let store = self.placed.get(&file.name).copied().unwrap_or(0);
        self.stores[store].files.join(name::path(&file.name))
    }

    fn patch(&mut self, file: &SourceFile, offset: u64, bytes: &[u8]) -> Result<()> {
        self.open_frozen(file, OpenOptions::new().write(true))?
            .write_all_at(bytes, offset)
            .context(|| format!("failed to patch the clone of {}", file.name))
    }

    fn changed(&self, file: &SourceFile) -> Result<Changed> {
        let Some(store) = self
            .placed
            .get(&file.name)
            .map(|index| &self.stores[*index])
        else {
            return Ok(Changed::Unknown);
        };
        let Some(base_files) = store.base_files.as_ref().filter(|_| store.true_extents) else {
            return Ok(Changed::Unknown);
        };
        let base = match File::open(base_files.join(name::path(&file.name))) {
            Ok(base) => base,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Changed::Unknown),
            Err(error) => {
                return Err(error).context(|| format!("failed to open the base of {}", file.name));
            }
        };
        let now = self.open_frozen(file, OpenOptions::new().read(true))?;
        extents::changed(&base, &now)
            .map(Changed::Ranges)
            .context(|| format!("failed to find what changed in {}", file.name))
    }

    fn commit(self: Box<Self>, token: &str) -> Result<()> {
        for store in self.stores {
            store.run.commit(NAME, token)?;
            fail_point!("snapshot::reflink::store_committed");
        }
        Ok(())
    }

    fn abandon(self: Box<Self>) -> Result<()> {
        self.stores
            .into_iter()
            .try_for_each(|store| store.run.abandon())
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
