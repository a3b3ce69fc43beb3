//! Real files.

use super::{File, Io, Map};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The file system of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Io for Disk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        Ok(Box::new(file))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        Ok(Box::new(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other,
        }
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        fs::File::open(path)?.sync_all()
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        fs::read_dir(path)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }
}

impl File for fs::File {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(into, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        fs::File::set_len(self, bytes)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn reserve(&self, bytes: u64) -> io::Result<()> {
        match fallocate(self, FallocateFlags::KEEP_SIZE, 0, bytes) {
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
            other => Ok(other?),
        }
    }

    #[allow(unsafe_code)]
    fn map(&self) -> Option<Map> {
        // SAFETY: only sealed segments are mapped. Nothing here writes to or cuts a sealed segment,
        // and it is unlinked, not truncated, when its rows are gone; the map keeps its bytes.
        let map = unsafe { memmap2::Mmap::map(self) }.ok()?;
        Some(Box::new(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_hold_what_was_written_where_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let file = Disk.create(&path).unwrap();
        assert!(Disk.create(&path).is_err());
        file.reserve(1 << 16).unwrap();
        assert_eq!(file.len().unwrap(), 0, "reserved space is not content");
        file.write_at(b"world", 6).unwrap();
        file.write_at(b"hello ", 0).unwrap();
        file.sync().unwrap();
        assert_eq!(&file.map().unwrap()[..], b"hello world");
        let mut part = [0; 3];
        file.read_at(&mut part, 6).unwrap();
        assert_eq!(&part, b"wor");
        assert!(file.read_at(&mut part, 10).is_err(), "past the end");
        Disk.rename(&path, &dir.path().join("b")).unwrap();
        Disk.sync_dir(dir.path()).unwrap();
        assert_eq!(Disk.list(dir.path()).unwrap(), ["b"]);
    }
}
