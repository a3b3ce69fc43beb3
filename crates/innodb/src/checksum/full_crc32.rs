//! Pages of MariaDB's full_crc32 tablespaces.

use super::algorithms::full_crc32;
use super::verdict::{DOUBLEWRITE, Verdict, Why, corrupt, is_doublewrite};
use crate::bytes::{all_zero, be16, be32};
use crate::page::{DATA, LSN, PAGE_NO, SPACE_ID, TYPE};
use crate::space::SpaceFormat;

/// Set in the type field of a page-compressed page.
const COMPRESSED_MARKER: u16 = 1 << 15;

pub(super) fn verify(page: &[u8], page_no: u32, format: &SpaceFormat) -> Verdict {
    let page_type = be16(page, TYPE);
    let compressed = page_type & COMPRESSED_MARKER != 0;
    let length = if compressed {
        usize::from(page_type & !COMPRESSED_MARKER) << 8
    } else {
        page.len()
    };
    if compressed && !(DATA + 4..page.len()).contains(&length) {
        return doubtful(page_no, format, corrupt(0, 0, Why::Header));
    }
    let (body, stored) = (&page[..length - 4], be32(page, length - 4));
    if stored == 0 && all_zero(page) {
        return Verdict::Empty;
    }
    let computed = full_crc32(body);
    let bad = |why| doubtful(page_no, format, corrupt(stored, computed, why));
    if stored != computed {
        return bad(Why::Checksum);
    }
    if be32(page, PAGE_NO) != page_no {
        return bad(Why::PageNumber(be32(page, PAGE_NO)));
    }
    if is_hidden(page) {
        return Verdict::Good;
    }
    if be32(page, LSN + 4) != be32(page, length - 8) {
        return bad(Why::TornLsn);
    }
    if be32(page, SPACE_ID) != format.space_id {
        return bad(Why::SpaceId(be32(page, SPACE_ID)));
    }
    Verdict::Good
}

/// Returns whether everything from byte 26 on is compressed or encrypted (byte 0 then holds the
/// key version), the tablespace id among it.
pub(crate) fn is_hidden(page: &[u8]) -> bool {
    be32(page, 0) != 0 || be16(page, TYPE) & COMPRESSED_MARKER != 0
}

/// Turns a bad verdict into "left alone" for pages of the doublewrite area.
#[cold]
fn doubtful(page_no: u32, format: &SpaceFormat, bad: Verdict) -> Verdict {
    if is_doublewrite(page_no, format) {
        DOUBLEWRITE
    } else {
        bad
    }
}
