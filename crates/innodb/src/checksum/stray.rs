//! Bits that no checksum covers, and that every server leaves zero: a set one was not written by it.

use super::verdict::is_doublewrite;
use crate::bytes::{be16, be32};
use crate::page::{KEY_VERSION, PageType, TYPE};
use crate::space::{ChecksumKind, SpaceFormat};

/// Returns whether the eight bytes of a sound page that its checksum leaves out ([26, 34)) hold
/// something that no server puts there. Harmless: no server reads them there either.
///
/// They are used on page 0 of the system tablespace (flush LSN), by spatial indexes (split
/// sequence), by compression (of either kind) and by encryption.
#[must_use]
pub fn has_stray_bits(page: &[u8], page_no: u32, format: &SpaceFormat) -> bool {
    if format.checksum == ChecksumKind::FullCrc32 {
        return false;
    }
    if be32(page, KEY_VERSION) == 0 && be32(page, KEY_VERSION + 4) == 0 {
        return false;
    }
    let is_used = format.encrypted
        || format.page_compressed
        || format.zip_size.is_some()
        || format.space_id == 0 && (page_no == 0 || is_doublewrite(page_no, format))
        || matches!(
            PageType(be16(page, TYPE)),
            PageType::RTREE
                | PageType::MYSQL_COMPRESSED
                | PageType::MYSQL_ENCRYPTED
                | PageType::MYSQL_COMPRESSED_ENCRYPTED
                | PageType::MYSQL_ENCRYPTED_RTREE
        );
    !is_used
}
