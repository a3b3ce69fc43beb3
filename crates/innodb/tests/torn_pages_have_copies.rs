//! Is the good copy of a torn page found in the doublewrite area, and only a good one?

use evenkeel_innodb::doublewrite::{Area, DoublewriteCopies};
use evenkeel_innodb::{PageHeader, PageSize, Probe, SpaceFormat, Verdict, verify};
use std::fs::File;
use std::os::unix::fs::FileExt;

const SIZE: usize = 16384;
const NO: u32 = 5;

/// Page 5 of a real tablespace, and its format.
fn page() -> (SpaceFormat, Vec<u8>) {
    let fixtures = evenkeel_testkit::checkout().join("crates/innodb/tests/fixtures");
    let path = fixtures.join("mysql-8.0-crc32.zst");
    let mut page0 = zstd::decode_all(&std::fs::read(path).unwrap()[..]).unwrap();
    let page = page0.split_off(SIZE);
    match SpaceFormat::parse(&page0) {
        Probe::Checkable(format) => (format, page),
        Probe::NotCheckable(why) => panic!("{why}"),
    }
}

/// A system tablespace whose doublewrite area, at pages 64 and 128, holds these pages.
fn system_tablespace(slots: &[(u32, &[u8])]) -> File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(200 * SIZE as u64).unwrap();
    let mut trx_sys = vec![0; SIZE];
    let numbers = [536_853_855_u32, 64, 128].map(u32::to_be_bytes).concat();
    let header = SIZE - 200;
    trx_sys[header + 10..header + 22].copy_from_slice(&numbers);
    trx_sys[header + 22..header + 34].copy_from_slice(&numbers);
    trx_sys[header + 34..header + 38].copy_from_slice(&1_783_657_386_u32.to_be_bytes());
    file.write_all_at(&trx_sys, 5 * SIZE as u64).unwrap();
    for (slot, page) in slots {
        file.write_all_at(page, u64::from(*slot) * SIZE as u64)
            .unwrap();
    }
    file
}

/// The page with another LSN and checksums to match.
fn at_lsn(page: &[u8], lsn: u64) -> Vec<u8> {
    let mut page = page.to_vec();
    page[16..24].copy_from_slice(&lsn.to_be_bytes());
    page[SIZE - 4..].copy_from_slice(&(lsn as u32).to_be_bytes());
    let sum = crc32c::crc32c(&page[4..26]) ^ crc32c::crc32c(&page[38..SIZE - 8]);
    page[..4].copy_from_slice(&sum.to_be_bytes());
    page[SIZE - 8..SIZE - 4].copy_from_slice(&sum.to_be_bytes());
    page
}

#[test]
fn the_newest_whole_copy_is_found_in_either_run() {
    let (format, page) = page();
    let (older, newer) = (at_lsn(&page, 1000), at_lsn(&page, 2000));
    let mut torn = at_lsn(&page, 3000);
    torn[SIZE / 2..].copy_from_slice(&page[..SIZE / 2]);
    assert!(verify(&torn, NO, &format).is_corrupt());
    for slots in [[70, 130, 190], [191, 64, 127]] {
        let pages: [&[u8]; 3] = [&older, &newer, &torn];
        let slots: Vec<(u32, &[u8])> = slots.into_iter().zip(pages).collect();
        let copies =
            DoublewriteCopies::read(&system_tablespace(&slots), PageSize::DEFAULT).unwrap();
        let copy = copies
            .good_copy(&format, NO)
            .expect("there is a whole copy");
        assert_eq!(verify(copy, NO, &format), Verdict::Good);
        assert_eq!(PageHeader::read(copy, &format).unwrap().lsn, 2000);
    }
}

#[test]
fn torn_and_foreign_copies_are_none() {
    let (format, page) = page();
    let mut torn = page.clone();
    torn[9000] ^= 1;
    let file = system_tablespace(&[(64, &torn)]);
    let copies = DoublewriteCopies::read(&file, PageSize::DEFAULT).unwrap();
    assert!(copies.pages().any(|place| place == (format.space_id, NO)));
    assert_eq!(copies.good_copy(&format, NO), None);
    // Outside of the area nothing counts.
    let copies = DoublewriteCopies::read(
        &system_tablespace(&[(63, &page), (192, &page)]),
        PageSize::DEFAULT,
    )
    .unwrap();
    assert_eq!(copies.good_copy(&format, NO), None);
    let copies =
        DoublewriteCopies::read(&system_tablespace(&[(64, &page)]), PageSize::DEFAULT).unwrap();
    assert_eq!(copies.good_copy(&format, NO + 1), None);
    let other = SpaceFormat {
        space_id: format.space_id + 1,
        ..format
    };
    assert_eq!(copies.good_copy(&other, NO), None);
}

#[test]
fn a_damaged_header_names_no_area() {
    let file = system_tablespace(&[]);
    let mut trx_sys = vec![0; SIZE];
    file.read_exact_at(&mut trx_sys, 5 * SIZE as u64).unwrap();
    let area = Area::parse(&trx_sys, PageSize::DEFAULT).unwrap();
    assert_eq!((area.first, area.pages), ([64, 128], 64));
    let edges = [63, 64, 127, 128, 191, 192].map(|no| area.contains(no));
    assert_eq!(edges, [false, true, true, true, true, false]);
    for at in SIZE - 190..SIZE - 162 {
        trx_sys[at] ^= 1;
        assert_eq!(Area::parse(&trx_sys, PageSize::DEFAULT), None, "byte {at}");
        trx_sys[at] ^= 1;
    }
}

#[test]
fn copies_in_files_of_their_own_count_too() {
    let (format, page) = page();
    let mut copies = DoublewriteCopies::read(&system_tablespace(&[]), PageSize::DEFAULT).unwrap();
    let dblwr = tempfile::tempfile().unwrap();
    dblwr.write_all_at(&page, 3 * SIZE as u64).unwrap();
    // The server was cut off in the middle of the next one.
    dblwr.write_all_at(&page[..5000], 4 * SIZE as u64).unwrap();
    copies.add_file(&dblwr).unwrap();
    assert_eq!(copies.good_copy(&format, NO), Some(&page[..]));
}
