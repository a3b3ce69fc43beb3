//! Pages of MySQL, and of MariaDB without full_crc32.

use super::algorithms::{NO_CHECKSUM, adler32_zip, crc32, crc32_zip, fold_header, fold_trailer};
use super::verdict::{DOUBLEWRITE, Verdict, Why, corrupt, is_doublewrite};
use crate::bytes::{all_zero, be16, be32};
use crate::page::{KEY_VERSION, LSN, PAGE_NO, PageType, SPACE_ID, TRAILER, TYPE};
use crate::space::SpaceFormat;

const NONE: &str = "written with innodb_checksum_algorithm=none";
const MARIADB_COMPRESSED: &str =
    "page-compressed: MariaDB checksums such pages only in its full_crc32 format";
const MYSQL_COMPRESSED: &str =
    "compressed by MySQL's COMPRESSION option: its checksum is of the uncompressed page";
const MYSQL_ENCRYPTED: &str = "encrypted by MySQL: its checksum is of the page before encryption";

pub(super) fn verify(page: &[u8], page_no: u32, format: &SpaceFormat) -> Verdict {
    let stored = be32(page, 0);
    let zip = format.zip_size.is_some();
    let computed = if zip { crc32_zip(page) } else { crc32(page) };
    if stored == 0 && all_zero(page) {
        return Verdict::Empty;
    }
    if is_doublewrite(page_no, format) {
        return DOUBLEWRITE;
    }
    let verdict = if is_sound(page, stored, computed, format) {
        Verdict::Good
    } else {
        without_checksum(page, stored, format).unwrap_or(corrupt(stored, computed, Why::Checksum))
    };
    if verdict.is_corrupt() {
        return verdict;
    }
    let bad = |why| corrupt(stored, computed, why);
    if verdict == Verdict::Good
        && !zip
        && be16(page, TYPE) != PageType::MARIADB_COMPRESSED_ENCRYPTED.0
        && be32(page, LSN + 4) != be32(page, page.len() - TRAILER + 4)
    {
        return bad(Why::TornLsn);
    }
    if be32(page, PAGE_NO) != page_no {
        return bad(Why::PageNumber(be32(page, PAGE_NO)));
    }
    if be32(page, SPACE_ID) != format.space_id {
        return bad(Why::SpaceId(be32(page, SPACE_ID)));
    }
    verdict
}

/// Returns whether one of the checksum algorithms vouches for the page.
fn is_sound(page: &[u8], stored: u32, computed: u32, format: &SpaceFormat) -> bool {
    // MariaDB leaves the old checksums of an encrypted page in place and puts the one of the
    // encrypted bytes behind the key version.
    let sealed = is_encrypted(page, format).then(|| be32(page, KEY_VERSION + 4));
    if format.zip_size.is_some() {
        let seen = |sum| stored == sum || sealed == Some(sum);
        return seen(computed) || seen(adler32_zip(page));
    }
    if sealed == Some(computed) {
        return true;
    }
    let trailer = be32(page, page.len() - TRAILER);
    if stored == computed && trailer == computed {
        return true;
    }
    let fold = fold_header(page);
    sealed == Some(fold) || stored == fold && trailer == fold_trailer(page)
}

/// Returns whether the page claims to be encrypted the way MariaDB does it without full_crc32.
fn is_encrypted(page: &[u8], format: &SpaceFormat) -> bool {
    format.encrypted && be32(page, KEY_VERSION) != 0
}

/// Returns the verdict on a page that says it has no checksum of its bytes, if it may say so
/// here: otherwise one flipped bit in the type could hide any damage.
#[cold]
fn without_checksum(page: &[u8], stored: u32, format: &SpaceFormat) -> Option<Verdict> {
    let zip = format.zip_size.is_some();
    let unsummed = if is_encrypted(page, format) {
        be32(page, KEY_VERSION + 4) == NO_CHECKSUM
    } else {
        stored == NO_CHECKSUM && (zip || be32(page, page.len() - TRAILER) == NO_CHECKSUM)
    };
    let why = match PageType(be16(page, TYPE)) {
        PageType::MARIADB_COMPRESSED if format.page_compressed => MARIADB_COMPRESSED,
        PageType::MYSQL_COMPRESSED if is_mysql_compressed(page) => MYSQL_COMPRESSED,
        PageType::MYSQL_ENCRYPTED
        | PageType::MYSQL_COMPRESSED_ENCRYPTED
        | PageType::MYSQL_ENCRYPTED_RTREE
            if format.encrypted =>
        {
            MYSQL_ENCRYPTED
        }
        _ if unsummed => NONE,
        _ => return None,
    };
    Some(Verdict::Unchecked(why))
}

/// Returns whether bytes 26–33 are a compression header: version, algorithm, original type,
/// original size, compressed size. An ordinary page has zeros there.
fn is_mysql_compressed(page: &[u8]) -> bool {
    let (version, algorithm) = (page[KEY_VERSION], page[KEY_VERSION + 1]);
    let compressed = usize::from(be16(page, KEY_VERSION + 6));
    matches!(version, 1..=3)
        && matches!(algorithm, 1..=2)
        && compressed != 0
        && compressed < page.len()
}
