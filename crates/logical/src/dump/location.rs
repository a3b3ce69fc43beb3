//! Where a dump is: a directory, or a prefix of a bucket.

use evenkeel_repository::store::{NewObject, Store, StoredObject};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How much of an object is asked for at once, in bytes.
const RUN: u64 = 1 << 20;

/// A directory or a store.
#[derive(Debug, Clone)]
pub enum DumpLocation {
    /// A directory of this host.
    Directory(PathBuf),
    /// A place for objects, for example in S3.
    Store(Arc<dyn Store>),
}

impl From<PathBuf> for DumpLocation {
    fn from(path: PathBuf) -> Self {
        Self::Directory(path)
    }
}

impl From<&Path> for DumpLocation {
    fn from(path: &Path) -> Self {
        Self::Directory(path.to_owned())
    }
}

impl DumpLocation {
    /// Returns the name of a file in it, for people; with an empty name, its own.
    #[must_use]
    pub fn shown(&self, name: &str) -> String {
        match self {
            Self::Directory(dir) if name.is_empty() => dir.display().to_string(),
            Self::Directory(dir) => dir.join(name).display().to_string(),
            Self::Store(store) if name.is_empty() => store.place(),
            Self::Store(store) => format!("{}/{name}", store.place()),
        }
    }

    /// Opens a file.
    pub(crate) fn open(&self, name: impl AsRef<Path>) -> io::Result<Box<dyn Read>> {
        let name = name.as_ref();
        Ok(match self {
            Self::Directory(dir) => Box::new(File::open(dir.join(name))?),
            Self::Store(store) => Box::new(Object {
                object: store.open(&name.to_string_lossy())?,
                at: 0,
                piece: Vec::new(),
                taken: 0,
            }),
        })
    }

    /// Returns the lengths of files, in bytes.
    pub(crate) fn lengths(&self, names: &[&Path]) -> Vec<io::Result<u64>> {
        match self {
            Self::Directory(dir) => {
                let each = names.iter();
                each.map(|name| Ok(std::fs::metadata(dir.join(name))?.len()))
                    .collect()
            }
            Self::Store(store) => {
                let names = names.iter().map(|name| name.to_string_lossy().into_owned());
                let opened = store.open_all(&names.collect::<Vec<_>>()).into_iter();
                opened.map(|one| Ok(one?.size())).collect()
            }
        }
    }

    /// Reads a file; at most `most` bytes of it.
    pub(crate) fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(name)?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// An object that is read from front to back.
struct Object {
    object: Box<dyn StoredObject>,
    /// Up to where it was asked for.
    at: u64,
    piece: Vec<u8>,
    /// Of the piece.
    taken: usize,
}

impl Read for Object {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.piece.len() {
            let length = RUN.min(self.object.size() - self.at);
            self.piece.resize(length as usize, 0);
            self.object.read_exact_at(self.at, &mut self.piece)?;
            (self.at, self.taken) = (self.at + length, 0);
        }
        let read = into.len().min(self.piece.len() - self.taken);
        into[..read].copy_from_slice(&self.piece[self.taken..][..read]);
        self.taken += read;
        Ok(read)
    }
}

/// A file that is being written.
pub(super) struct Sink {
    to: To,
    bytes: u64,
}

enum To {
    File(File),
    Object(Box<dyn NewObject>),
}

impl From<File> for Sink {
    fn from(file: File) -> Self {
        Self {
            to: To::File(file),
            bytes: 0,
        }
    }
}

impl From<Box<dyn NewObject>> for Sink {
    fn from(object: Box<dyn NewObject>) -> Self {
        Self {
            to: To::Object(object),
            bytes: 0,
        }
    }
}

impl Sink {
    /// Ends the file, and returns its length in bytes.
    pub(super) fn finish(self) -> io::Result<u64> {
        if let To::Object(object) = self.to {
            object.finish()?;
        }
        Ok(self.bytes)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.to {
            To::File(file) => file.write(bytes)?,
            To::Object(object) => {
                object.write(bytes)?;
                bytes.len()
            }
        };
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
