//! What lies in a directory, each file taken once; what is left over was not understood.

use super::super::source::{Chunk, Packing, Shape, listed};
use evenkeel_op::{Context, Error, Result};
use flate2::read::MultiGzDecoder;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest file of definitions, unpacked, in bytes.
const DEFINITIONS_MAX: u64 = 256 << 20;

/// A file.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) packing: Packing,
    pub(super) bytes: u64,
}

impl Found {
    /// Reads all of it, unpacked.
    ///
    /// Errors: `Failed` for what cannot be read, or is longer than definitions are.
    pub(super) fn text(&self) -> Result<Vec<u8>> {
        let failed = || format!("failed to read {}", self.path.display());
        let file = File::open(&self.path).context(failed)?;
        let from: Box<dyn Read> = match self.packing {
            Packing::None => Box::new(file),
            Packing::Gzip => Box::new(MultiGzDecoder::new(file)),
            Packing::Zstd => Box::new(zstd::Decoder::new(file).context(failed)?),
        };
        let mut text = Vec::new();
        let read = from.take(DEFINITIONS_MAX + 1).read_to_end(&mut text);
        if read.context(failed)? as u64 > DEFINITIONS_MAX {
            return Err(Error::failed(failed()).hint("it is too long for a file of definitions"));
        }
        Ok(text)
    }

    /// Returns it as a file of rows.
    pub(super) fn chunk(&self, number: u64, shape: Shape, bytes: Option<u64>) -> Chunk {
        let plain = (self.packing == Packing::None).then_some(self.bytes);
        Chunk {
            number,
            path: self.path.clone(),
            place: PathBuf::new().into(),
            rows: None,
            bytes: bytes.or(plain),
            bytes_stored: self.bytes,
            blake3: None,
            packing: self.packing,
            shape,
        }
    }
}

/// The files of a directory, by their names without the ending of the packing.
pub(super) struct Files {
    left: BTreeMap<String, Found>,
}

impl Files {
    /// Lists a directory.
    ///
    /// Errors: `Refused` for names that are no text, for what is no file, and for two files that
    /// differ in their packing only.
    pub(super) fn list(dir: &Path) -> Result<Self> {
        let failed = || format!("failed to list {}", dir.display());
        let mut left = BTreeMap::new();
        let mut strange = Vec::new();
        for entry in std::fs::read_dir(dir).context(failed)? {
            let entry = entry.context(failed)?;
            let kept = entry.metadata().context(failed)?;
            let shown = entry.file_name().to_string_lossy().into_owned();
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
                strange.push(shown);
                continue;
            };
            let endings = [(".gz", Packing::Gzip), (".zst", Packing::Zstd)];
            let packed = endings
                .iter()
                .find_map(|(ending, packing)| Some((name.strip_suffix(ending)?, *packing)));
            let (base, packing) = packed.unwrap_or((&name, Packing::None));
            let found = Found {
                path: entry.path(),
                packing,
                bytes: kept.len(),
            };
            if !kept.is_file() || left.insert(base.to_owned(), found).is_some() {
                strange.push(shown);
            }
        }
        match strange.is_empty() {
            true => Ok(Self { left }),
            false => Err(not_understood(&strange)),
        }
    }

    /// Takes a file.
    pub(super) fn take(&mut self, name: &str) -> Option<Found> {
        self.left.remove(name)
    }

    /// Takes a file that has to be there.
    ///
    /// Errors: `Failed`, with its name.
    pub(super) fn need(&mut self, name: &str) -> Result<Found> {
        self.take(name).ok_or_else(|| {
            Error::failed(format!("the dump is incomplete: {name} is missing"))
                .hint("restore it from another copy; nothing was loaded")
        })
    }

    /// Takes all files with an ending, and returns them by what comes before it.
    pub(super) fn take_ending(&mut self, ending: &str) -> Vec<(String, Found)> {
        let names: Vec<String> = self
            .left
            .keys()
            .filter(|name| name.ends_with(ending))
            .cloned()
            .collect();
        let mut taken = Vec::new();
        for name in names {
            if let Some(found) = self.left.remove(&name) {
                taken.push((name[..name.len() - ending.len()].to_owned(), found));
            }
        }
        taken
    }

    /// Returns the names that are left and begin so.
    pub(super) fn beginning(&self, start: &str) -> Vec<String> {
        let names = self.left.range(start.to_owned()..).map(|(name, _)| name);
        names
            .take_while(|name| name.starts_with(start))
            .cloned()
            .collect()
    }

    /// Fails when anything is left.
    ///
    /// Errors: `Refused`, with the names.
    pub(super) fn all_taken(&self) -> Result<()> {
        let names = self.left.values().filter_map(|one| one.path.file_name());
        let names: Vec<String> = names
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        match names.is_empty() {
            true => Ok(()),
            false => Err(not_understood(&names)),
        }
    }
}

fn not_understood(names: &[String]) -> Error {
    Error::refused(format!(
        "evenkeel does not understand {} of the directory's files: {}",
        names.len(),
        listed(names)
    ))
    .hint("if they are not needed, move them out of the directory; nothing was loaded")
}
