//! Is it known when each row came, and so how long the oldest has waited, at next to no cost?

mod scene;

use evenkeel_queue::io::simulated::Simulated;
use evenkeel_queue::{Queue, Session};
use scene::{create, open, small};
use std::path::PathBuf;

fn one(table: &Queue) {
    table.append(vec![vec![7; 60]], None).unwrap();
}

/// Removes the oldest rows.
fn consume(table: &Queue, most: usize) {
    let owner = Session::new().owner();
    let ids = table.take(owner, None, most).unwrap();
    assert_eq!(ids.len(), most);
    table.remove(owner, &ids).unwrap();
}

fn bytes(table: &Queue) -> u64 {
    table.stats().bytes
}

#[test]
fn of_the_oldest_that_is_there() {
    let disk = Simulated::new();
    let table = create(&disk, small());
    disk.set_clock(1000);
    assert_eq!(table.oldest_s(), Some(0), "there is none");
    for unix_s in [1000, 1000, 1010, 1030] {
        disk.set_clock(unix_s);
        one(&table);
    }
    disk.set_clock(1040);
    assert_eq!(table.oldest_s(), Some(40));
    // Who owns it has not done it yet.
    let taken = table.take(9, None, 1).unwrap();
    assert_eq!(table.oldest_s(), Some(40));
    table.remove(9, &taken).unwrap();
    assert_eq!(table.oldest_s(), Some(40));
    consume(&table, 1);
    assert_eq!(table.oldest_s(), Some(30));
    consume(&table, 1);
    assert_eq!(table.oldest_s(), Some(10));
    disk.set_clock(900);
    assert_eq!(table.oldest_s(), Some(0), "the clock was set back");
    consume(&table, 1);
    assert_eq!(table.oldest_s(), Some(0));
}

#[test]
fn one_frame_a_second_says_it() {
    let disk = Simulated::new();
    let table = create(&disk, small());
    let mut last = bytes(&table);
    let mut grown = || {
        one(&table);
        let now = bytes(&table);
        now - std::mem::replace(&mut last, now)
    };
    disk.set_clock(1000);
    let (first, plain) = (grown(), grown());
    assert_eq!(first - plain, 48);
    assert_eq!((grown(), grown()), (plain, plain), "in the same second");
    for unix_s in [1001, 990] {
        disk.set_clock(unix_s);
        assert_eq!((grown(), grown()), (first, plain));
    }
}

/// The files as another version has written them.
fn made(version: u8, disk: &Simulated) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = disk.files();
    files.retain(|(_, bytes)| bytes.starts_with(b"EVKQLOG\n"));
    for (path, bytes) in &mut files {
        assert_eq!(bytes[8], 2);
        bytes[8] = version;
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        disk.overwrite(path, bytes);
    }
    files
}

#[test]
fn of_rows_that_an_earlier_version_wrote_nothing_is_said() {
    let disk = Simulated::new();
    let table = create(&disk, small());
    for _ in 0..40 {
        one(&table);
    }
    consume(&table, 10);
    table.compact(true).unwrap();
    one(&table);
    drop(table);
    let old = made(1, &disk);
    assert!(old.len() >= 2, "a part and a segment");
    disk.set_clock(1000);
    let (table, _) = open(&disk).unwrap();
    assert_eq!((table.stats().rows, table.oldest_s()), (31, None));
    one(&table);
    // An earlier version would take what it does not know for torn: so it refuses the whole file.
    for (path, before) in &old {
        let files = disk.files();
        let (_, now) = files.iter().find(|(now, _)| now == path).unwrap();
        assert!(before.starts_with(now), "{}", path.display());
    }
    disk.set_clock(1005);
    let cut = disk.power_cut_now(&mut fastrand::Rng::with_seed(1));
    let (table, _) = open(&cut).unwrap();
    assert_eq!((table.stats().rows, table.oldest_s()), (32, None));
    table.compact(true).unwrap();
    assert_eq!(table.oldest_s(), None);
    consume(&table, 31);
    assert_eq!(table.oldest_s(), Some(5));
    table.close().unwrap();
    let (table, _) = open(&cut).unwrap();
    assert_eq!((table.stats().rows, table.oldest_s()), (1, Some(5)));
}

/// What a library of before does with files of this one: the newest of them may hold a single row.
#[test]
fn files_of_a_later_version_are_refused_and_stay() {
    let disk = Simulated::new();
    let table = create(&disk, small());
    // The last one began another file.
    while disk
        .files()
        .iter()
        .filter(|(_, bytes)| bytes.starts_with(b"EVKQLOG\n"))
        .count()
        < 2
    {
        one(&table);
    }
    table.close().unwrap();
    made(3, &disk);
    let before = disk.files();
    assert!(open(&disk).is_err());
    assert_eq!(disk.files(), before);
}

#[test]
fn files_of_an_earlier_version_stay_so_until_rows_come() {
    let disk = Simulated::new();
    let table = create(&disk, small());
    (0..3).for_each(|_| one(&table));
    drop(table);
    made(1, &disk);
    let versions = || {
        let mut files = disk.files();
        files.retain(|(_, bytes)| bytes.starts_with(b"EVKQLOG\n"));
        files.iter().map(|(_, bytes)| bytes[8]).collect::<Vec<u8>>()
    };
    let (table, _) = open(&disk).unwrap();
    consume(&table, 1);
    table.close().unwrap();
    assert_eq!(versions(), [1], "rows went, and it was closed");
    let (table, _) = open(&disk).unwrap();
    one(&table);
    assert_eq!(versions(), [1, 2]);
}
