//! Which parts of a file are missing.

use super::GRANULE;
use rustix::fs::XattrFlags;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names the map of a file that is not whole.
const ATTRIBUTE: &str = "user.evenkeel.missing";
/// Longest value of it: three numbers.
const VALUE_MAX: usize = 64;

/// What of one file is missing. Marks are only added, so that whoever sees one may rely on it.
#[derive(Debug)]
pub(super) struct Map {
    table: Arc<File>,
    /// Where this file's bytes begin in the table.
    at: u64,
    /// Which file of the origin this is.
    pub(super) origin: u64,
    /// How long that is, in bytes. What is beyond was never anywhere else.
    pub(super) size: u64,
    /// One bit per granule: it is here.
    here: Vec<AtomicU64>,
    left: AtomicU64,
}

/// Notes that nothing of the file at `path` is there yet.
pub(super) fn adopt(path: &Path, at: u64, origin: u64, size: u64) -> io::Result<()> {
    let value = format!("{at} {origin} {size}");
    rustix::fs::setxattr(path, ATTRIBUTE, value.as_bytes(), XattrFlags::CREATE)?;
    Ok(())
}

/// Notes that a file is whole.
pub(super) fn release(file: &File) -> io::Result<()> {
    match rustix::fs::fremovexattr(file, ATTRIBUTE) {
        Ok(()) | Err(rustix::io::Errno::NODATA) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns how many granules a length takes.
pub(super) fn granules(size: u64) -> u64 {
    size.div_ceil(GRANULE)
}

impl Map {
    /// Loads the map of the file at `path`, which is `length` bytes long; `None` when it is whole.
    pub(super) fn load(table: &Arc<File>, path: &Path, length: u64) -> io::Result<Option<Self>> {
        let mut value = [0u8; VALUE_MAX];
        let found = match rustix::fs::getxattr(path, ATTRIBUTE, &mut value[..]) {
            Ok(found) => found,
            Err(rustix::io::Errno::NODATA | rustix::io::Errno::NOTSUP) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let numbers = std::str::from_utf8(&value[..found]).ok().map(|text| {
            let numbers = text.split(' ').map(str::parse::<u64>);
            numbers.collect::<Result<Vec<u64>, _>>().unwrap_or_default()
        });
        let Some([at, origin, size]) = numbers.as_deref() else {
            return Err(io::Error::other(format!("{ATTRIBUTE} is not valid")));
        };
        Self::read(table, (*at, *origin, *size), length).map(Some)
    }

    fn read(
        table: &Arc<File>,
        (at, origin, size): (u64, u64, u64),
        length: u64,
    ) -> io::Result<Self> {
        let count = granules(size);
        let mut bytes = vec![0u8; count as usize];
        table.read_exact_at(&mut bytes, at)?;
        // A process that was killed behind a truncation had not marked yet what it cut off.
        for beyond in granules(length)..count {
            bytes[beyond as usize] = 1;
        }
        let mut here = vec![0u64; bytes.len().div_ceil(64)];
        for (granule, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte != 0) {
            here[granule / 64] |= 1 << (granule % 64);
        }
        Ok(Self {
            table: Arc::clone(table),
            at,
            origin,
            size,
            here: here.into_iter().map(AtomicU64::new).collect(),
            left: AtomicU64::new(bytes.iter().filter(|byte| **byte == 0).count() as u64),
        })
    }

    /// Returns how many granules are not there.
    pub(super) fn left(&self) -> u64 {
        self.left.load(Ordering::Acquire)
    }

    pub(super) fn is_missing(&self, granule: u64) -> bool {
        let word = self.here.get((granule / 64) as usize);
        let beyond = granule >= granules(self.size);
        !beyond && word.is_some_and(|word| word.load(Ordering::Acquire) >> (granule % 64) & 1 == 0)
    }

    /// Returns the first granule from `from` on that is not there.
    pub(super) fn next_missing(&self, from: u64) -> Option<u64> {
        if self.left() == 0 {
            return None;
        }
        (from..granules(self.size)).find(|granule| self.is_missing(*granule))
    }

    /// Says that a granule is there, once its data was written.
    pub(super) fn mark(&self, granule: u64) -> io::Result<()> {
        self.table.write_all_at(&[1], self.at + granule)?;
        let bit = 1 << (granule % 64);
        let old = self.here[(granule / 64) as usize].fetch_or(bit, Ordering::AcqRel);
        if old & bit == 0 {
            self.left.fetch_sub(1, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Returns which bytes of the file a granule is, within the origin's length.
    pub(super) fn range(&self, granule: u64) -> std::ops::Range<u64> {
        granule * GRANULE..((granule + 1) * GRANULE).min(self.size)
    }
}
