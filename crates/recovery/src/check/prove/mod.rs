//! Is this copy the version that a damaged page was?
//!
//! A page carries its LSN twice and, unless configured otherwise, a checksum of all its bytes: at its
//! beginning and at its end. Damage that spares one of the ends leaves there the LSN and the checksum of
//! the page *as it was written*. A sound copy with the same LSN and the same checksum holds the same
//! bytes. So it is exactly what the page was, and right in its place whatever the log holds: the log was
//! right for that version, and nothing else changes.
//!
//! The other end must not speak of a newer version. After an interrupted or lost write one part of a page
//! is of one version and one of another, and only the newer one is right.
//!
//! What proves nothing: that the copy is of the newest generation; that a page was not changed as
//! far as the pages beside it show; an LSN alone, for two servers that were one may both have it.

use evenkeel_innodb::{ChecksumKind, SpaceFormat};

/// Bytes of the header that every page has.
const HEADER: usize = 38;
const TRAILER: usize = 8;
const PAGE_COMPRESSED: u16 = 1 << 15;
/// What stands in place of a checksum when there is none.
const NO_CHECKSUM: u32 = 0xdead_beef;

/// Returns what proves that `copy`, a sound page, is the version that `damaged` was, or why nothing
/// does.
pub(super) fn prove(
    damaged: &[u8],
    copy: &[u8],
    format: &SpaceFormat,
) -> Result<&'static str, String> {
    if damaged.len() != copy.len() || copy.len() < 1024 {
        return Err("the page is missing, so its version is not known".to_owned());
    }
    let end = used(copy, format);
    let ends = Ends {
        damaged: &damaged[..end],
        copy: &copy[..end],
        format,
    };
    let body = HEADER..end - TRAILER;
    let same_body = damaged[body.clone()] == copy[body];
    if ends.first_proves() && (same_body || ends.last_is_no_newer()) {
        return Ok("the damaged page's header has the LSN and the checksum of this copy");
    }
    if ends.last_proves() && (same_body || ends.first_is_no_newer()) {
        return Ok("the damaged page's trailer has the LSN and the checksum of this copy");
    }
    Err(ends.why_not())
}

/// How many bytes of a page count.
fn used(copy: &[u8], format: &SpaceFormat) -> usize {
    let page_type = u16::from_be_bytes([copy[24], copy[25]]);
    if format.checksum == ChecksumKind::FullCrc32 && page_type & PAGE_COMPRESSED != 0 {
        let length = usize::from(page_type & !PAGE_COMPRESSED) << 8;
        return length.clamp(HEADER + TRAILER, copy.len());
    }
    copy.len()
}

/// The two ends of a page and of its copy.
struct Ends<'a> {
    damaged: &'a [u8],
    copy: &'a [u8],
    format: &'a SpaceFormat,
}

impl Ends<'_> {
    fn is_full_crc32(&self) -> bool {
        self.format.checksum == ChecksumKind::FullCrc32
    }

    fn has_trailer(&self) -> bool {
        self.format.zip_size.is_none()
    }

    /// The header has a checksum of everything, unless the format has it at the end only.
    fn first_proves(&self) -> bool {
        !self.is_full_crc32()
            && number(self.copy, 0) != NO_CHECKSUM
            && self.damaged[..HEADER] == self.copy[..HEADER]
    }

    /// The trailer has it in full_crc32, and with crc32, which writes the same one at both ends.
    fn last_proves(&self) -> bool {
        let at = self.copy.len() - TRAILER;
        let sums_everything = self.is_full_crc32()
            || self.has_trailer()
                && number(self.copy, at) == number(self.copy, 0)
                && number(self.copy, 0) != NO_CHECKSUM;
        sums_everything && self.damaged[at..] == self.copy[at..]
    }

    fn first_is_no_newer(&self) -> bool {
        lsn(self.damaged) <= lsn(self.copy)
    }

    fn last_is_no_newer(&self) -> bool {
        if !self.has_trailer() {
            return true;
        }
        // The trailer has the low half only: whichever is less than half the way round is newer.
        let (damaged, copy) = (self.low(self.damaged), self.low(self.copy));
        damaged == copy || damaged.wrapping_sub(copy) > u32::MAX / 2
    }

    /// The half of the LSN in a trailer.
    fn low(&self, page: &[u8]) -> u32 {
        let behind = if self.is_full_crc32() { 8 } else { 4 };
        number(page, page.len() - behind)
    }

    fn why_not(&self) -> String {
        let (was, has) = (lsn(self.damaged), lsn(self.copy));
        let agree = !self.has_trailer() || self.low(self.damaged) == was as u32;
        match was.cmp(&has) {
            std::cmp::Ordering::Greater if agree => format!(
                "the page was changed since: its LSN is {was}, the copy's is {has}, and no log \
                 has the changes between them"
            ),
            std::cmp::Ordering::Less if agree && was != 0 => format!(
                "the copy (LSN {has}) is newer than the page (LSN {was}): it comes from a different history of the server"
            ),
            _ => format!(
                "the damaged page does not show its version: neither its header nor its trailer \
                 has the LSN {has} and the checksum of the copy"
            ),
        }
    }
}

fn number(page: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]])
}

fn lsn(page: &[u8]) -> u64 {
    super::judge::lsn(page)
}

#[cfg(test)]
mod tests;
