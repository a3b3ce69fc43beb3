//! A tablespace whose first page is damaged: its former contents, derived from the pages after it.

use super::{
    FULL_CRC32_MARKER, SpaceFormat, crypt_data_offset, has_crypt_data, read_classic,
    read_full_crc32,
};
use crate::bytes::{be16, be32};
use crate::checksum::{Verdict, verify};
use crate::page::{PAGE_NO, SPACE_ID};

/// Where the tablespace's own header has its number.
const HEADER_SPACE_ID: usize = 38;
/// How many pages are tried.
const TRIED: usize = 32;
/// Flags of the tablespaces that servers make when nobody says otherwise.
const USUAL: [u32; 5] = [0x15, 0x21, 0x4021, 0, 1];

impl SpaceFormat {
    /// Finds the format under which most of the pages behind the first one are sound. `start` is
    /// the beginning of the file, a few hundred KiB of it. Nothing if none fits two pages.
    #[must_use]
    pub fn guess(start: &[u8]) -> Option<Self> {
        let stored = start.get(super::FLAGS..super::FLAGS + 4)?;
        let stored = be32(stored, 0);
        // One flipped bit is the likeliest damage.
        let flipped = (0..32).map(|bit| stored ^ 1 << bit);
        let tried = std::iter::once(stored).chain(flipped).chain(USUAL);
        let fitting = tried.filter_map(|flags| Self::fitting(flags, start));
        // Of equal ones the first: it is nearer to what is stored.
        let best = fitting.reduce(|best, one| if one.0 > best.0 { one } else { best });
        best.map(|(_, format)| format)
    }

    /// Returns how many pages are sound under these flags, and the format.
    fn fitting(flags: u32, start: &[u8]) -> Option<(usize, Self)> {
        let mut format = match flags & FULL_CRC32_MARKER {
            0 => read_classic(flags)?,
            _ => read_full_crc32(flags)?,
        };
        if format.zip_size.is_some() && format.page_compressed {
            // No server does both.
            return None;
        }
        let size = format.physical_size();
        let behind = || start.chunks_exact(size).zip(0_u32..).skip(1).take(TRIED);
        let numbered =
            behind().find(|(page, no)| be32(page, PAGE_NO) == *no && be16(page, 24) != 0);
        // The first page says it twice. Behind it, encryption and compression may cover it.
        let said = (be32(start, SPACE_ID), be32(start, HEADER_SPACE_ID));
        format.space_id = match said.0 == said.1 {
            true => said.0,
            false => be32(numbered?.0, SPACE_ID),
        };
        if start.len() > crypt_data_offset(&format) + 6 {
            format.encrypted |= has_crypt_data(start, &format);
        }
        let sound = |(page, no): &(&[u8], u32)| {
            matches!(
                verify(page, *no, &format),
                Verdict::Good | Verdict::Unchecked(_)
            )
        };
        let count = behind().filter(sound).count();
        (count >= 2).then_some((count, format))
    }
}
