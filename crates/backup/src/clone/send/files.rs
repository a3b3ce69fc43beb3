//! The files of an image, as they are listed and read.

use crate::backup::HeldImage;
use crate::backup::read::pages::{PageCheck, SystemSpace};
use crate::backup::read::read_file::{self, Source};
use crate::clone::list::{BLOCK, ImageList, OWN_NAME};
use evenkeel_op::{Context, Result};
use evenkeel_server::files::{FileClass, FoundFile};

/// One file that is sent.
pub(super) struct SentFile<'a> {
    pub(super) found: &'a FoundFile,
    pub(super) size: u64,
    pub(super) check: Option<PageCheck>,
}

/// All of them. Their places are the numbers that they are known by.
pub(super) struct SentFiles<'a> {
    image: &'a HeldImage,
    files: Vec<SentFile<'a>>,
}

impl<'a> SentFiles<'a> {
    /// Describes the files of an image, for the receiver and for reading.
    pub(super) fn of(image: &'a HeldImage) -> Result<(ImageList, Self)> {
        let found = image.found();
        let mut system = SystemSpace::of(found);
        let mut sent = Self {
            image,
            files: Vec::new(),
        };
        let mut files = Vec::new();
        for found in found.files.iter().filter(|found| found.name != OWN_NAME) {
            let open = sent.open(found)?;
            let check = match found.class {
                FileClass::InnodbData => {
                    system.check(found, open.file(), open.size(), image.found().page_size)?
                }
                _ => None,
            };
            files.push(read_file::meta(found, &open, BLOCK as u32)?);
            sent.files.push(SentFile {
                found,
                size: open.size(),
                check,
            });
        }
        // The roots too: a server cannot work in a directory that is not its own.
        let roots = found.roots.iter().map(|root| (&root.id, &root.path));
        let dirs = found.dirs.iter().map(|(name, path)| (name, path));
        let dirs = roots.chain(dirs);
        let list = ImageList {
            source: image.source().to_owned(),
            version: image.version().map(str::to_owned),
            settings: found.settings.clone(),
            roots: found
                .roots
                .iter()
                .map(|root| (root.id.clone(), root.path.display().to_string()))
                .collect(),
            dirs: dirs
                .map(|(name, path)| read_file::dir_meta(name, path))
                .collect::<Result<_>>()?,
            files,
        };
        Ok((list, sent))
    }

    /// Opens the frozen copy of a file.
    pub(super) fn open(&self, found: &FoundFile) -> Result<Source> {
        let path = self.image.frozen_path(found);
        Source::open(&path, found)
            .context(|| format!("failed to open the frozen copy of {}", found.path.display()))
    }

    pub(super) fn count(&self) -> usize {
        self.files.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &SentFile<'a>)> {
        (0..).zip(&self.files)
    }
}
