//! Reads a frozen file: which of its bytes are allocated, and those bytes, past the page cache's
//! memory of them.

use evenkeel_op::own_directory::open_without_links;
use evenkeel_op::{Context, Error, Result};
use evenkeel_repository::{FileKind, FileMeta};
use evenkeel_server::files::{Access, FoundFile};
use evenkeel_snapshot::volume;
use rustix::fs::{Advice, OFlags, SeekFrom};
use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// An open frozen file.
pub(crate) struct Source {
    file: File,
    metadata: Metadata,
    size: u64,
    /// Whether nothing of it is a hole.
    dense: bool,
}

impl Source {
    /// Opens the frozen copy of a file, which lies at `path`.
    pub(crate) fn open(path: &Path, found: &FoundFile) -> io::Result<Self> {
        let file = open(path, found)?;
        let metadata = file.metadata()?;
        // Not from the number of allocated blocks: that counts the file system's own as well.
        let size = volume::size(&file)?;
        let first_hole = rustix::fs::seek(&file, SeekFrom::Hole(0));
        let dense = size == 0
            || metadata.file_type().is_block_device()
            || first_hole.is_ok_and(|at| at >= size);
        if !dense {
            // What is allocated and never written is taken for data once it was read ahead. Then
            // the same file would look different from one run to the next.
            let _ = rustix::fs::fadvise(&file, 0, None, Advice::Random);
        }
        Ok(Self {
            file,
            metadata,
            size,
            dense,
        })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Whether this is a block device: its used parts cannot be distinguished from zeros.
    pub(crate) fn is_device(&self) -> bool {
        self.metadata.file_type().is_block_device()
    }

    /// Tells the kernel that a range will be read soon.
    pub(crate) fn announce(&self, range: Range<u64>) {
        // A hole that is announced fills the page cache with its zeros.
        let data = self
            .shape(&range)
            .map_or_else(|_| vec![range], |shape| shape.data);
        for part in data {
            self.advise(part, Advice::WillNeed);
        }
    }

    /// Gives the range's page cache back: the server's own is the one that should stay warm.
    pub(crate) fn forget(&self, range: Range<u64>) {
        self.advise(range, Advice::DontNeed);
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        // Advice that is not taken costs time, not correctness.
        let length = NonZeroU64::new(range.end.saturating_sub(range.start));
        let _ = rustix::fs::fadvise(&self.file, range.start, length, advice);
    }

    /// Reads a range into `buffer` (its length becomes the range's, or 0 when all of it is a hole);
    /// holes read as zeros without being read.
    pub(crate) fn read(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> Result<Shape> {
        let shape = self.shape(&range)?;
        buffer.clear();
        // A terabyte of nothing is not worth a terabyte of zeros.
        if !shape.data.is_empty() {
            buffer.resize((range.end - range.start) as usize, 0);
        }
        for data in &shape.data {
            let at = (data.start - range.start) as usize..(data.end - range.start) as usize;
            self.read_exact(&mut buffer[at], data.start)?;
        }
        Ok(shape)
    }

    /// A file that ends early is an error, never taken for its end.
    fn read_exact(&self, mut buffer: &mut [u8], mut offset: u64) -> Result<()> {
        while !buffer.is_empty() {
            match self.file.read_at(buffer, offset) {
                Ok(0) => {
                    return Err(Error::failed(format!(
                        "the frozen file ends at byte {offset}, before its length of {}",
                        self.size()
                    )));
                }
                Ok(n) => {
                    buffer = &mut buffer[n..];
                    offset += n as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(error).context(|| format!("failed to read at byte {offset}"));
                }
            }
        }
        Ok(())
    }

    /// Finds out what of a range is allocated.
    fn shape(&self, range: &Range<u64>) -> Result<Shape> {
        if self.dense {
            return Ok(Shape {
                data: vec![range.clone()],
            });
        }
        let mut data = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let start = match rustix::fs::seek(&self.file, SeekFrom::Data(at)) {
                Ok(start) if start < range.end => start,
                Ok(_) | Err(rustix::io::Errno::NXIO) => break,
                Err(error) => return Err(error).context(|| "failed to find the next data"),
            };
            let end = rustix::fs::seek(&self.file, SeekFrom::Hole(start))
                .context(|| "failed to find the next hole")?
                .min(range.end);
            data.push(start..end);
            at = end;
        }
        Ok(Shape { data })
    }
}

/// Opens the frozen copy of a file. That of a server's lies where no link leads: its user can put one there
/// after it was looked at, in the live directory and so in a snapshot of it.
pub(crate) fn open(path: &Path, found: &FoundFile) -> io::Result<File> {
    match found.access {
        Some(_) => open_without_links(path, OFlags::RDONLY | OFlags::NONBLOCK).map(File::from),
        None => File::open(path),
    }
}

/// What of a range is allocated: sorted, disjoint.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    data: Vec<Range<u64>>,
}

impl Shape {
    /// Returns how many bytes were read.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.data.iter().map(|range| range.end - range.start).sum()
    }

    /// Returns what of a block is allocated, as ranges of the file.
    pub(crate) fn within(&self, block: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let (start, end) = (block.start, block.end);
        let parts = self.data.iter();
        let parts = parts.map(move |data| data.start.max(start)..data.end.min(end));
        parts.filter(|part| part.start < part.end)
    }

    /// Returns how many bytes from the start of `block` on have to be kept so that only a hole
    /// follows; 0 when all of it is a hole.
    pub(crate) fn allocated(&self, block: &Range<u64>) -> u64 {
        self.data
            .iter()
            .rev()
            .find(|data| data.start < block.end)
            .map_or(0, |data| {
                data.end.min(block.end).saturating_sub(block.start)
            })
    }
}

/// Describes a file: size from the frozen copy, the rest from the original; when that is gone, what was seen
/// of it before. A frozen copy may be a clone, which belongs to us: a server could not open it.
pub(crate) fn meta(found: &FoundFile, frozen: &Source, block_size: u32) -> Result<FileMeta> {
    let original = fs::symlink_metadata(&found.path);
    let shown = original.as_ref().unwrap_or(&frozen.metadata);
    let mut meta = FileMeta::file(&found.name, frozen.size(), block_size);
    let access = match original {
        Ok(_) => Access::of(shown),
        Err(_) => found.access.unwrap_or_else(|| Access::of(shown)),
    };
    meta.mode = access.mode;
    meta.uid = access.uid;
    meta.gid = access.gid;
    meta.mtime = (
        shown.mtime(),
        u32::try_from(shown.mtime_nsec()).unwrap_or(0),
    );
    if frozen.is_device() {
        // It comes back as a disk image, which is nobody else's.
        meta.mode = 0o600;
        meta.allocated = frozen.size();
        return Ok(meta);
    }
    meta.allocated = frozen.metadata.blocks() * 512;
    meta.xattrs = xattrs(&found.path);
    Ok(meta)
}

/// Describes a directory.
pub(crate) fn dir_meta(name: &str, path: &Path) -> Result<FileMeta> {
    let metadata = fs::metadata(path).context(|| format!("failed to stat {}", path.display()))?;
    let mut meta = FileMeta::file(name, 0, 0);
    meta.kind = FileKind::Dir;
    meta.mode = metadata.permissions().mode() & 0o7777;
    meta.uid = metadata.uid();
    meta.gid = metadata.gid();
    meta.mtime = (
        metadata.mtime(),
        u32::try_from(metadata.mtime_nsec()).unwrap_or(0),
    );
    meta.xattrs = xattrs(path);
    Ok(meta)
}

/// Reads extended attributes, SELinux labels among them; none where the file system has none.
pub(crate) fn xattrs(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut names = vec![0u8; 4096];
    let Ok(length) = rustix::fs::llistxattr(path, names.as_mut_slice()) else {
        return BTreeMap::new();
    };
    names[..length]
        .split(|byte| *byte == 0)
        .filter_map(|name| {
            std::str::from_utf8(name)
                .ok()
                .filter(|name| !name.is_empty())
        })
        .filter_map(|name| {
            let mut value = vec![0u8; 4096];
            let length = rustix::fs::lgetxattr(path, name, value.as_mut_slice()).ok()?;
            value.truncate(length);
            Some((name.to_owned(), value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_server::files::FileClass;

    #[test]
    #[allow(clippy::single_range_in_vec_init)]
    fn only_a_hole_at_the_end_of_a_block_is_left_out() {
        let shape = Shape {
            data: vec![100..140, 180..200],
        };
        assert_eq!(shape.allocated(&(100..150)), 40);
        assert_eq!(shape.allocated(&(140..180)), 0);
        assert_eq!(shape.allocated(&(150..190)), 40);
        assert_eq!(shape.allocated(&(0..100)), 0);
        assert_eq!(shape.allocated(&(180..200)), 20);
        assert_eq!(shape.bytes_read(), 60);
    }

    fn found(path: &Path) -> FoundFile {
        FoundFile {
            name: "data/bank/t.ibd".to_owned(),
            path: path.to_owned(),
            class: FileClass::InnodbData,
            size: 1,
            access: Some(Access::of(&fs::metadata(path).unwrap())),
        }
    }

    /// Whose a file is was looked at before.
    #[test]
    fn a_link_that_was_put_there_since_is_not_followed() {
        let room = tempfile::tempdir().unwrap();
        let top = room.path().canonicalize().unwrap();
        for dir in ["bank", "precious"] {
            fs::create_dir(top.join(dir)).unwrap();
            fs::write(top.join(dir).join("t.ibd"), "x").unwrap();
        }
        let table = top.join("bank/t.ibd");
        let found = found(&table);
        assert!(Source::open(&table, &found).is_ok());
        fs::rename(top.join("bank"), top.join("moved")).unwrap();
        std::os::unix::fs::symlink(top.join("precious"), top.join("bank")).unwrap();
        assert!(Source::open(&table, &found).is_err());
    }

    #[test]
    fn holes_are_not_read_and_a_short_file_is_an_error() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut file, &[7; 8192]).unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let source = Source::open(file.path(), &found(file.path())).unwrap();
        let mut buffer = Vec::new();
        let shape = source.read(0..1 << 20, &mut buffer).unwrap();
        assert_eq!(buffer.len(), 1 << 20);
        assert!(shape.bytes_read() < 1 << 20);
        assert_eq!((buffer[8191], buffer[8192]), (7, 0));
        file.as_file().set_len(4096).unwrap();
        assert!(source.read_exact(&mut [0; 8192], 0).is_err());
    }
}
