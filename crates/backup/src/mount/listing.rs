//! The names of one generation, as directories.

use crate::restore::{dress, names};
use evenkeel_mount::{Attributes, NodeKind};
use evenkeel_op::{Error, Result};
use evenkeel_repository::{FileKind, FileRecord, Reader};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The names of a generation. Numbers are the same whenever it is read: a generation never changes.
pub(super) struct Listing {
    entries: Vec<Listed>,
}

/// The directory that holds the roots.
pub(super) const TOP: u32 = 0;

pub(super) struct Listed {
    /// Path below the generation, beginning with the root.
    pub(super) path: PathBuf,
    pub(super) what: What,
    names: BTreeMap<OsString, u32>,
}

pub(super) enum What {
    /// A directory, and what was known of it.
    Directory(Option<Box<FileRecord>>),
    File(Box<FileRecord>),
}

impl Listing {
    pub(super) fn read(reader: &Reader) -> Result<Self> {
        let mut listing = Self {
            entries: vec![Listed::directory(PathBuf::new())],
        };
        for record in reader.files() {
            let record = Box::new(record?);
            let (root, below) = names::split(&record.meta.name)?;
            let path = Path::new(root).join(below);
            match record.meta.kind {
                FileKind::Dir => {
                    let number = listing.directory(&path)?;
                    listing.entries[number as usize].what = What::Directory(Some(record));
                }
                FileKind::File => {
                    listing.add(&path, What::File(record))?;
                }
                // A backup never holds links: what is behind one is a root or a file of its own.
                FileKind::Symlink => {
                    return Err(Error::failed(format!("{} is a link", record.meta.name)));
                }
            }
        }
        Ok(listing)
    }

    fn add(&mut self, path: &Path, what: What) -> Result<u32> {
        let parent = self.directory(path.parent().unwrap_or(Path::new("")))?;
        let number = u32::try_from(self.entries.len())
            .map_err(|_| Error::failed("a generation holds too many files to be shown"))?;
        let name = path.file_name().unwrap_or_default().to_owned();
        let mut listed = Listed::directory(path.to_owned());
        listed.what = what;
        self.entries.push(listed);
        self.entries[parent as usize].names.insert(name, number);
        Ok(number)
    }

    /// Returns the directory at `path`, which is made if it was not named yet.
    fn directory(&mut self, path: &Path) -> Result<u32> {
        let mut at = TOP;
        let mut whole = PathBuf::new();
        for name in path {
            whole.push(name);
            at = match self.entries[at as usize].names.get(name) {
                Some(number) => *number,
                None => self.add(&whole, What::Directory(None))?,
            };
        }
        Ok(at)
    }

    pub(super) fn get(&self, number: u32) -> Option<&Listed> {
        self.entries.get(number as usize)
    }

    /// Returns everything with its number, directories before what is in them.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, &Listed)> {
        (0..).zip(&self.entries)
    }

    pub(super) fn find(&self, directory: u32, name: &OsStr) -> Option<u32> {
        self.get(directory)?.names.get(name).copied()
    }
}

impl Listed {
    fn directory(path: PathBuf) -> Self {
        Self {
            path,
            what: What::Directory(None),
            names: BTreeMap::new(),
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = (&OsString, u32)> {
        self.names.iter().map(|(name, number)| (name, *number))
    }

    pub(super) fn kind(&self) -> NodeKind {
        match self.what {
            What::Directory(_) => NodeKind::Directory,
            What::File(_) => NodeKind::File,
        }
    }

    /// Returns what is shown of it; who cannot give files away is shown as their owner.
    pub(super) fn attributes(&self) -> Attributes {
        let record = match &self.what {
            What::Directory(record) => record.as_ref(),
            What::File(record) => Some(record),
        };
        let mut shown = plain_directory();
        if let Some(record) = record {
            let meta = &record.meta;
            shown.kind = self.kind();
            (shown.size, shown.allocated) = (meta.size, meta.allocated);
            (shown.mode, shown.mtime) = (dress::plain_mode(meta), meta.mtime);
            if rustix::process::geteuid().is_root() {
                (shown.uid, shown.gid) = (meta.uid, meta.gid);
            }
        }
        shown
    }
}

/// A directory of nobody's making: everybody may look into it.
pub(super) fn plain_directory() -> Attributes {
    Attributes {
        kind: NodeKind::Directory,
        size: 0,
        allocated: 0,
        mode: 0o755,
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        mtime: (0, 0),
    }
}
