//! Many clones quickly: directories are opened once, and files by name inside them.
//!
//! One thread: two and four took as long or longer, on XFS with two processors. Clones of one
//! filesystem wait for each other in its log.

use super::forward::{Brought, Pages, Pair};
use crate::Changed;
use crate::failpoints::fail_point;
use evenkeel_op::own_directory::{open_without_links, shown};
use evenkeel_op::{Context, Error, Result};
use rustix::fs::{Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Files of one directory that are cloned into one folder.
pub(super) struct Folder {
    source: PathBuf,
    target: PathBuf,
    store: usize,
    files: Vec<Entry>,
}

struct Entry {
    source: OsString,
    target: String,
    /// In the generation.
    name: String,
}

impl Folder {
    pub(super) fn new(source: &Path, target: PathBuf, store: usize) -> Self {
        Self {
            source: source.to_owned(),
            target,
            store,
            files: Vec::new(),
        }
    }

    pub(super) fn store(&self) -> usize {
        self.store
    }

    /// Adds a file: its name in the source directory, that of its clone, and in the generation.
    pub(super) fn add(&mut self, source: &OsStr, target: String, name: &str) {
        self.files.push(Entry {
            source: source.to_owned(),
            target,
            name: name.to_owned(),
        });
    }

    /// Brings every clone forward, and tells in what each became different.
    pub(super) fn bring(
        &self,
        pages: Pages,
        true_extents: bool,
        mut tell: impl FnMut(&str, Changed),
    ) -> Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.target)
            .context(|| format!("failed to create {}", shown(&self.target).display()))?;
        // Whose files they are was judged by a path without links: none may have been put there since.
        let way = OFlags::DIRECTORY | OFlags::PATH;
        let from = open_without_links(&self.source, way)
            .map(File::from)
            .context(|| format!("failed to open {}", self.source.display()))?;
        let to = open_folder(&self.target)?;
        for file in &self.files {
            let pair = Pair {
                source: (&from, &file.source),
                target: (&to, &file.target),
                pages,
                true_extents,
            };
            fail_point!("snapshot::reflink::next_file");
            match pair.bring() {
                Ok(Brought::Forward(ranges)) => tell(&file.name, Changed::Ranges(ranges)),
                Ok(Brought::Whole) => tell(&file.name, Changed::Unknown),
                Err(error) => {
                    // It may have come half the way.
                    tell(&file.name, Changed::Unknown);
                    return Err(explain(error, &self.source.join(&file.source)));
                }
            }
        }
        Ok(())
    }
}

fn open_folder(path: &Path) -> Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
        .map(File::from)
        .context(|| format!("failed to open {}", shown(path).display()))
}

fn explain(error: io::Error, path: &Path) -> Error {
    let reported = Error::failed(format!("failed to clone {}", path.display()));
    let reported = match error.raw_os_error() {
        Some(libc::ENOENT) => {
            reported.hint("it vanished before it was cloned; run again")
        }
        Some(libc::ENOSPC) => reported.hint("the filesystem is full; clones need a little space"),
        Some(libc::EXDEV) => reported.hint("it is a mount that leads to another filesystem"),
        Some(libc::ELOOP) => reported.hint(
            "it became a symbolic link since it was listed: find out who changes the data directory",
        ),
        _ => reported,
    };
    reported.because(error)
}
