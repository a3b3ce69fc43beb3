//! Is this page what the server wrote, and in the place it was written for?
//!
//! ```text
//! full_crc32             CRC-32C of [0, n-4) in the last 4 bytes; n = page size, or the length that
//!                        a page-compressed page keeps in its type field (bit 15 set, then n / 256)
//! crc32                  CRC-32C of [4, 26) xor CRC-32C of [38, n-8), at 0 and at n-8
//! innodb                 fold of [4, 26) plus fold of [38, n-8), at 0; fold of [0, 26) at n-8
//! none                   0xdeadbeef at 0 and at n-8
//! ROW_FORMAT=COMPRESSED  [4, 16), [24, 26) and [34, n), at 0: CRC-32C of each, xored; or one
//!                        Adler-32 started at 0; or 0xdeadbeef
//! ```
//!
//! Bits that no checksum of the format covers, and that no other check here does:
//! - crc32, innodb: [26, 34), the flush LSN or key version
//! - ROW_FORMAT=COMPRESSED: [16, 24), the LSN, and [26, 34)
//! - MariaDB encrypted, not full_crc32: [0, 4), [26, 30) and the four bytes at n-8 (all eight when
//!   page-compressed); with ROW_FORMAT=COMPRESSED [0, 4), [16, 24) and [26, 30)
//! - full_crc32 page-compressed: everything behind the stored length

mod algorithms;
mod classic;
pub(crate) mod full_crc32;
mod stray;
mod verdict;

pub use stray::has_stray_bits;
pub use verdict::{Verdict, Why};

use crate::space::{ChecksumKind, SpaceFormat};
use verdict::corrupt;

/// Checks one page. `page` is all of it ([`SpaceFormat::physical_size`] bytes), `page_no` its
/// number in the tablespace: its offset in the file divided by that size, plus the pages of the
/// files before it where the system tablespace has several.
#[must_use]
pub fn verify(page: &[u8], page_no: u32, format: &SpaceFormat) -> Verdict {
    if page.len() != format.physical_size() {
        return corrupt(0, 0, Why::Length(page.len()));
    }
    match format.checksum {
        ChecksumKind::FullCrc32 => full_crc32::verify(page, page_no, format),
        ChecksumKind::Classic => classic::verify(page, page_no, format),
    }
}

#[cfg(test)]
mod tests;
