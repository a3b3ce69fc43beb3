//! Brings the kept clone of one file forward: only what differs from the live file is cloned again.
//!
//! Cloning a whole file takes about 10 µs for each of its extents, and every page that is written
//! under a clone makes two more of them, so whole clones get slower with every run. A range takes 20
//! to 40 µs, however fragmented the file is.
//!
//! The live file may be written to meanwhile. A page that is changed after its extents were listed
//! is cloned as it was when they were listed, or as it is when its range is cloned, and never in
//! between: ranges are widened to whole pages, and the kernel clones a range with the file's I/O
//! lock held and no direct I/O in flight. So each page is of a moment within the call, which is what
//! a clone of the whole file promises for pages as well, as far as a splice needs it.

use crate::extents::{Extents, differing};
use crate::ioctl;
use rustix::fs::{AtFlags, IFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::ops::Range;

/// More ranges than this in one file are cloned and reported as one.
const RANGES_MAX: usize = 1 << 20;

/// What became of a clone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Brought {
    /// It was cloned as a whole: nothing is known of its difference from what was there.
    Whole,
    /// What may differ from what was there: sorted, disjoint, inside the file as it is now.
    Forward(Vec<Range<u64>>),
}

/// What of a file has to be point-in-time consistent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pages {
    /// Bytes that are written in one piece: a power of two, at least a block of the filesystem.
    pub(super) unit: u64,
    /// Whether all of the file has to be, instead.
    pub(super) whole_files: bool,
}

/// One file and its clone.
pub(super) struct Pair<'a> {
    /// The open directory of the live file, and its name there.
    pub(super) source: (&'a File, &'a OsStr),
    /// The open directory of the clone, and its name there.
    pub(super) target: (&'a File, &'a str),
    /// What has to be point-in-time consistent.
    pub(super) pages: Pages,
    /// Whether extents tell what differs.
    pub(super) true_extents: bool,
}

impl Pair<'_> {
    /// Makes the clone equal to the live file.
    pub(super) fn bring(&self) -> io::Result<Brought> {
        // Not blocking: a FIFO among the files must not hold up a run that may have stopped a server.
        let read = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let source = open(self.source.0, self.source.1, read)?;
        if self.pages.whole_files {
            return self.at_once(&source);
        }
        if self.true_extents {
            let write = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            match open(self.target.0, OsStr::new(self.target.1), write) {
                Ok(target) => match self.forward(&source, &target) {
                    // The two do not agree on copy-on-write, or the live file became shorter.
                    Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
                    other => return other.map(Brought::Forward),
                },
                Err(Errno::NOENT) => {}
                Err(other) => return Err(other.into()),
            }
        }
        self.clone_whole(&source, self.target.1)?;
        Ok(Brought::Whole)
    }

    /// Clones the file in one call: the kernel lets nobody write to it meanwhile. Ranges that are
    /// cloned one after the other would be of several points in time.
    fn at_once(&self, source: &File) -> io::Result<Brought> {
        let (folder, name) = self.target;
        // No clone's name ends in this: they end in a tilde.
        let fresh = format!("{name}new");
        self.clone_whole(source, &fresh)?;
        let read = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let brought = match open(folder, OsStr::new(name), read) {
            Ok(former) if self.true_extents => {
                let now = open(folder, OsStr::new(&fresh), read)?;
                let (former_size, size) = (former.metadata()?.len(), now.metadata()?.len());
                let ranges = differing(Extents::of(&former), former_size, Extents::of(&now), size)?;
                Brought::Forward(whole_units(ranges, self.pages.unit, size))
            }
            _ => Brought::Whole,
        };
        rustix::fs::renameat(folder, &fresh, folder, name)?;
        Ok(brought)
    }

    fn forward(&self, source: &File, target: &File) -> io::Result<Vec<Range<u64>>> {
        let (size, former) = (source.metadata()?.len(), target.metadata()?.len());
        if former > size {
            target.set_len(size)?;
        }
        let ranges = differing(Extents::of(target), former, Extents::of(source), size)?;
        let ranges = whole_units(ranges, self.pages.unit, size);
        for range in &ranges {
            ioctl::clone_range(source, target, range)?;
        }
        // What lies behind the last range is a hole.
        if target.metadata()?.len() != size {
            target.set_len(size)?;
        }
        Ok(ranges)
    }

    fn clone_whole(&self, source: &File, name: &str) -> Result<(), Errno> {
        let folder = self.target.0;
        match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(other) => return Err(other),
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let target = rustix::fs::openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?;
        match rustix::fs::ioctl_ficlone(&target, source) {
            // btrfs clones only between files that agree on copy-on-write and checksums, and the
            // flag (chattr +C, which servers set on their own files) can be given to an empty file
            // only.
            Err(Errno::INVAL) => {
                let flags = rustix::fs::ioctl_getflags(source)?;
                if !flags.contains(IFlags::NOCOW) {
                    return Err(Errno::INVAL);
                }
                let own = rustix::fs::ioctl_getflags(&target)?;
                rustix::fs::ioctl_setflags(&target, own | IFlags::NOCOW)?;
                rustix::fs::ioctl_ficlone(&target, source)
            }
            other => other,
        }
    }
}

fn open(folder: &File, name: &OsStr, flags: OFlags) -> Result<File, Errno> {
    rustix::fs::openat(folder, name, flags, Mode::empty()).map(File::from)
}

/// Widens ranges to whole units inside a file of `size` bytes, and joins those that then touch.
fn whole_units(ranges: Vec<Range<u64>>, unit: u64, size: u64) -> Vec<Range<u64>> {
    if ranges.len() > RANGES_MAX {
        let whole = 0..size;
        return vec![whole];
    }
    let mut wide: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        let start = range.start / unit * unit;
        let end = range.end.next_multiple_of(unit).min(size);
        match wide.last_mut() {
            Some(last) if last.end >= start => last.end = end,
            _ => wide.push(start..end),
        }
    }
    wide
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_widened_to_units_and_joined() {
        let wide = whole_units(vec![5..6, 40..41, 48..50, 95..97], 16, 97);
        assert_eq!(wide, [0..16, 32..64, 80..97]);
        let (short, whole) = (3..5, 0..5);
        assert_eq!(whole_units(vec![short], 16, 5), [whole]);
        assert_eq!(whole_units(Vec::new(), 16, 97), []);
    }

    #[test]
    fn far_too_many_ranges_are_one() {
        let many = (0..=RANGES_MAX as u64).map(|i| i * 64..i * 64 + 1);
        let size = (RANGES_MAX as u64 + 1) * 64;
        let whole = Range {
            start: 0,
            end: size,
        };
        assert_eq!(whole_units(many.collect(), 16, size), [whole]);
    }
}
