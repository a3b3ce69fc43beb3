//! Where pages are read from: a file, without disturbing the page cache, or a generation's file.

use evenkeel_op::{Context, Result};
use evenkeel_repository::FileReader;
use rustix::fs::{Advice, SeekFrom};
use rustix::io::ReadWriteFlags;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// Something with pages in it.
pub(super) enum Source {
    /// A file of this host.
    File(OpenFile),
    /// A file of a generation.
    Stored(Box<FileReader>),
}

/// An open file.
pub(super) struct OpenFile {
    file: File,
    size: u64,
    identity: (u64, u64),
    /// Whether nothing of it is a hole.
    dense: bool,
}

impl OpenFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let size = metadata.len();
        // The kernel's own reading ahead would bring what cannot be distinguished from what was
        // there before.
        let _ = rustix::fs::fadvise(&file, 0, None, Advice::Random);
        Ok(Self {
            dense: metadata.blocks() * 512 >= size,
            identity: (metadata.dev(), metadata.ino()),
            file,
            size,
        })
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Whether the path still leads to this file.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|meta| (meta.dev(), meta.ino()) == self.identity)
    }

    /// Whether nothing of a range is allocated.
    pub(super) fn is_hole(&self, offset: u64, length: u64) -> bool {
        if self.dense {
            return false;
        }
        match rustix::fs::seek(&self.file, SeekFrom::Data(offset)) {
            Ok(data) => data >= offset + length,
            Err(rustix::io::Errno::NXIO) => true,
            Err(_) => false,
        }
    }

    /// Whether the byte at `offset` is in the page cache already.
    pub(super) fn is_cached(&self, offset: u64) -> bool {
        let mut byte = [0];
        let mut buffers = [IoSliceMut::new(&mut byte)];
        rustix::io::preadv2(&self.file, &mut buffers, offset, ReadWriteFlags::NOWAIT) == Ok(1)
    }

    /// Tells the kernel that a range will be read.
    pub(super) fn announce(&self, offset: u64, length: u64) {
        self.advise(offset, length, Advice::WillNeed);
    }

    /// Lets the page cache forget a range, but not what waits to be written.
    pub(super) fn forget(&self, offset: u64, length: u64) {
        self.advise(offset, length, Advice::DontNeed);
    }

    fn advise(&self, offset: u64, length: u64, advice: Advice) {
        // Advice that is not taken costs time, not correctness.
        let _ = rustix::fs::fadvise(&self.file, offset, NonZeroU64::new(length), advice);
    }

    /// Reads until `buffer` is full or the file ends; returns how much there was.
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.file.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(more) => done += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

impl Source {
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::File(file) => file.size(),
            Self::Stored(reader) => reader.meta().size,
        }
    }

    /// Reads until `buffer` is full or the file ends; returns how much there was.
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        match self {
            Self::File(file) => file
                .read(offset, buffer)
                .context(|| format!("failed to read at byte {offset}")),
            Self::Stored(reader) => reader.read_at(offset, buffer),
        }
    }
}
