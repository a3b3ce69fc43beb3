use super::*;
use evenkeel_innodb::{Probe, Verdict, verify};
use proptest::prelude::*;
use std::io::Read;

/// Page 0 and another page of real servers, as the tests of the formats have them.
fn fixture(name: &str, number: u32, size: usize) -> (SpaceFormat, u32, Vec<u8>) {
    // Cargo runs a test in its package's directory.
    let path = format!("../innodb/tests/fixtures/{name}.zst");
    let packed = std::fs::File::open(&path).expect(&path);
    let mut bytes = Vec::new();
    zstd::Decoder::new(packed)
        .expect(&path)
        .read_to_end(&mut bytes)
        .expect(&path);
    let page = bytes.split_off(size);
    let Probe::Checkable(format) = SpaceFormat::parse(&bytes) else {
        panic!("{name}");
    };
    assert_eq!(verify(&page, number, &format), Verdict::Good, "{name}");
    (format, number, page)
}

fn fixtures() -> Vec<(&'static str, SpaceFormat, u32, Vec<u8>)> {
    [
        ("mariadb-full_crc32", 3, 16384),
        ("mariadb-full_crc32-page_compressed", 5, 16384),
        ("mariadb-full_crc32-encrypted", 3, 4096),
        ("mariadb-crc32", 3, 4096),
        ("mysql-8.0-crc32", 5, 16384),
        ("mysql-8.0-crc32-zip", 5, 4096),
        ("mysql-5.7-innodb", 4, 16384),
        ("mysql-5.7-innodb-zip", 4, 8192),
    ]
    .map(|(name, number, size)| {
        let (format, number, page) = fixture(name, number, size);
        (name, format, number, page)
    })
    .into()
}

fn put_lsn(page: &mut [u8], format: &SpaceFormat, lsn: u64) {
    page[16..24].copy_from_slice(&lsn.to_be_bytes());
    let end = used(page, format);
    let at = match format.checksum {
        ChecksumKind::FullCrc32 => end - 8,
        ChecksumKind::Classic => end - 4,
    };
    page[at..at + 4].copy_from_slice(&(lsn as u32).to_be_bytes());
}

#[test]
fn damage_between_the_ends_is_healed_in_every_format() {
    for (name, format, _, page) in fixtures() {
        let mut damaged = page.clone();
        damaged[200..400].fill(0x55);
        assert!(prove(&damaged, &page, &format).is_ok(), "{name}");
    }
}

#[test]
fn a_newer_page_is_never_replaced() {
    for (name, format, _, copy) in fixtures() {
        let mut newer = copy.clone();
        put_lsn(&mut newer, &format, lsn(&copy) + 100);
        // Its checksum is another too; the body may be the same but for the damage.
        newer[0] ^= 1;
        newer[300] ^= 1;
        assert!(prove(&newer, &copy, &format).is_err(), "{name}");
        // The first sector is new, the rest is old: the old version is the wrong one.
        let mut torn = copy.clone();
        torn[..512].copy_from_slice(&newer[..512]);
        let full = format.checksum == ChecksumKind::FullCrc32;
        let says = prove(&torn, &copy, &format);
        let zip = format.zip_size.is_some();
        assert!(says.is_err(), "{name}: {says:?} {full} {zip}");
    }
}

#[test]
fn an_lsn_alone_is_no_proof() {
    for (name, format, _, copy) in fixtures() {
        let mut other = copy.clone();
        // The same LSN and other content, checksummed: two servers that were one.
        other[0..4].copy_from_slice(&[1, 2, 3, 4]);
        other[120] ^= 0xff;
        let end = used(&copy, &format);
        other[end - 8..end]
            .iter_mut()
            .for_each(|byte| *byte ^= 0x5a);
        let at = match format.checksum {
            ChecksumKind::FullCrc32 => end - 8,
            ChecksumKind::Classic => end - 4,
        };
        other[at..at + 4].copy_from_slice(&copy[at..at + 4]);
        assert!(prove(&other, &copy, &format).is_err(), "{name}");
    }
}

#[test]
fn nothing_is_proven_by_nothing() {
    for (name, format, _, copy) in fixtures() {
        assert!(
            prove(&vec![0; copy.len()], &copy, &format).is_err(),
            "{name}"
        );
        assert!(
            prove(&copy[..copy.len() - 512], &copy, &format).is_err(),
            "{name}"
        );
        assert!(prove(&[], &copy, &format).is_err(), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// One flipped bit, wherever it is found by the check, is healed, or refused, but never healed with
    /// anything but what was there.
    #[test]
    fn one_flipped_bit_is_mostly_healed(at in 0_usize..16384, bit in 0_u8..8, which in 0_usize..8) {
        let (name, format, number, page) = fixtures().swap_remove(which);
        let at = at % page.len();
        let mut damaged = page.clone();
        damaged[at] ^= 1 << bit;
        if verify(&damaged, number, &format).is_corrupt() {
            let end = used(&page, &format);
            if (HEADER..end - TRAILER).contains(&at) {
                prop_assert!(prove(&damaged, &page, &format).is_ok(), "{} byte {}", name, at);
            }
            // A copy that differs from what was there, by one more bit, proves nothing.
            let mut other = page.clone();
            put_lsn(&mut other, &format, lsn(&page) ^ 1);
            // Unless that bit is the one that was flipped: with a checksum of its own, such a copy would differ.
            let last = end - TRAILER..end;
            let is_that_bit =
                damaged[last.clone()] == other[last] || damaged[..HEADER] == other[..HEADER];
            prop_assert!(is_that_bit || prove(&damaged, &other, &format).is_err(), "{} byte {}", name, at);
        }
    }
}
