//! A file's extents as a gapless sequence of segments, read in batches.

use crate::ioctl::{self, ExtentBatch, RawExtent};
use std::fs::File;
use std::io;

/// Where the bytes of a segment are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtentLocation {
    /// Nowhere: a hole or an unwritten extent, which read as zeros.
    Zeros,
    /// At this byte address of the filesystem, where nobody overwrites it: some other file refers to
    /// it too, or it is in a snapshot of the whole disk.
    Shared(u64),
    /// Somewhere that proves nothing: this file's alone, not yet written, encoded, inline.
    Opaque,
}

/// A range of a file and where its bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The first byte in the file.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
    /// Where the first byte is.
    pub place: ExtentLocation,
}

impl Segment {
    /// Returns where the byte at `at` of the file (inside this segment) is.
    pub(super) fn place_at(&self, at: u64) -> ExtentLocation {
        match self.place {
            ExtentLocation::Shared(address) => {
                ExtentLocation::Shared(address.wrapping_add(at - self.start))
            }
            other => other,
        }
    }
}

/// The segments of a file in order, without gaps, the last one endless.
pub struct Extents<'a> {
    file: &'a File,
    batch: ExtentBatch,
    filled: usize,
    next: usize,
    /// Everything before this byte was returned.
    position: u64,
    /// An extent that lies behind the hole just returned.
    waiting: Option<RawExtent>,
    last_seen: bool,
    ended: bool,
    /// Whether an address should be believed though no other file refers to it.
    unshared: bool,
}

impl<'a> Extents<'a> {
    /// Starts at the beginning of `file`.
    #[must_use]
    pub fn of(file: &'a File) -> Self {
        Self {
            file,
            batch: ExtentBatch::new(),
            filled: 0,
            next: 0,
            position: 0,
            waiting: None,
            last_seen: false,
            ended: false,
            unshared: false,
        }
    }

    /// The same for a file in a snapshot of a whole disk: nothing in it is overwritten, whether or not
    /// two files share it.
    #[must_use]
    pub fn addresses_of(file: &'a File) -> Self {
        Self {
            unshared: true,
            ..Self::of(file)
        }
    }

    /// Returns the next extent that ends behind `position`, from the kernel when needed.
    fn next_extent(&mut self) -> io::Result<Option<RawExtent>> {
        if let Some(extent) = self.waiting.take() {
            return Ok(Some(extent));
        }
        loop {
            if self.next == self.filled {
                if self.last_seen {
                    return Ok(None);
                }
                self.filled = self.batch.fill(self.file, self.position)?;
                self.next = 0;
                if self.filled == 0 {
                    return Ok(None);
                }
                // A batch that gets no further would be asked for forever.
                let end = self.batch.get(self.filled - 1);
                if end.logical.saturating_add(end.length) <= self.position {
                    return Err(io::Error::other("the list of extents does not advance"));
                }
            }
            let extent = self.batch.get(self.next);
            self.next += 1;
            self.last_seen |= extent.flags & ioctl::EXTENT_LAST != 0;
            if extent.logical.saturating_add(extent.length) > self.position {
                return Ok(Some(extent));
            }
        }
    }

    fn segment(&mut self) -> io::Result<Option<Segment>> {
        if self.ended {
            return Ok(None);
        }
        let start = self.position;
        let Some(extent) = self.next_extent()? else {
            self.ended = true;
            return Ok(Some(Segment {
                start,
                end: u64::MAX,
                place: ExtentLocation::Zeros,
            }));
        };
        if extent.logical > start {
            self.position = extent.logical;
            self.waiting = Some(extent);
            return Ok(Some(Segment {
                start,
                end: extent.logical,
                place: ExtentLocation::Zeros,
            }));
        }
        let end = extent.logical.saturating_add(extent.length);
        self.position = end;
        let whole = Segment {
            start: extent.logical,
            end,
            place: place(&extent, self.unshared),
        };
        Ok(Some(Segment {
            start,
            end,
            place: whole.place_at(start),
        }))
    }
}

impl Iterator for Extents<'_> {
    type Item = io::Result<Segment>;

    fn next(&mut self) -> Option<Self::Item> {
        let segment = self.segment();
        self.ended |= segment.is_err();
        segment.transpose()
    }
}

/// Returns what an extent's flags allow to be believed of its address.
fn place(extent: &RawExtent, unshared: bool) -> ExtentLocation {
    const PROVES_NOTHING: u32 = ioctl::EXTENT_UNKNOWN
        | ioctl::EXTENT_DELALLOC
        | ioctl::EXTENT_ENCODED
        | ioctl::EXTENT_DATA_ENCRYPTED
        | ioctl::EXTENT_NOT_ALIGNED
        | ioctl::EXTENT_DATA_INLINE
        | ioctl::EXTENT_DATA_TAIL;
    if extent.flags & PROVES_NOTHING != 0 {
        ExtentLocation::Opaque
    } else if extent.flags & ioctl::EXTENT_UNWRITTEN != 0 {
        ExtentLocation::Zeros
    } else if !unshared && extent.flags & ioctl::EXTENT_SHARED == 0 {
        ExtentLocation::Opaque
    } else {
        ExtentLocation::Shared(extent.physical)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(flags: u32) -> ExtentLocation {
        believed(flags, false)
    }

    fn believed(flags: u32, unshared: bool) -> ExtentLocation {
        let extent = RawExtent {
            physical: 4096,
            length: 4096,
            flags,
            ..RawExtent::default()
        };
        place(&extent, unshared)
    }

    #[test]
    fn on_a_frozen_disk_an_address_need_not_be_shared() {
        assert_eq!(believed(0, true), ExtentLocation::Shared(4096));
        for flag in [0x2, 0x4, 0x8, 0x80, 0x100, 0x200, 0x400] {
            assert_eq!(believed(flag, true), ExtentLocation::Opaque, "{flag:#x}");
        }
        assert_eq!(
            believed(ioctl::EXTENT_UNWRITTEN, true),
            ExtentLocation::Zeros
        );
    }

    #[test]
    fn only_shared_plain_extents_have_an_address() {
        assert_eq!(with(ioctl::EXTENT_SHARED), ExtentLocation::Shared(4096));
        assert_eq!(
            with(ioctl::EXTENT_SHARED | ioctl::EXTENT_LAST),
            ExtentLocation::Shared(4096)
        );
        assert_eq!(with(0), ExtentLocation::Opaque);
        for flag in [0x2, 0x4, 0x8, 0x80, 0x100, 0x200, 0x400] {
            assert_eq!(
                with(flag | ioctl::EXTENT_SHARED),
                ExtentLocation::Opaque,
                "{flag:#x}"
            );
            assert_eq!(
                with(flag | ioctl::EXTENT_UNWRITTEN),
                ExtentLocation::Opaque,
                "{flag:#x}"
            );
        }
        assert_eq!(with(ioctl::EXTENT_UNWRITTEN), ExtentLocation::Zeros);
    }

    #[test]
    fn a_segments_address_moves_with_the_offset() {
        let segment = Segment {
            start: 100,
            end: 200,
            place: ExtentLocation::Shared(1000),
        };
        assert_eq!(segment.place_at(150), ExtentLocation::Shared(1050));
    }
}
