//! What the header of an InnoDB page says.

use crate::bytes::{be16, be32, be64};
use crate::checksum::full_crc32::is_hidden;
use crate::page::{INDEX_ID, KEY_VERSION, LSN, NO_PAGE, PAGE_NO, PageType, SPACE_ID, TYPE};
use crate::space::{ChecksumKind, SpaceFormat};

/// What a page header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageHeader {
    /// The checksum field at offset 0 (full_crc32: the key version).
    pub checksum: u32,
    /// The page's number in its tablespace.
    pub page_no: u32,
    /// The page before it on the same level of its index.
    pub prev: Option<u32>,
    /// The page after it on the same level of its index.
    pub next: Option<u32>,
    /// The LSN of its last change.
    pub lsn: u64,
    /// What it holds. A page-compressed full_crc32 page keeps its length here instead.
    pub page_type: PageType,
    /// The id of its tablespace, where compression or encryption does not hide it.
    pub space_id: Option<u32>,
    /// The index that it belongs to, when it is an index page that is neither compressed nor
    /// encrypted.
    pub index_id: Option<u64>,
}

impl PageHeader {
    /// Reads the header of a page; nothing if there are too few bytes for one.
    #[must_use]
    pub fn read(page: &[u8], format: &SpaceFormat) -> Option<Self> {
        if page.len() < INDEX_ID + 8 {
            return None;
        }
        let page_type = PageType(be16(page, TYPE));
        let full_crc32 = format.checksum == ChecksumKind::FullCrc32;
        let hidden = full_crc32 && is_hidden(page);
        let encrypted = !full_crc32 && format.encrypted && be32(page, KEY_VERSION) != 0;
        let link = |at| Some(be32(page, at)).filter(|no| *no != NO_PAGE);
        Some(Self {
            checksum: be32(page, 0),
            page_no: be32(page, PAGE_NO),
            prev: link(8),
            next: link(12),
            lsn: be64(page, LSN),
            page_type,
            space_id: (!hidden).then(|| be32(page, SPACE_ID)),
            index_id: (page_type.is_index() && !hidden && !encrypted).then(|| be64(page, INDEX_ID)),
        })
    }
}
