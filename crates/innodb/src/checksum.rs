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

pub use stray::has_stray_bits;

use crate::space::{ChecksumKind, SpaceFormat};
use std::fmt;

/// What was found out about one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The page is what the server wrote.
    Good,
    /// All bytes are zero: the page was never written, or freed and punched out.
    Empty,
    /// The page is damaged or in the wrong place.
    Corrupt {
        /// The checksum in the page.
        stored: u32,
        /// The checksum that its bytes have.
        computed: u32,
        /// What is wrong.
        why: Why,
    },
    /// The page carries nothing that could be checked without the server's keys or codecs, and
    /// what its header does say is right.
    Unchecked(&'static str),
}

impl Verdict {
    /// Returns whether the page is damaged or in the wrong place.
    #[must_use]
    pub fn is_corrupt(&self) -> bool {
        matches!(self, Self::Corrupt { .. })
    }
}

/// What is wrong with a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The checksum does not match the bytes.
    Checksum,
    /// Header and trailer carry different LSNs: two versions of the page in one (torn write).
    TornLsn,
    /// The page says that it is this other page: it was written in the wrong place.
    PageNumber(u32),
    /// The page says that it belongs to this other tablespace.
    SpaceId(u32),
    /// The page header contradicts itself.
    Header,
    /// There are only so many bytes: the file ends inside the page.
    Length(usize),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checksum => f.write_str("the checksum does not match"),
            Self::TornLsn => f.write_str("header and trailer have different LSNs"),
            Self::PageNumber(found) => write!(f, "it says it is page {found}"),
            Self::SpaceId(found) => write!(f, "it says it belongs to tablespace {found}"),
            Self::Header => f.write_str("its header contradicts itself"),
            Self::Length(got) => write!(f, "it ends after {got} bytes"),
        }
    }
}

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

/// Why pages of the doublewrite area are left alone.
const DOUBLEWRITE: Verdict =
    Verdict::Unchecked("a copy in the doublewrite area, legal in any state");

/// Returns whether the page is in the doublewrite area, where it belongs to another place.
fn is_doublewrite(page_no: u32, format: &SpaceFormat) -> bool {
    format
        .doublewrite
        .is_some_and(|area| area.contains(page_no))
}

/// Makes a bad verdict.
fn corrupt(stored: u32, computed: u32, why: Why) -> Verdict {
    Verdict::Corrupt {
        stored,
        computed,
        why,
    }
}

#[cfg(test)]
mod tests;
