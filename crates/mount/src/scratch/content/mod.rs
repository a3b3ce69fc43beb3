//! The content of one file: what is there is in the scratch's file, what is not is fetched first.

use super::map::{self, Map};
use super::{GRANULE, Origin};
use rustix::fs::{FallocateFlags, Timespec, Timestamps};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

/// Granules of a file that may be fetched at the same time.
const TURNS: usize = 8;

/// A file's content, and who has it open.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) map: Option<Map>,
    /// Held alone by whoever shortens the file, so that nothing is fetched behind its end.
    gate: RwLock<()>,
    /// Held by whoever brings a granule, by its number.
    turns: [Mutex<()>; TURNS],
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    count: u64,
    file: Option<Arc<File>>,
    /// Counted once, and never released.
    is_pinned: bool,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked left nothing half-done here: data comes before its mark.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Content {
    pub(super) fn new(map: Option<Map>) -> Self {
        Self {
            map,
            ..Self::default()
        }
    }

    /// Returns how many bytes may have to be fetched yet.
    pub(super) fn missing(&self) -> u64 {
        self.map.as_ref().map_or(0, |map| map.left() * GRANULE)
    }

    /// Opens the file at `path`, or joins those who have it open.
    pub(super) fn open(
        &self,
        path: impl FnOnce() -> io::Result<std::path::PathBuf>,
    ) -> io::Result<Arc<File>> {
        let mut open = held(&self.open);
        let file = match &open.file {
            Some(file) => Arc::clone(file),
            None => Arc::new(open_file(&path()?)?),
        };
        open.file = Some(Arc::clone(&file));
        open.count += 1;
        Ok(file)
    }

    /// Opens the file at `path` for as long as it is known at all.
    pub(super) fn pin(
        &self,
        path: impl FnOnce() -> io::Result<std::path::PathBuf>,
    ) -> io::Result<()> {
        let mut open = held(&self.open);
        if open.is_pinned {
            return Ok(());
        }
        if open.file.is_none() {
            open.file = Some(Arc::new(open_file(&path()?)?));
        }
        open.count += 1;
        open.is_pinned = true;
        Ok(())
    }

    /// Joins with a file that was just created.
    pub(super) fn opened(&self, file: File) {
        let mut open = held(&self.open);
        open.file = Some(Arc::new(file));
        open.count += 1;
    }

    /// Returns the file that somebody has open.
    pub(super) fn file(&self) -> Option<Arc<File>> {
        held(&self.open).file.clone()
    }

    /// Leaves it; who leaves last closes the file.
    pub(super) fn release(&self) {
        let mut open = held(&self.open);
        open.count = open.count.saturating_sub(1);
        if open.count == 0 {
            open.file = None;
        }
    }

    fn shared(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The map, while something is missing.
    fn lacking(&self) -> Option<&Map> {
        self.map.as_ref().filter(|map| map.left() > 0)
    }

    /// Reads; returns how many bytes there were.
    pub(super) fn read(
        &self,
        file: &File,
        origin: &dyn Origin,
        offset: u64,
        buffer: &mut [u8],
    ) -> io::Result<usize> {
        let _shared = self.shared();
        let end = offset + buffer.len() as u64;
        let mut unkept = Vec::new();
        if let Some(map) = self.lacking() {
            for granule in offset / GRANULE..end.div_ceil(GRANULE) {
                match self.fetch(file, map, origin, granule) {
                    // What cannot be kept can be read all the same.
                    Err(error) if is_full(&error) => unkept.push(granule),
                    other => other?,
                }
            }
        }
        let length = read_whole(file, offset, buffer)?;
        let read_end = offset + length as u64;
        for granule in unkept {
            if let Some(map) = self.map.as_ref().filter(|map| map.is_missing(granule)) {
                let range = map.range(granule);
                let (from, to) = (range.start.max(offset), range.end.min(read_end));
                if from < to {
                    let part = &mut buffer[(from - offset) as usize..(to - offset) as usize];
                    origin.read_at(map.origin, from, part)?;
                }
            }
        }
        Ok(length)
    }

    /// Brings a granule if it is not there.
    pub(super) fn fetch(
        &self,
        file: &File,
        map: &Map,
        origin: &dyn Origin,
        granule: u64,
    ) -> io::Result<()> {
        if !map.is_missing(granule) {
            return Ok(());
        }
        let _turn = held(&self.turns[granule as usize % TURNS]);
        if !map.is_missing(granule) {
            return Ok(());
        }
        let range = map.range(granule);
        let mut bytes = vec![0; (range.end - range.start) as usize];
        origin.read_at(map.origin, range.start, &mut bytes)?;
        if bytes.iter().any(|byte| *byte != 0) {
            let before = file.metadata()?;
            file.write_all_at(&bytes, range.start)?;
            // Nobody has changed the file: it only came.
            keep_time(file, &before);
        } else {
            // A process that was killed may have begun to write here what was never promised.
            let length = range.end - range.start;
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            if rustix::fs::fallocate(file, flags, range.start, length).is_err() {
                file.write_all_at(&bytes, range.start)?;
            }
        }
        map.mark(granule)
    }

    /// Brings a granule on behalf of who fills the scratch.
    pub(super) fn fill(&self, file: &File, origin: &dyn Origin, granule: u64) -> io::Result<()> {
        let _shared = self.shared();
        match &self.map {
            Some(map) => self.fetch(file, map, origin, granule),
            None => Ok(()),
        }
    }

    /// Writes all of `data`.
    pub(super) fn write(
        &self,
        file: &File,
        origin: &dyn Origin,
        offset: u64,
        data: &[u8],
    ) -> io::Result<()> {
        let _shared = self.shared();
        let Some(map) = self.lacking() else {
            return file.write_all_at(data, offset);
        };
        let end = offset + data.len() as u64;
        let mut at = offset;
        while at < end {
            let granule = at / GRANULE;
            let part_end = match granule < map::granules(map.size) {
                true => ((granule + 1) * GRANULE).min(end),
                false => end,
            };
            let part = &data[(at - offset) as usize..(part_end - offset) as usize];
            let range = map.range(granule);
            if map.is_missing(granule) && at == range.start && part_end >= range.end {
                let _turn = held(&self.turns[granule as usize % TURNS]);
                file.write_all_at(part, at)?;
                map.mark(granule)?;
            } else {
                self.fetch(file, map, origin, granule)?;
                file.write_all_at(part, at)?;
            }
            at = part_end;
        }
        Ok(())
    }

    /// Gives the file another length.
    pub(super) fn set_len(&self, file: &File, origin: &dyn Origin, length: u64) -> io::Result<()> {
        let _alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        let Some(map) = self.lacking().filter(|map| length < map.size) else {
            return file.set_len(length);
        };
        if !length.is_multiple_of(GRANULE) {
            self.fetch(file, map, origin, length / GRANULE)?;
        }
        file.set_len(length)?;
        (map::granules(length)..map::granules(map.size))
            .filter(|granule| map.is_missing(*granule))
            .try_for_each(|granule| map.mark(granule))
    }

    /// Allocates, or makes zeros, as fallocate(2).
    pub(super) fn allocate(
        &self,
        file: &File,
        origin: &dyn Origin,
        mode: FallocateFlags,
        range: std::ops::Range<u64>,
    ) -> io::Result<()> {
        let zeroes = FallocateFlags::PUNCH_HOLE | FallocateFlags::ZERO_RANGE;
        let moves = FallocateFlags::COLLAPSE_RANGE | FallocateFlags::INSERT_RANGE;
        if mode.intersects(moves) {
            return Err(rustix::io::Errno::OPNOTSUPP.into());
        }
        let _alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        let go = || {
            rustix::fs::fallocate(file, mode, range.start, range.end - range.start)
                .map_err(io::Error::from)
        };
        let Some(map) = self.lacking().filter(|_| mode.intersects(zeroes)) else {
            return go();
        };
        let covered = |granule: &u64| {
            let own = map.range(*granule);
            range.start <= own.start && own.end <= range.end
        };
        let touched = range.start / GRANULE..map::granules(range.end.min(map.size));
        for granule in touched.clone().filter(|granule| !covered(granule)) {
            self.fetch(file, map, origin, granule)?;
        }
        go()?;
        touched
            .filter(|granule| covered(granule) && map.is_missing(*granule))
            .try_for_each(|granule| map.mark(granule))
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// For reading and writing, if the file's mode allows it: the kernel has checked what the caller may.
fn open_file(path: &Path) -> io::Result<File> {
    match File::options().read(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => File::open(path),
        other => other,
    }
}

fn read_whole(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(more) => done += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

fn keep_time(file: &File, before: &std::fs::Metadata) {
    let times = Timestamps {
        last_access: Timespec {
            tv_sec: before.atime(),
            tv_nsec: before.atime_nsec(),
        },
        last_modification: Timespec {
            tv_sec: before.mtime(),
            tv_nsec: before.mtime_nsec(),
        },
    };
    // A time that is not kept harms nobody.
    let _ = rustix::fs::futimens(file, &times);
}

#[cfg(test)]
mod tests;
