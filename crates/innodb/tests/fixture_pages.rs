//! Are stored pages of real servers judged rightly, and is each flipped bit noticed?

#![allow(clippy::single_range_in_vec_init)] // lists of ranges, some of one

use evenkeel_innodb::{PageHeader, Probe, SpaceFormat, Verdict, Why, has_stray_bits, verify};
use std::ops::Range;

/// One file of `fixtures/`: page 0 of a tablespace, then page `no`.
struct Fixture {
    name: &'static str,
    no: u32,
    size: usize,
    /// The bytes of page `no` that its format does not protect.
    unprotected: &'static [Range<usize>],
}

const fn fixture(
    name: &'static str,
    no: u32,
    size: usize,
    unprotected: &'static [Range<usize>],
) -> Fixture {
    Fixture {
        name,
        no,
        size,
        unprotected,
    }
}

/// The flush LSN or key version of pages with a crc32 or innodb checksum.
const CLASSIC: &[Range<usize>] = &[26..34];
/// ROW_FORMAT=COMPRESSED: the LSN as well.
const ZIP: &[Range<usize>] = &[16..24, 26..34];

const GOOD: &[Fixture] = &[
    fixture("mariadb-full_crc32", 3, 16384, &[]),
    fixture(
        "mariadb-full_crc32-page_compressed",
        5,
        16384,
        &[512..16384],
    ),
    fixture("mariadb-full_crc32-encrypted", 3, 4096, &[]),
    fixture(
        "mariadb-full_crc32-page_compressed-encrypted",
        3,
        4096,
        &[1024..4096],
    ),
    fixture("mariadb-crc32", 3, 4096, CLASSIC),
    fixture(
        "mariadb-crc32-encrypted",
        3,
        4096,
        &[0..4, 26..30, 4088..4092],
    ),
    fixture(
        "mariadb-crc32-page_compressed-encrypted",
        3,
        4096,
        &[0..4, 26..30, 4088..4096],
    ),
    fixture(
        "mariadb-crc32-zip-encrypted",
        3,
        2048,
        &[0..4, 16..24, 26..30],
    ),
    fixture("mysql-8.0-crc32", 5, 16384, CLASSIC),
    fixture("mysql-8.0-crc32-zip", 5, 4096, ZIP),
    fixture("mysql-5.7-crc32", 4, 16384, CLASSIC),
    fixture("mysql-5.7-innodb", 4, 16384, CLASSIC),
    fixture("mysql-5.7-innodb-zip", 4, 8192, ZIP),
];

const UNCHECKED: &[(Fixture, &str)] = &[
    (
        fixture("mariadb-crc32-page_compressed", 3, 4096, &[]),
        "page-compressed: MariaDB checksums such pages only in its full_crc32 format",
    ),
    (
        fixture("mysql-8.0-compression-zlib", 5, 16384, &[]),
        "compressed by MySQL's COMPRESSION option: its checksum is of the uncompressed page",
    ),
    (
        fixture("mysql-5.7-none", 4, 16384, &[]),
        "written with innodb_checksum_algorithm=none",
    ),
];

impl Fixture {
    fn load(&self) -> (SpaceFormat, Vec<u8>, Vec<u8>) {
        let checkout = evenkeel_testkit::checkout();
        let path = format!(
            "{}/crates/innodb/tests/fixtures/{}.zst",
            checkout.display(),
            self.name
        );
        let packed = std::fs::read(&path).expect(&path);
        let mut page0 = zstd::decode_all(&packed[..]).expect(&path);
        let page = page0.split_off(self.size);
        let Probe::Checkable(format) = SpaceFormat::parse(&page0) else {
            panic!("{}: not checkable", self.name);
        };
        assert_eq!(format.physical_size(), self.size, "{}", self.name);
        (format, page0, page)
    }
}

/// Flips bits of `page`, one at a time: each of a small page's and of a large one's header and
/// trailer, one in each other byte. Only bits in `skip` may go unnoticed.
fn flip_all(name: &str, page: &mut [u8], no: u32, format: &SpaceFormat, skip: &[Range<usize>]) {
    for at in 0..page.len() {
        let every = page.len() <= 4096 || at < 128 || at + 16 >= page.len();
        for bit in (0..8).filter(|bit| every || *bit == at % 8) {
            page[at] ^= 1 << bit;
            let verdict = verify(page, no, format);
            page[at] ^= 1 << bit;
            let unprotected = skip.iter().any(|range| range.contains(&at));
            assert!(
                verdict.is_corrupt() || unprotected && verdict == Verdict::Good,
                "{name} page {no}: bit {bit} of byte {at} flipped is {verdict:?}"
            );
            if skip == CLASSIC {
                page[at] ^= 1 << bit;
                let stray = has_stray_bits(page, no, format);
                page[at] ^= 1 << bit;
                // Encryption uses them.
                let reported = unprotected && !format.encrypted;
                assert_eq!(stray, reported, "{name} page {no}: byte {at}");
            }
        }
    }
}

#[test]
fn good_pages_are_good_and_no_flipped_bit_passes() {
    for fixture in GOOD {
        let (format, mut page0, mut page) = fixture.load();
        assert_eq!(
            verify(&page0, 0, &format),
            Verdict::Good,
            "{}",
            fixture.name
        );
        assert_eq!(
            verify(&page, fixture.no, &format),
            Verdict::Good,
            "{}",
            fixture.name
        );
        let skip = fixture.unprotected;
        flip_all(fixture.name, &mut page, fixture.no, &format, skip);
        let page0_skip = match (format.checksum, format.zip_size) {
            (evenkeel_innodb::ChecksumKind::FullCrc32, _) => &[][..],
            (_, None) => CLASSIC,
            (_, Some(_)) => ZIP,
        };
        flip_all(fixture.name, &mut page0, 0, &format, page0_skip);
    }
}

#[test]
fn pages_without_a_usable_checksum_say_why() {
    for (fixture, why) in UNCHECKED {
        let (format, _, mut page) = fixture.load();
        assert_eq!(
            verify(&page, fixture.no, &format),
            Verdict::Unchecked(why),
            "{}",
            fixture.name
        );
        // What the header says is still compared.
        let elsewhere = verify(&page, fixture.no + 1, &format);
        assert!(elsewhere.is_corrupt(), "{}: {elsewhere:?}", fixture.name);
        page[34] ^= 1;
        assert!(verify(&page, fixture.no, &format).is_corrupt());
    }
}

#[test]
fn a_page_in_the_wrong_place_is_corrupt() {
    for fixture in GOOD {
        let (mut format, _, page) = fixture.load();
        let name = fixture.name;
        let why = |verdict| match verdict {
            Verdict::Corrupt { why, .. } => why,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(
            why(verify(&page, fixture.no + 1, &format)),
            Why::PageNumber(fixture.no),
            "{name}"
        );
        let space_id = format.space_id;
        format.space_id += 1;
        let visible = PageHeader::read(&page, &format).unwrap().space_id;
        match verify(&page, fixture.no, &format) {
            Verdict::Good => assert_eq!(visible, None, "{name}"),
            other => assert_eq!(why(other), Why::SpaceId(space_id), "{name}"),
        }
    }
}

#[test]
fn a_torn_page_is_corrupt() {
    for fixture in GOOD {
        let (format, page0, page) = fixture.load();
        // The first half of one page and the second half of another; sectors of 512 bytes.
        let mut torn = page.clone();
        torn[..512].copy_from_slice(&page0[..512]);
        torn[4..8].copy_from_slice(&fixture.no.to_be_bytes());
        let verdict = verify(&torn, fixture.no, &format);
        assert!(verdict.is_corrupt(), "{}: {verdict:?}", fixture.name);
        let cut = verify(&page[..page.len() - 512], fixture.no, &format);
        assert!(cut.is_corrupt(), "{}: {cut:?}", fixture.name);
    }
}

#[test]
fn a_page_of_zeros_is_empty() {
    for fixture in GOOD {
        let (format, _, page) = fixture.load();
        let mut zeros = vec![0; page.len()];
        assert_eq!(verify(&zeros, fixture.no, &format), Verdict::Empty);
        zeros[page.len() / 2] = 1;
        assert!(verify(&zeros, fixture.no, &format).is_corrupt());
    }
}

#[test]
fn index_pages_name_their_index() {
    let index = |name| {
        let fixture = GOOD.iter().find(|fixture| fixture.name == name).unwrap();
        let (format, _, page) = fixture.load();
        PageHeader::read(&page, &format).unwrap().index_id
    };
    assert!(index("mariadb-full_crc32").is_some());
    assert!(index("mysql-8.0-crc32-zip").is_some());
    assert_eq!(index("mariadb-full_crc32-encrypted"), None);
    assert_eq!(index("mariadb-crc32-encrypted"), None);
    assert_eq!(index("mariadb-full_crc32-page_compressed"), None);
}
