//! The header that every InnoDB page begins with, and what the page types mean.
//!
//! ```text
//! offset size
//!      0    4  checksum (full_crc32 pages: key version, 0 = not encrypted)
//!      4    4  page number
//!      8    4  previous page of the same level, or 0xffffffff
//!     12    4  next page of the same level, or 0xffffffff
//!     16    8  LSN of the last change
//!     24    2  page type
//!     26    8  flush LSN, key version or compression header, by page type and server
//!     34    4  tablespace id
//!     38    …  contents; an index page keeps its index id at 38 + 28
//!     -8    8  checksum and low half of the LSN (full_crc32: LSN half, then CRC-32C)
//! ```

use std::fmt;

/// Where the page number is.
pub(crate) const PAGE_NO: usize = 4;
/// Where the LSN is.
pub(crate) const LSN: usize = 16;
/// Where the page type is.
pub(crate) const TYPE: usize = 24;
/// Where MariaDB keeps the key version outside of full_crc32, MySQL its compression header.
pub(crate) const KEY_VERSION: usize = 26;
/// Where the tablespace id is.
pub(crate) const SPACE_ID: usize = 34;
/// Where the contents begin.
pub(crate) const DATA: usize = 38;
/// How long the trailer is.
pub(crate) const TRAILER: usize = 8;
/// Where an index page keeps its index id: 28 bytes into the contents.
pub(crate) const INDEX_ID: usize = DATA + 28;
/// "No page" in the previous and next fields.
pub(crate) const NO_PAGE: u32 = u32::MAX;

/// An `innodb_page_size`: 4, 8, 16, 32 or 64 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageSize(u32);

impl PageSize {
    /// The size that servers use when nobody says otherwise.
    pub const DEFAULT: Self = Self(16384);

    /// Returns the page size of so many bytes, if InnoDB has it.
    #[must_use]
    pub const fn new(bytes: u32) -> Option<Self> {
        match bytes {
            4096 | 8192 | 16384 | 32768 | 65536 => Some(Self(bytes)),
            _ => None,
        }
    }

    /// Returns the page size that tablespace flags encode as `512 << shift`.
    pub(crate) const fn from_shift(shift: u32) -> Option<Self> {
        match shift {
            3..=7 => Some(Self(512 << shift)),
            _ => None,
        }
    }

    /// Returns the size in bytes.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        self.0
    }

    /// Returns how many pages an extent has: 1 MiB up to 16 KiB pages, then 64 pages.
    #[must_use]
    pub const fn extent_pages(self) -> u32 {
        if self.0 <= 16384 {
            (1 << 20) / self.0
        } else {
            64
        }
    }
}

/// The type field of a page header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PageType(pub u16);

impl PageType {
    /// Allocated and never used since, or freed and zeroed.
    pub const ALLOCATED: Self = Self(0);
    /// An undo log page.
    pub const UNDO: Self = Self(2);
    /// File segments.
    pub const INODE: Self = Self(3);
    /// The change buffer's free list.
    pub const IBUF_FREE_LIST: Self = Self(4);
    /// The change buffer's bitmap.
    pub const IBUF_BITMAP: Self = Self(5);
    /// A system page.
    pub const SYS: Self = Self(6);
    /// The transaction system's page: page 5 of the system tablespace.
    pub const TRX_SYS: Self = Self(7);
    /// The first page of a tablespace.
    pub const FSP_HDR: Self = Self(8);
    /// Extent descriptors.
    pub const XDES: Self = Self(9);
    /// MySQL: transparently compressed.
    pub const MYSQL_COMPRESSED: Self = Self(14);
    /// MySQL: encrypted.
    pub const MYSQL_ENCRYPTED: Self = Self(15);
    /// MySQL: compressed, then encrypted.
    pub const MYSQL_COMPRESSED_ENCRYPTED: Self = Self(16);
    /// MySQL: an encrypted R-tree page.
    pub const MYSQL_ENCRYPTED_RTREE: Self = Self(17);
    /// MariaDB: the root of an index with instant ALTER TABLE metadata.
    pub const INSTANT: Self = Self(18);
    /// MySQL 8.0: serialized dictionary information.
    pub const SDI: Self = Self(17853);
    /// An R-tree node.
    pub const RTREE: Self = Self(17854);
    /// A B-tree node.
    pub const INDEX: Self = Self(17855);
    /// MariaDB without full_crc32: page-compressed.
    pub const MARIADB_COMPRESSED: Self = Self(34354);
    /// MariaDB without full_crc32: page-compressed, then encrypted.
    pub const MARIADB_COMPRESSED_ENCRYPTED: Self = Self(37401);

    /// Returns whether the page is a node of an index, so that it carries an index id.
    #[must_use]
    pub fn is_index(self) -> bool {
        matches!(self, Self::INDEX | Self::RTREE | Self::SDI | Self::INSTANT)
    }
}

impl fmt::Display for PageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Self::ALLOCATED => "allocated",
            Self::UNDO => "undo log",
            Self::INODE => "file segments",
            Self::IBUF_FREE_LIST => "change buffer free list",
            Self::IBUF_BITMAP => "change buffer bitmap",
            Self::SYS => "system",
            Self::TRX_SYS => "transaction system",
            Self::FSP_HDR => "tablespace header",
            Self::XDES => "extent descriptors",
            Self(10..=12) => "large column",
            Self::MYSQL_COMPRESSED | Self::MARIADB_COMPRESSED => "compressed",
            Self::MYSQL_ENCRYPTED | Self::MYSQL_ENCRYPTED_RTREE => "encrypted",
            Self::MYSQL_COMPRESSED_ENCRYPTED | Self::MARIADB_COMPRESSED_ENCRYPTED => {
                "compressed and encrypted"
            }
            Self::INSTANT | Self::INDEX => "index",
            Self::SDI => "dictionary",
            Self::RTREE => "spatial index",
            Self(other) => return write!(f, "type {other}"),
        };
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_innodb_page_sizes() {
        assert_eq!(PageSize::new(16384), Some(PageSize::DEFAULT));
        assert_eq!(PageSize::new(2048), None);
        assert_eq!(PageSize::new(12288), None);
        assert_eq!(PageSize::from_shift(7), PageSize::new(65536));
        assert_eq!(PageSize::from_shift(8), None);
    }

    #[test]
    fn extents_are_one_mebibyte_then_64_pages() {
        let pages = |bytes| PageSize::new(bytes).unwrap().extent_pages();
        assert_eq!([pages(4096), pages(16384), pages(65536)], [256, 64, 64]);
    }
}
