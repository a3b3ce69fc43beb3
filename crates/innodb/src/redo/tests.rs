use super::header::{RedoHeader, Unreadable};
use super::*;
use crc32c::crc32c;
use proptest::prelude::*;
use std::fs;
use std::path::PathBuf;

const CAPACITY: u64 = 64 << 10;

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn seal(bytes: &mut [u8], summed: usize) {
    let sum = crc32c(&bytes[..summed]);
    put(bytes, summed, &sum.to_be_bytes());
}

/// A MariaDB log with groups of these lengths behind each other from `first` on.
struct SingleFile {
    bytes: Vec<u8>,
    first: u64,
    lsn: u64,
}

impl SingleFile {
    fn new(first: u64) -> Self {
        let mut bytes = vec![0; 12288 + CAPACITY as usize];
        put(&mut bytes, 0, b"Phys");
        put(&mut bytes, 8, &first.to_be_bytes());
        put(&mut bytes, 16, b"MariaDB 10.11.19");
        seal(&mut bytes[..512], 508);
        let lsn = first;
        Self { bytes, first, lsn }
    }

    /// Appends a group whose one record has `length` (at least 16) bytes behind its head.
    fn append(&mut self, length: u32, filler: u8) {
        // One varint byte below 128 bytes, two above.
        let extra = length - 15;
        let mut group = match extra {
            0..0x80 => vec![0x30, extra as u8],
            _ => vec![
                0x30,
                0x80 | ((extra - 0x80) >> 8) as u8,
                (extra - 0x80) as u8,
            ],
        };
        group.resize(1 + length as usize, filler);
        let sum = crc32c(&group);
        let end = self.lsn + group.len() as u64;
        group.push(u8::from(((end - self.first) / CAPACITY).is_multiple_of(2)));
        group.extend(sum.to_be_bytes());
        for byte in group {
            let at = 12288 + (self.lsn - self.first) % CAPACITY;
            self.bytes[at as usize] = byte;
            self.lsn += 1;
        }
    }

    fn checkpoint(&mut self, slot: usize) {
        let block = &mut self.bytes[4096 * slot..4096 * slot + 64];
        put(block, 0, &self.lsn.to_be_bytes());
        put(block, 8, &self.lsn.to_be_bytes());
        seal(block, 60);
    }

    fn header(&self) -> RedoHeader {
        parse(&self.bytes[..12288], RedoFormat::SingleFile)
    }
}

/// A MySQL log of two files, with blocks filled from `first` (a multiple of 512) to `lsn`.
fn classic(first: u64, lsn: u64, checkpoint: u64) -> [Vec<u8>; 2] {
    let half = CAPACITY / 2;
    let mut files = [0, 1].map(|_| vec![0; 2048 + half as usize]);
    let place = |lsn: u64| {
        let at = (lsn - first) % CAPACITY;
        ((at / half) as usize, (2048 + at % half) as usize)
    };
    for start in (first..=lsn).step_by(512) {
        let (file, at) = place(start);
        let block = &mut files[file][at..at + 512];
        block.fill(0x55);
        put(
            block,
            0,
            &(((start / 512) & 0x3fff_ffff) as u32 + 1).to_be_bytes(),
        );
        put(block, 4, &((lsn - start).min(512) as u16).to_be_bytes());
        seal(block, 508);
    }
    let (file, at) = place(checkpoint);
    let offset = file as u64 * (2048 + half) + at as u64;
    let header = &mut files[0];
    put(header, 0, &1_u32.to_be_bytes());
    put(header, 8, &first.to_be_bytes());
    put(header, 16, b"MySQL 5.7.22");
    seal(&mut header[..512], 508);
    put(&mut header[512..], 8, &checkpoint.to_be_bytes());
    put(&mut header[512..], 16, &offset.to_be_bytes());
    seal(&mut header[512..1024], 508);
    files
}

fn parse(bytes: &[u8], layout: RedoFormat) -> RedoHeader {
    match RedoHeader::parse(bytes, layout, false) {
        Ok(header) => header,
        Err(Unreadable::Torn) => panic!("torn"),
        Err(Unreadable::Refused(error)) => panic!("{}", error.chain()),
    }
}

fn end_of(files: &[&[u8]], saved: &RedoHeader) -> Result<u64> {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..files.len())
        .map(|number| dir.path().join(format!("ib_logfile{number}")))
        .collect();
    for (path, bytes) in paths.iter().zip(files) {
        fs::write(path, bytes).unwrap();
    }
    assert_eq!(capacity(&paths, saved).unwrap(), CAPACITY);
    log_end(&paths, saved)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn single_file_end_is_found_until_it_wraps(
        first in 0..1_u64 << 40,
        before in prop::collection::vec(16..4000_u32, 0..40),
        after in prop::collection::vec(16..4000_u32, 1..40),
    ) {
        let mut log = SingleFile::new(first);
        for length in before {
            log.append(length, 7);
        }
        log.checkpoint(1);
        log.append(16, 9);
        let saved = log.header();
        prop_assert_eq!(saved.first_lsn(), first);
        for length in after {
            log.append(length, 3);
        }
        let end = end_of(&[&log.bytes], &saved);
        if log.lsn - saved.checkpoint_lsn() <= CAPACITY {
            prop_assert_eq!(end.unwrap(), log.lsn);
        } else {
            // The end byte of the overwritten first group has turned, or its bytes have.
            prop_assert!(end.is_err() || log.lsn - saved.checkpoint_lsn() > 2 * CAPACITY);
            prop_assert!(wrapped(&saved, CAPACITY, log.lsn));
        }
    }

    #[test]
    fn classic_end_is_found_until_it_wraps(
        first in (0..1_u64 << 40).prop_map(|lsn| lsn & !511),
        before in 12..3 * CAPACITY,
        after in 0..3 * CAPACITY,
    ) {
        // An LSN never points into a block's header or trailer.
        let land = |lsn: u64| lsn.max((lsn & !511) + 12).min((lsn & !511) + 508);
        let (checkpoint, end) = (land(first + before), land(first + before + after));
        let files = classic(first, end, checkpoint);
        let saved = parse(&files[0][..2048], RedoFormat::Classic);
        prop_assert_eq!(saved.checkpoint_lsn(), checkpoint);
        let found = end_of(&[&files[0], &files[1]], &saved);
        // The last block is begun as soon as one byte of it is used.
        if (end & !511) + 512 - (checkpoint & !511) <= CAPACITY {
            prop_assert_eq!(found.unwrap(), end);
        } else {
            prop_assert!(found.is_err());
            prop_assert!(wrapped(&saved, CAPACITY, end));
        }
    }
}

#[test]
fn a_damaged_record_ends_the_log_before_the_newest_checkpoint() {
    let mut log = SingleFile::new(8192);
    log.append(100, 1);
    log.checkpoint(1);
    let saved = log.header();
    let start = log.lsn;
    log.append(100, 2);
    log.append(100, 3);
    log.checkpoint(2);
    let newest = log.lsn;
    log.append(100, 4);
    assert_eq!(end_of(&[&log.bytes], &saved).unwrap(), log.lsn);
    for lsn in start..newest {
        let mut bytes = log.bytes.clone();
        bytes[12288 + (lsn - log.first) as usize] ^= 0x20;
        let error = end_of(&[&bytes], &saved).unwrap_err();
        assert!(!error.hints().is_empty(), "{lsn}: {}", error.chain());
    }
}

#[test]
fn groups_of_the_last_time_round_are_not_taken_for_new_ones() {
    let mut log = SingleFile::new(8192);
    // 128 bytes each with head, end byte and checksum: old groups begin where new ones would.
    for _ in 0..CAPACITY / 128 + 100 {
        log.append(122, 5);
    }
    log.checkpoint(1);
    let saved = log.header();
    log.append(122, 5);
    assert_eq!(end_of(&[&log.bytes], &saved).unwrap(), log.lsn);
}

#[test]
fn the_newest_whole_checkpoint_counts() {
    let mut log = SingleFile::new(8192);
    log.append(100, 1);
    log.checkpoint(2);
    let older = log.lsn;
    log.append(100, 2);
    log.checkpoint(1);
    assert_eq!(log.header().checkpoint_lsn(), log.lsn);
    log.bytes[4096 + 3] ^= 1;
    let torn = RedoHeader::parse(&log.bytes[..12288], RedoFormat::SingleFile, false);
    assert!(matches!(torn, Err(Unreadable::Torn)));
    let Ok(one) = RedoHeader::parse(&log.bytes[..12288], RedoFormat::SingleFile, true) else {
        panic!("one whole checkpoint is enough");
    };
    assert_eq!(one.checkpoint_lsn(), older);
}

#[test]
fn every_flipped_bit_in_a_checkpoint_shows() {
    let [file, _] = classic(8192, 12000, 9000);
    let good = parse(&file[..2048], RedoFormat::Classic);
    for at in (0..512).chain(512..1024) {
        for bit in 0..8 {
            let mut bytes = file[..2048].to_vec();
            bytes[at] ^= 1 << bit;
            let read = RedoHeader::parse(&bytes, RedoFormat::Classic, true);
            assert!(read.is_err(), "bit {bit} of byte {at}");
        }
    }
    assert_eq!((good.offset(), good.bytes().len()), (512, 1536));
    assert_eq!(good.creator(), "MySQL 5.7.22");
}

#[test]
fn unknown_layouts_are_refused_with_a_way_out() {
    let path = PathBuf::from("#innodb_redo/#ib_redo0");
    let directory = RedoHeader::read(&path, RedoFormat::Directory).unwrap_err();
    assert_eq!(directory.kind(), evenkeel_op::ErrorKind::Refused);
    assert!(!directory.hints().is_empty());
    // MySQL 8.0.30's format number.
    let [mut file, _] = classic(8192, 12000, 9000);
    put(&mut file, 0, &6_u32.to_be_bytes());
    seal(&mut file[..512], 508);
    let newer = RedoHeader::parse(&file[..2048], RedoFormat::Classic, true);
    assert!(matches!(newer, Err(Unreadable::Refused(_))));
    // MariaDB's log is none of MySQL's.
    let log = SingleFile::new(8192);
    let other = RedoHeader::parse(&log.bytes[..2048], RedoFormat::Classic, true);
    assert!(matches!(other, Err(Unreadable::Refused(_))));
}

#[test]
fn wrapping_is_expected_a_little_early() {
    let mut log = SingleFile::new(0);
    log.checkpoint(1);
    let saved = log.header();
    assert!(!wrapped(&saved, 1 << 20, (1 << 20) - MARGIN - 1));
    assert!(wrapped(&saved, 1 << 20, (1 << 20) - MARGIN));
    assert!(wrapped(&saved, 1 << 20, u64::MAX));
}

#[test]
fn an_encrypted_log_is_reported_by_either_of_its_marks() {
    let with = |at: usize, mark: &[u8]| {
        let mut log = SingleFile::new(12288);
        put(&mut log.bytes, at, mark);
        seal(&mut log.bytes[..512], 508);
        log.checkpoint(1);
        log.header().is_encrypted()
    };
    assert!(!with(0, b"Phys"));
    // The older mark, then the newer one.
    assert!(with(48, &[0, 0, 0, 1]));
    assert!(with(0, &[0xf0, 0x9f, 0x97, 0x9d]));
}
