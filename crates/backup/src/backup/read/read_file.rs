//! Reads a frozen file: which of its bytes are allocated, and those bytes.
//!
//! A backup reads past the page cache: a frozen copy is read once, and what is read through the cache is
//! copied once more, and takes the memory of what the server reads again and again.

use super::buffers::ALIGNMENT;
use evenkeel_op::own_directory::open_without_links;
use evenkeel_op::{Context, Error, Result};
use evenkeel_repository::{FileKind, FileMeta};
use evenkeel_server::files::{Access, FoundFile};
use evenkeel_snapshot::volume;
use rustix::fs::{Advice, Mode, OFlags, SeekFrom};
use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// An open frozen file.
pub(crate) struct Source {
    file: File,
    /// The same, for reads past the page cache.
    direct: Option<File>,
    /// The file's system does not let such reads be done.
    refused: AtomicBool,
    metadata: Metadata,
    size: u64,
    /// Whether nothing of it is a hole.
    dense: bool,
    /// What the last look found. To find the next hole, the filesystem looks at every extent before it, and a file
    /// may have many.
    known: Mutex<Known>,
}

/// A stretch of a file that was looked at.
struct Known {
    /// Where it begins: up to the data, it is a hole.
    from: u64,
    data: Range<u64>,
}

impl Known {
    fn contains(&self, at: u64) -> bool {
        (self.from..self.data.end).contains(&at)
    }
}

impl Source {
    /// Opens the frozen copy of a file, which lies at `path`.
    pub(crate) fn open(path: &Path, found: &FoundFile) -> io::Result<Self> {
        let file = open(path, found)?;
        let metadata = file.metadata()?;
        // Not from the number of allocated blocks: that counts the file system's own as well.
        let size = volume::size(&file)?;
        let first_hole = rustix::fs::seek(&file, SeekFrom::Hole(0)).unwrap_or(0);
        let dense = size == 0 || metadata.file_type().is_block_device() || first_hole >= size;
        if !dense {
            // What is allocated and never written is taken for data once it was read ahead. Then
            // the same file would look different from one run to the next.
            let _ = rustix::fs::fadvise(&file, 0, None, Advice::Random);
        }
        Ok(Self {
            file,
            direct: None,
            refused: AtomicBool::new(false),
            metadata,
            size,
            dense,
            known: Mutex::new(Known {
                from: 0,
                data: 0..first_hole,
            }),
        })
    }

    /// Reads past the page cache from now on, where the file's system can do that.
    pub(crate) fn past_the_cache(mut self) -> Self {
        // A small file costs less than opening it twice.
        if self.size >= ALIGNMENT as u64 {
            let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
            let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC | OFlags::NONBLOCK;
            self.direct = rustix::fs::open(own, flags, Mode::empty())
                .ok()
                .map(File::from);
        }
        self
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

    /// Gives the range's page cache back: the server's own is the one that should stay warm.
    pub(crate) fn forget(&self, range: Range<u64>) {
        self.advise(range, Advice::DontNeed);
    }

    fn advise(&self, range: Range<u64>, advice: Advice) {
        // Advice that is not taken costs time, not correctness.
        let length = NonZeroU64::new(range.end.saturating_sub(range.start));
        let _ = rustix::fs::fadvise(&self.file, range.start, length, advice);
    }

    /// Reads what `shape` says is allocated of a range to the beginning of `room`, which is as long as the range
    /// in whole blocks of [`ALIGNMENT`]; holes become zeros without being read.
    ///
    /// Errors: those of the file; `Failed` where it ends early.
    pub(crate) fn read(&self, range: &Range<u64>, shape: &Shape, room: &mut [u8]) -> Result<()> {
        let mut at = 0;
        for data in &shape.data {
            let start = (data.start - range.start) as usize;
            room[at..start].fill(0);
            at = (data.end - range.start) as usize;
            self.read_exact(&mut room[start..], at - start, data.start)?;
        }
        room[at..(range.end - range.start) as usize].fill(0);
        Ok(())
    }

    /// Reads `length` bytes. A file that ends early is an error, never taken for its end.
    fn read_exact(&self, room: &mut [u8], length: usize, offset: u64) -> Result<()> {
        let mut done = 0;
        while done < length {
            let from = offset + done as u64;
            match self.read_some(&mut room[done..], length - done, from) {
                Ok(0) => {
                    return Err(Error::failed(format!(
                        "the frozen file ends at byte {from}, before its length of {}",
                        self.size()
                    )));
                }
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(error).context(|| format!("failed to read at byte {from}"));
                }
            }
        }
        Ok(())
    }

    /// Reads `length` bytes or fewer; directly, where place, length and memory allow that.
    fn read_some(&self, room: &mut [u8], length: usize, offset: u64) -> io::Result<usize> {
        let whole = length.next_multiple_of(ALIGNMENT);
        let is_aligned = offset.is_multiple_of(ALIGNMENT as u64)
            && room.as_ptr().align_offset(ALIGNMENT) == 0
            && whole <= room.len();
        if let Some(direct) = &self.direct
            && is_aligned
            && !self.refused.load(Ordering::Relaxed)
        {
            match direct.read_at(&mut room[..whole], offset) {
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    self.refused.store(true, Ordering::Relaxed);
                }
                read => return read.map(|n| n.min(length)),
            }
        }
        self.file.read_at(&mut room[..length], offset)
    }

    /// Finds out what of a range is allocated.
    ///
    /// Errors: those of the file.
    pub(crate) fn shape(&self, range: &Range<u64>) -> Result<Shape> {
        if self.dense {
            return Ok(Shape {
                data: vec![range.clone()],
            });
        }
        let mut data = Vec::new();
        let mut at = range.start;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        while at < range.end {
            if !known.contains(at) {
                let data = self.next_data(at)?;
                *known = Known { from: at, data };
            }
            let start = at.max(known.data.start);
            if start >= range.end {
                break;
            }
            at = known.data.end.min(range.end);
            data.push(start..at);
        }
        Ok(Shape { data })
    }

    /// Finds the next bytes from `at` on that are no hole, up to the hole behind them. Where all is a hole, they lie
    /// behind everything.
    fn next_data(&self, at: u64) -> Result<Range<u64>> {
        let start = match rustix::fs::seek(&self.file, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(rustix::io::Errno::NXIO) => return Ok(u64::MAX..u64::MAX),
            Err(error) => return Err(error).context(|| "failed to find the next data"),
        };
        let end = rustix::fs::seek(&self.file, SeekFrom::Hole(start))
            .context(|| "failed to find the next hole")?;
        Ok(start..end)
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
    use super::super::buffers::Buffer;
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
        for past in [false, true] {
            file.as_file().set_len(1 << 20).unwrap();
            let source = Source::open(file.path(), &found(file.path())).unwrap();
            let source = if past {
                source.past_the_cache()
            } else {
                source
            };
            let range = 0..1 << 20;
            let shape = source.shape(&range).unwrap();
            assert!(shape.bytes_read() < 1 << 20);
            let mut buffer = Buffer::default();
            buffer.room(1 << 20).fill(9);
            source.read(&range, &shape, buffer.room(1 << 20)).unwrap();
            let read = buffer.bytes(1 << 20);
            assert!(read[..8192].iter().all(|byte| *byte == 7));
            assert!(read[8192..].iter().all(|byte| *byte == 0));
            file.as_file().set_len(4096).unwrap();
            assert!(source.read_exact(buffer.room(8192), 8192, 0).is_err());
            io::Write::write_all(&mut file.reopen().unwrap(), &[7; 8192]).unwrap();
        }
    }

    /// What was found for one range is used for the next one.
    #[test]
    #[allow(clippy::single_range_in_vec_init)]
    fn every_hole_is_found_wherever_the_look_before_was() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let block = 64 << 10;
        for at in [0, 1, 2, 5, 6, 9] {
            file.as_file().write_all_at(&[1; 4096], at * block).unwrap();
            let rest = at * block + 4096;
            file.as_file()
                .write_all_at(&vec![1; block as usize - 4096], rest)
                .unwrap();
        }
        file.as_file().set_len(12 * block).unwrap();
        let source = Source::open(file.path(), &found(file.path())).unwrap();
        let shape = |range: Range<u64>| {
            let shape = source
                .shape(&(range.start * block..range.end * block))
                .unwrap();
            let data = shape.data.into_iter();
            data.map(|data| data.start / block..data.end / block)
                .collect::<Vec<_>>()
        };
        for _ in 0..2 {
            assert_eq!(shape(5..6), [5..6]);
            assert_eq!(shape(0..12), [0..3, 5..7, 9..10]);
            assert_eq!(shape(10..12), []);
            assert_eq!(shape(1..2), [1..2]);
            assert_eq!(shape(3..6), [5..6]);
            assert_eq!(shape(6..9), [6..7]);
        }
    }

    /// Such a file ends within a device's block, and so does what is read of it.
    #[test]
    fn a_file_of_any_length_is_read_to_its_last_byte() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let bytes: Vec<u8> = (0..100_001_u32).map(|at| (at % 251) as u8).collect();
        io::Write::write_all(&mut file, &bytes).unwrap();
        let source = Source::open(file.path(), &found(file.path())).unwrap();
        let source = source.past_the_cache();
        for range in [
            0..100_001,
            4096..100_001,
            98_304..100_001,
            5..99,
            1000..70_000,
        ] {
            let mut buffer = Buffer::default();
            let length = (range.end - range.start) as usize;
            let shape = source.shape(&range).unwrap();
            source.read(&range, &shape, buffer.room(length)).unwrap();
            let wanted = &bytes[range.start as usize..range.end as usize];
            assert_eq!(buffer.bytes(length), wanted, "{range:?}");
        }
    }
}
