//! Which bytes of a file may differ from an earlier clone of it, derived from where both are stored.
//!
//! Copy-on-write filesystems never overwrite an extent that two files share. So as long as the
//! earlier clone is kept unchanged, a range that lies at the same place on disk in both files holds
//! the same bytes; everything else is reported. That argument needs four things, and each is
//! checked here rather than assumed:
//!
//! * both maps are of written-out files (`FIEMAP_FLAG_SYNC`), and nobody writes to either;
//! * an address means one place: only XFS and btrfs are trusted with it (see [`crate::filesystem`]),
//!   and extents that are delayed, inline, encoded, encrypted or unaligned never count as equal;
//! * an extent that both files map must be flagged as shared; if it is not, one of the two maps is
//!   stale and the range is reported;
//! * holes and unwritten extents read as zeros wherever they are, so two of them are equal.

mod map;
mod walk;

pub use map::{ExtentLocation, Extents, Segment};
pub use walk::{differing, differing_on};

use evenkeel_op::{Context, Result};
use std::fs::File;
use std::ops::Range;

/// Returns the byte ranges of `now` that may differ from `base`, where the two lie in two read-only
/// snapshots of one disk, which differ at the addresses in `overwritten` (sorted, disjoint) and nowhere
/// else. The filesystem must be one whose addresses are the disk's, and both snapshots of moments in
/// which everything was written out.
pub fn changed_on(base: &File, now: &File, overwritten: &[Range<u64>]) -> Result<Vec<Range<u64>>> {
    let size = |file: &File| {
        file.metadata()
            .map(|m| m.len())
            .context(|| "failed to stat a frozen file")
    };
    let (base_size, now_size) = (size(base)?, size(now)?);
    let (base, now) = (Extents::addresses_of(base), Extents::addresses_of(now));
    differing_on(base, base_size, now, now_size, overwritten)
        .context(|| "failed to list the extents of a frozen file")
}

/// Returns the byte ranges of `now` that may differ from `base`: sorted, disjoint, inside `now`.
/// Everything outside is byte-equal in `base`. A part of `now` beyond the end of `base` is reported
/// whole. Nobody may write to either file meanwhile. Reads no data; keeps two batches of extents in
/// memory besides the result.
pub fn changed(base: &File, now: &File) -> Result<Vec<Range<u64>>> {
    let size = |file: &File| {
        file.metadata()
            .map(|m| m.len())
            .context(|| "failed to stat a clone")
    };
    let (base_size, now_size) = (size(base)?, size(now)?);
    differing(Extents::of(base), base_size, Extents::of(now), now_size)
        .context(|| "failed to list the extents of a clone")
}
