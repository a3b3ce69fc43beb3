//! An open file of a table. Whoever reads keeps it, even when its name is gone.

use crate::error::{During, Error, Result};
use crate::io::{File, Io, Map};
use crate::log::Name;
use crate::log::rows::{self, ROW_HEADER};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A segment or a part.
pub(crate) struct DataFile {
    pub(crate) name: Name,
    pub(crate) path: PathBuf,
    pub(crate) io: Box<dyn File>,
    /// Its length when it was sealed, 0 before.
    sealed: AtomicU64,
    /// Where what was written to it ends.
    written: AtomicU64,
    map: OnceLock<Option<Map>>,
}

impl std::fmt::Debug for DataFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataFile")
            .field("path", &self.path)
            .finish()
    }
}

impl DataFile {
    fn new(name: Name, path: PathBuf, io: Box<dyn File>) -> Self {
        Self {
            name,
            path,
            io,
            sealed: AtomicU64::new(0),
            written: AtomicU64::new(0),
            map: OnceLock::new(),
        }
    }

    pub(crate) fn create(io: &dyn Io, dir: &Path, name: Name) -> Result<Self> {
        let path = dir.join(name.file());
        let file = io.create(&path).during("create", &path)?;
        Ok(Self::new(name, path, file))
    }

    pub(crate) fn open(io: &dyn Io, dir: &Path, name: Name) -> Result<Self> {
        let path = dir.join(name.file());
        let file = io.open(&path).during("open", &path)?;
        Ok(Self::new(name, path, file))
    }

    /// All bytes of it.
    pub(crate) fn read_all(&self, into: &mut Vec<u8>) -> Result<()> {
        let len = self.io.len().during("measure", &self.path)?;
        into.clear();
        into.resize(len as usize, 0);
        self.io.read_at(into, 0).during("read", &self.path)
    }

    /// Says that nothing is written to it any more, so that it may be mapped.
    pub(crate) fn seal(&self, len: u64) {
        self.sealed.store(len, Ordering::Release);
        self.grew_to(len);
    }

    /// Says where what was written to it ends.
    pub(crate) fn grew_to(&self, len: u64) {
        self.written.fetch_max(len, Ordering::Relaxed);
    }

    /// Where what was written to it ends. The file system is not asked: every statement wants to know.
    pub(crate) fn len(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// The length, if it is sealed.
    pub(crate) fn sealed_len(&self) -> Option<u64> {
        Some(self.sealed.load(Ordering::Acquire)).filter(|len| *len > 0)
    }

    /// Reads the row that starts at `offset`. `budget` is how many bytes may still be mapped, of all
    /// files; without, and where mapping fails, it is read by calls.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or another row is there than was written.
    pub(crate) fn row(&self, id: u64, offset: u32, budget: &AtomicU64) -> Result<Vec<u8>> {
        let at = offset as usize;
        let map = self.sealed_len().and_then(|len| self.mapped(len, budget));
        let (crc, row) = match map {
            Some(map) => {
                let head = map.get(at..at + ROW_HEADER);
                let head = head.ok_or_else(|| self.wrong(offset))?;
                let (len, crc) = rows::header(head.try_into().expect("eight bytes"));
                let start = at + ROW_HEADER;
                let row = map.get(start..start + len as usize);
                (crc, row.ok_or_else(|| self.wrong(offset))?.to_vec())
            }
            None => self.row_by_calls(offset)?,
        };
        if !rows::is_whole(id, crc, &row) {
            return Err(self.wrong(offset));
        }
        Ok(row)
    }

    fn row_by_calls(&self, offset: u32) -> Result<(u32, Vec<u8>)> {
        let mut head = [0; ROW_HEADER];
        let at = u64::from(offset);
        self.io.read_at(&mut head, at).during("read", &self.path)?;
        let (len, crc) = rows::header(head);
        if u64::from(len) > rows::ROW_MAX {
            return Err(self.wrong(offset));
        }
        let mut row = vec![0; len as usize];
        let read = self.io.read_at(&mut row, at + ROW_HEADER as u64);
        read.during("read", &self.path)?;
        Ok((crc, row))
    }

    fn mapped(&self, len: u64, budget: &AtomicU64) -> Option<&[u8]> {
        let map = self.map.get_or_init(|| {
            let take = |left: u64| left.checked_sub(len);
            budget
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, take)
                .ok()?;
            let map = self.io.map();
            if map.is_none() {
                budget.fetch_add(len, Ordering::AcqRel);
            }
            map
        });
        map.as_ref().map(|map| &map[..])
    }

    /// How much of the budget it has; it is given back when its rows are gone.
    pub(crate) fn mapped_bytes(&self) -> u64 {
        let mapped = self.map.get().is_some_and(Option::is_some);
        self.sealed_len().filter(|_| mapped).unwrap_or(0)
    }

    fn wrong(&self, offset: u32) -> Error {
        let what = "the checksum of a row does not match";
        Error::corrupt(&self.path, u64::from(offset), what)
    }
}
