//! What a page is for, derived from its type and its tablespace: the same number means one thing to
//! MariaDB and another to MySQL.

use crate::bytes::be16;
use crate::checksum::full_crc32::is_hidden;
use crate::page::{PageType, TYPE};
use crate::space::{ChecksumKind, SpaceFormat};

/// What a page is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageKind {
    /// A node of a B-tree: of the rows, or of a secondary index.
    Index,
    /// A node of a spatial index.
    SpatialIndex,
    /// A part of a value that does not fit into its row.
    LargeColumn,
    /// Undo log, and the lists of undo logs.
    Undo,
    /// Which pages are in use, and by what.
    Allocation,
    /// Changes to secondary indexes that wait to be made.
    ChangeBuffer,
    /// The dictionary that MySQL 8.0 keeps in each tablespace.
    Dictionary,
    /// The transaction system and the roots of InnoDB's own dictionary.
    System,
    /// Allocated and not used.
    Allocated,
    /// Page-compressed, so that what is inside does not show.
    Compressed,
    /// Encrypted, so that what is inside does not show.
    Encrypted,
    /// A type that this program does not know.
    Unknown,
}

/// How many kinds there are, for counting by [`PageKind::number`].
pub const KINDS: usize = 12;

impl PageKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; KINDS] = [
        Self::Index,
        Self::SpatialIndex,
        Self::LargeColumn,
        Self::Undo,
        Self::Allocation,
        Self::ChangeBuffer,
        Self::Dictionary,
        Self::System,
        Self::Allocated,
        Self::Compressed,
        Self::Encrypted,
        Self::Unknown,
    ];

    /// Tells what a page is for; all of the page's header must be there.
    #[must_use]
    pub fn of(page: &[u8], format: &SpaceFormat) -> Self {
        if format.checksum == ChecksumKind::FullCrc32 && is_hidden(page) {
            return match be16(page, TYPE) >> 15 {
                0 => Self::Encrypted,
                _ => Self::Compressed,
            };
        }
        Self::of_type(PageType(be16(page, TYPE)), format.has_dictionary())
    }

    /// Tells it from the type; `is_mysql_8` for a tablespace that carries its own dictionary.
    #[must_use]
    pub fn of_type(page_type: PageType, is_mysql_8: bool) -> Self {
        match page_type {
            PageType::INDEX => Self::Index,
            PageType::RTREE => Self::SpatialIndex,
            PageType::SDI => Self::Dictionary,
            PageType(18 | 19) if is_mysql_8 => Self::Dictionary,
            PageType::INSTANT => Self::Index,
            PageType(10..=12 | 22..=29) => Self::LargeColumn,
            PageType::UNDO | PageType(21) => Self::Undo,
            PageType::FSP_HDR | PageType::XDES | PageType::INODE => Self::Allocation,
            PageType::IBUF_FREE_LIST | PageType::IBUF_BITMAP => Self::ChangeBuffer,
            PageType::SYS | PageType::TRX_SYS => Self::System,
            PageType::ALLOCATED => Self::Allocated,
            PageType::MYSQL_COMPRESSED | PageType::MARIADB_COMPRESSED => Self::Compressed,
            PageType::MYSQL_ENCRYPTED
            | PageType::MYSQL_COMPRESSED_ENCRYPTED
            | PageType::MYSQL_ENCRYPTED_RTREE
            | PageType::MARIADB_COMPRESSED_ENCRYPTED => Self::Encrypted,
            _ => Self::Unknown,
        }
    }

    /// Returns its place in [`PageKind::ALL`].
    #[must_use]
    pub fn number(self) -> usize {
        self as usize
    }

    /// Returns its name, as JSON has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::SpatialIndex => "spatial-index",
            Self::LargeColumn => "large-column",
            Self::Undo => "undo",
            Self::Allocation => "allocation",
            Self::ChangeBuffer => "change-buffer",
            Self::Dictionary => "dictionary",
            Self::System => "system",
            Self::Allocated => "allocated",
            Self::Compressed => "compressed",
            Self::Encrypted => "encrypted",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back() {
        for (number, kind) in PageKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.number(), number, "{}", kind.name());
        }
    }

    #[test]
    fn one_type_means_two_things() {
        assert_eq!(PageKind::of_type(PageType(18), false), PageKind::Index);
        assert_eq!(PageKind::of_type(PageType(18), true), PageKind::Dictionary);
    }
}
