//! The checksums themselves.

use crc32c::crc32c;

/// What `innodb_checksum_algorithm=none` writes in place of a checksum.
pub(super) const NO_CHECKSUM: u32 = 0xdead_beef;

/// Returns the crc32 checksum of an ordinary page.
#[inline]
pub(super) fn crc32(page: &[u8]) -> u32 {
    crc32c(&page[4..26]) ^ crc32c(&page[38..page.len() - 8])
}

/// Returns the crc32 checksum of a ROW_FORMAT=COMPRESSED page.
#[inline]
pub(super) fn crc32_zip(page: &[u8]) -> u32 {
    crc32c(&page[4..16]) ^ crc32c(&page[24..26]) ^ crc32c(&page[34..])
}

/// Returns the full_crc32 checksum of these bytes.
#[inline]
pub(super) fn full_crc32(bytes: &[u8]) -> u32 {
    crc32c(bytes)
}

/// Returns the `innodb` checksum that goes into the header.
pub(super) fn fold_header(page: &[u8]) -> u32 {
    fold(&page[4..26]).wrapping_add(fold(&page[38..page.len() - 8]))
}

/// Returns the `innodb` checksum that goes into the trailer.
pub(super) fn fold_trailer(page: &[u8]) -> u32 {
    fold(&page[..26])
}

/// Folds bytes into a number, each step undoable, so that one changed bit always shows.
fn fold(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0_u32, |sum, byte| {
        let byte = u32::from(*byte);
        let mixed = ((sum ^ byte ^ 1_653_893_711) << 8).wrapping_add(sum) ^ 1_463_735_687;
        mixed.wrapping_add(byte)
    })
}

/// Returns the `innodb` checksum of a ROW_FORMAT=COMPRESSED page.
pub(super) fn adler32_zip(page: &[u8]) -> u32 {
    // Started at 0, not at 1 as zlib does by default.
    let start = adler32(0, &page[4..16]);
    let start = adler32(start, &page[24..26]);
    adler32(start, &page[34..])
}

/// Continues an Adler-32.
fn adler32(start: u32, bytes: &[u8]) -> u32 {
    let (mut a, mut b) = (start & 0xffff, start >> 16);
    // 5552 is how many bytes fit before `b` overflows 32 bits.
    for chunk in bytes.chunks(5552) {
        for byte in chunk {
            a += u32::from(*byte);
            b += a;
        }
        a %= 65521;
        b %= 65521;
    }
    b << 16 | a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adler_of_wikipedia() {
        assert_eq!(adler32(1, b"Wikipedia"), 0x11e6_0398);
        let long = vec![255; 20000];
        let whole = adler32(1, &long);
        assert_eq!(adler32(adler32(1, &long[..7777]), &long[7777..]), whole);
    }

    #[test]
    fn crc_of_the_standard_check_string() {
        assert_eq!(full_crc32(b"123456789"), 0xe306_9283);
    }
}
