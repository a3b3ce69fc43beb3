use super::verdict::DOUBLEWRITE;
use super::*;
use crate::page::{DATA, KEY_VERSION, LSN, PAGE_NO, PageType, SPACE_ID, TYPE};
use crate::space::Probe;

const SIZE: usize = 16384;
const NO: u32 = 77;

fn put(page: &mut [u8], at: usize, value: u32) {
    page[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

/// A tablespace of id 9.
fn format(flags: u32) -> SpaceFormat {
    let mut page0 = vec![0; SIZE];
    page0[TYPE + 1] = PageType::FSP_HDR.0 as u8;
    put(&mut page0, SPACE_ID, 9);
    put(&mut page0, DATA, 9);
    put(&mut page0, DATA + 16, flags);
    match SpaceFormat::parse(&page0) {
        Probe::Checkable(format) => format,
        Probe::NotCheckable(why) => panic!("{why}"),
    }
}

/// A page of a type, without checksums.
fn page(page_type: PageType) -> Vec<u8> {
    let mut page: Vec<u8> = (0..SIZE).map(|at| (at * 7) as u8).collect();
    page[..DATA].fill(0);
    put(&mut page, PAGE_NO, NO);
    put(&mut page, LSN + 4, 123_456);
    page[TYPE..TYPE + 2].copy_from_slice(&page_type.0.to_be_bytes());
    put(&mut page, SPACE_ID, 9);
    put(&mut page, SIZE - 4, 123_456);
    page
}

/// Gives a page the checksums of crc32.
fn seal(page: &mut [u8]) {
    let sum = algorithms::crc32(page);
    put(page, 0, sum);
    put(page, SIZE - 8, sum);
}

/// Gives a page the checksum of full_crc32.
fn seal_full(page: &mut [u8]) {
    let sum = algorithms::full_crc32(&page[..SIZE - 4]);
    put(page, SIZE - 4, sum);
}

fn why(verdict: Verdict) -> Why {
    match verdict {
        Verdict::Corrupt { why, .. } => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_lsns_in_one_page_are_a_torn_write() {
    let classic = format(0x21);
    let mut torn = page(PageType::INDEX);
    put(&mut torn, SIZE - 4, 123_455);
    seal(&mut torn);
    assert_eq!(why(verify(&torn, NO, &classic)), Why::TornLsn);

    let full = format(0x15);
    let mut whole = page(PageType::INDEX);
    put(&mut whole, SIZE - 8, 123_456);
    seal_full(&mut whole);
    assert_eq!(verify(&whole, NO, &full), Verdict::Good);
    put(&mut whole, SIZE - 8, 123_455);
    seal_full(&mut whole);
    assert_eq!(why(verify(&whole, NO, &full)), Why::TornLsn);
}

#[test]
fn no_flipped_bit_in_the_type_makes_a_page_unchecked() {
    let plain = format(0x21);
    for page_type in (0..20).chain(17850..17860) {
        let mut page = page(PageType(page_type));
        seal(&mut page);
        assert_eq!(verify(&page, NO, &plain), Verdict::Good, "{page_type}");
        for bit in 0..16 {
            page[TYPE + bit / 8] ^= 1 << (bit % 8);
            let verdict = verify(&page, NO, &plain);
            assert!(verdict.is_corrupt(), "{page_type}, bit {bit}: {verdict:?}");
            page[TYPE + bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn only_encrypted_tablespaces_have_encrypted_pages() {
    let (plain, encrypted) = (format(0x21), format(0x21 | 1 << 13));
    let mut sealed = page(PageType::INDEX);
    put(&mut sealed, KEY_VERSION, 1);
    let sum = algorithms::crc32(&sealed);
    put(&mut sealed, KEY_VERSION + 4, sum);
    assert_eq!(verify(&sealed, NO, &encrypted), Verdict::Good);
    assert_eq!(why(verify(&sealed, NO, &plain)), Why::Checksum);

    let hidden = page(PageType::MYSQL_ENCRYPTED);
    assert!(matches!(
        verify(&hidden, NO, &encrypted),
        Verdict::Unchecked(_)
    ));
    assert_eq!(why(verify(&hidden, NO, &plain)), Why::Checksum);
}

#[test]
fn a_length_beyond_the_page_is_no_length() {
    let full = format(0x35);
    for length in [0, 64, 0x7fff] {
        let mut page = page(PageType(0x8000 | length));
        seal_full(&mut page);
        assert_eq!(why(verify(&page, NO, &full)), Why::Header, "{length}");
    }
}

#[test]
fn the_doublewrite_area_may_hold_anything() {
    let mut system = format(0x21);
    system.doublewrite = Some(crate::doublewrite::Area {
        first: [64, 128],
        pages: 64,
    });
    let elsewhere = page(PageType::INDEX);
    assert_eq!(verify(&elsewhere, 127, &system), DOUBLEWRITE);
    assert!(verify(&elsewhere, 192, &system).is_corrupt());
    assert_eq!(verify(&vec![0; SIZE], 64, &system), Verdict::Empty);
}
