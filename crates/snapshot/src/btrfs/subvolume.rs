//! The subvolume a directory is in, and what is inside it.

use crate::filesystem::KnownFilesystem;
use crate::holding::SUBVOLUME_ROOT;
use evenkeel_op::{Context, Error, Result};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A btrfs subvolume, by its root directory.
#[derive(Debug)]
pub struct Subvolume {
    root: PathBuf,
    handle: File,
    /// Every subvolume has a device number of its own.
    device: u64,
}

impl Subvolume {
    /// Returns the subvolume that `directory` is in: the nearest directory above it with the inode
    /// number that only subvolume roots have. `Refused` when its root is not within reach.
    pub fn containing(directory: &Path) -> Result<Self> {
        let failed = || format!("failed to examine {}", directory.display());
        let directory = directory.canonicalize().context(failed)?;
        let device = directory.metadata().context(failed)?.dev();
        for root in directory.ancestors() {
            let facts = root.metadata().context(failed)?;
            if facts.dev() != device {
                break;
            }
            if facts.ino() == SUBVOLUME_ROOT && KnownFilesystem::of(root)? == KnownFilesystem::Btrfs
            {
                let handle = File::open(root).context(failed)?;
                return Ok(Self {
                    root: root.to_owned(),
                    handle,
                    device,
                });
            }
        }
        Err(Error::refused(format!(
            "the root of the subvolume that {} is in is not mounted",
            directory.display()
        ))
        .hint("mount the subvolume itself, not a directory of it, or use --snapshot reflink"))
    }

    /// Returns the root directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn handle(&self) -> &File {
        &self.handle
    }

    /// Returns where a file or directory is inside the subvolume; `Refused` when it is elsewhere.
    pub fn relative(&self, path: &Path) -> Result<PathBuf> {
        let failed = || format!("failed to examine {}", path.display());
        let path = path.canonicalize().context(failed)?;
        self.check(&path, &path.metadata().context(failed)?)?;
        self.strip(&path)
    }

    /// Does what `relative` does for a file, with its inode number, remembering what it learnt about
    /// its folder in `folders`.
    pub(super) fn locate(
        &self,
        path: &Path,
        folders: &mut HashMap<PathBuf, PathBuf>,
    ) -> Result<(PathBuf, u64)> {
        let facts = path
            .symlink_metadata()
            .context(|| format!("failed to examine {}", path.display()))?;
        let (Some(folder), Some(leaf), false) =
            (path.parent(), path.file_name(), facts.is_symlink())
        else {
            return Err(Error::failed(format!(
                "{} was replaced by a symbolic link after it was checked",
                path.display()
            ))
            .hint("find out who changes the data directory"));
        };
        self.check(path, &facts)?;
        let folder = match folders.entry(folder.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let inside = self.strip(folder)?;
                new.insert(inside)
            }
        };
        Ok((folder.join(leaf), facts.ino()))
    }

    fn check(&self, path: &Path, facts: &Metadata) -> Result<()> {
        if facts.dev() == self.device {
            return Ok(());
        }
        Err(Error::refused(format!(
            "{} is not in subvolume {}, and a snapshot covers one subvolume only",
            path.display(),
            self.root.display()
        ))
        .hint("keep all of the server's files in one subvolume, or use --snapshot reflink"))
    }

    /// Returns where a path without links is in the subvolume.
    pub(super) fn strip(&self, path: &Path) -> Result<PathBuf> {
        path.strip_prefix(&self.root)
            .map(Path::to_owned)
            .map_err(|_| {
                Error::refused(format!(
                    "{} and {} are on different mounts",
                    path.display(),
                    self.root.display()
                ))
                .hint("use --snapshot reflink")
            })
    }
}
