//! What page 0 of a tablespace says about the pages that follow.
//!
//! ```text
//! offset 38  tablespace id         46  size in pages         54  flags
//!
//! flags, MariaDB full_crc32 (bit 4 set: no older format sets it)
//!   0–3 page size, 512 << n   4 marker   5–7 page_compressed algorithm   rest 0
//! flags, all other servers
//!   0 post-antelope   1–4 ROW_FORMAT=COMPRESSED page size, 512 << n   5 long columns off page
//!   6–9 page size, 512 << n, 0 = 16 KiB   10 data directory   11 shared   12 temporary
//!   13 encrypted (MySQL)   14 SDI (MySQL 8.0)   16 page_compressed (MariaDB)   rest 0
//! ```

mod guess;
mod read;

pub(crate) use read::read_up_to;

use crate::bytes::{be16, be32};
use crate::doublewrite::Area;
use crate::page::{DATA, PAGE_NO, PageSize, PageType, SPACE_ID, TYPE};

const SIZE: usize = DATA + 8;
const FLAGS: usize = DATA + 16;
const FULL_CRC32_MARKER: u32 = 1 << 4;
/// Flag bits that no known server sets.
const UNKNOWN_BITS: u32 = !0x1_7fff;
const ENCRYPTED_BIT: u32 = 1 << 13;
const SDI_BIT: u32 = 1 << 14;
const PAGE_COMPRESSED_BIT: u32 = 1 << 16;
/// MariaDB marks the encryption data that it keeps in page 0 with these bytes.
const CRYPT_MAGIC: &[u8; 6] = b"s\x0e\x0cREt";

/// How pages of a tablespace are checksummed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChecksumKind {
    /// MariaDB's full_crc32: CRC-32C over everything, in the last four bytes.
    FullCrc32,
    /// Everybody else: the algorithm may differ from page to page (crc32, innodb, none).
    Classic,
}

/// What is needed to check the pages of one tablespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpaceFormat {
    /// The tablespace's id; 0 is the system tablespace.
    pub space_id: u32,
    /// The flags as stored.
    pub flags: u32,
    /// How many pages the tablespace has, by its own account.
    pub size_pages: u32,
    /// `innodb_page_size` of the server that made it.
    pub page_size: PageSize,
    /// ROW_FORMAT=COMPRESSED: the size of a page on disk, in bytes.
    pub zip_size: Option<u32>,
    /// How its pages are checksummed.
    pub checksum: ChecksumKind,
    /// Whether its pages are, or may be, encrypted.
    pub encrypted: bool,
    /// Whether its pages may be compressed by MariaDB's PAGE_COMPRESSED=1. MySQL's
    /// COMPRESSION='…' leaves no mark here: only each page says so.
    pub page_compressed: bool,
    /// System tablespace: where the doublewrite area is, whose pages belong to other places.
    pub doublewrite: Option<Area>,
}

/// What could be made of a file's first page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// Its pages can be checked.
    Checkable(SpaceFormat),
    /// They cannot, for this reason.
    NotCheckable(&'static str),
}

impl SpaceFormat {
    /// Reads the first page of a tablespace. The first 4 KiB are enough, unless MariaDB's
    /// encryption without full_crc32 is in use: then give all of the page.
    #[must_use]
    pub fn parse(page0: &[u8]) -> Probe {
        if page0.len() < 1024 {
            return Probe::NotCheckable("shorter than any InnoDB page");
        }
        if crate::bytes::all_zero(&page0[..1024]) {
            return Probe::NotCheckable("the first page was never written");
        }
        if be32(page0, PAGE_NO) != 0 {
            return Probe::NotCheckable(
                "its first page is not page 0: it is a later file of a tablespace, or damaged",
            );
        }
        if be16(page0, TYPE) != PageType::FSP_HDR.0 {
            return Probe::NotCheckable("its first page is not a tablespace header");
        }
        if be32(page0, DATA) != be32(page0, SPACE_ID) {
            return Probe::NotCheckable("its first page gives two different tablespace ids");
        }
        let flags = be32(page0, FLAGS);
        let read = if flags & FULL_CRC32_MARKER != 0 {
            read_full_crc32(flags)
        } else {
            read_classic(flags)
        };
        let Some(mut format) = read else {
            return Probe::NotCheckable(
                "unknown tablespace flags: a newer format, or a damaged first page",
            );
        };
        format.space_id = be32(page0, DATA);
        format.size_pages = be32(page0, SIZE);
        format.encrypted |= has_crypt_data(page0, &format);
        Probe::Checkable(format)
    }

    /// Returns the size of one page on disk, in bytes.
    #[must_use]
    pub fn physical_size(&self) -> usize {
        self.zip_size.unwrap_or(self.page_size.bytes()) as usize
    }

    /// Returns whether the tablespace carries its own dictionary, as MySQL 8.0 made them.
    #[must_use]
    pub fn has_dictionary(&self) -> bool {
        self.checksum == ChecksumKind::Classic && self.flags & SDI_BIT != 0
    }
}

/// Reads full_crc32 flags; nothing if a bit is set that has no meaning.
fn read_full_crc32(flags: u32) -> Option<SpaceFormat> {
    let algorithm = flags >> 5;
    if algorithm > 6 {
        return None;
    }
    Some(SpaceFormat {
        space_id: 0,
        flags,
        size_pages: 0,
        page_size: PageSize::from_shift(flags & 15)?,
        zip_size: None,
        checksum: ChecksumKind::FullCrc32,
        encrypted: false,
        page_compressed: algorithm != 0,
        doublewrite: None,
    })
}

/// Reads all other flags; nothing if they contradict themselves or a bit has no meaning.
fn read_classic(flags: u32) -> Option<SpaceFormat> {
    let post_antelope = flags & 1 != 0;
    let zip_shift = flags >> 1 & 15;
    let long_columns = flags & 1 << 5 != 0;
    let page_shift = flags >> 6 & 15;
    let page_size = match page_shift {
        0 => PageSize::DEFAULT,
        // 16 KiB has one spelling: 0.
        5 => return None,
        shift => PageSize::from_shift(shift)?,
    };
    let zip_size = (zip_shift != 0).then(|| 512 << zip_shift);
    let contradiction = flags & UNKNOWN_BITS != 0
        || long_columns && !post_antelope
        || zip_size.is_some_and(|size| !long_columns || size > page_size.bytes().min(16384));
    (!contradiction).then_some(SpaceFormat {
        space_id: 0,
        flags,
        size_pages: 0,
        page_size,
        zip_size,
        checksum: ChecksumKind::Classic,
        encrypted: flags & ENCRYPTED_BIT != 0,
        page_compressed: flags & PAGE_COMPRESSED_BIT != 0,
        doublewrite: None,
    })
}

/// Returns whether MariaDB keeps encryption data behind the extent descriptors of page 0.
fn has_crypt_data(page0: &[u8], format: &SpaceFormat) -> bool {
    let at = crypt_data_offset(format);
    page0.get(at..at + CRYPT_MAGIC.len()) == Some(CRYPT_MAGIC)
}

/// Returns where MariaDB would keep it: the server adds the 38 bytes of the page header twice.
fn crypt_data_offset(format: &SpaceFormat) -> usize {
    let extent = format.page_size.extent_pages() as usize;
    let descriptor = 24 + extent * 2 / 8;
    DATA + 150 + format.physical_size() / extent * descriptor
}

#[cfg(test)]
mod tests;
