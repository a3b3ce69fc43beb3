//! Is each flipped bit refused, told, or without effect, and does salvage keep the rest?

mod scene;

use evenkeel_queue::Error;
use evenkeel_queue::io::simulated::Simulated;
use scene::{ANCHOR, create, open, rows, small, store};
use std::collections::BTreeMap;
use std::path::Path;

/// A table of several segments and a part; with all its rows.
fn scene(closed: bool) -> (Simulated, BTreeMap<u64, Vec<u8>>) {
    let disk = Simulated::new();
    let table = create(&disk, small());
    for round in 0..12u8 {
        // Some come in the same second.
        disk.set_clock(came(u64::from(round) * 5 + 1));
        let rows = (0..5).map(|row| vec![round * 5 + row; 60]).collect();
        table.append(rows, None).unwrap();
        let some = table.take(1, None, 2).unwrap();
        table.remove(1, &some).unwrap();
        if round == 7 {
            table.compact(true).unwrap();
        }
    }
    if closed {
        table.close().unwrap();
    }
    let all = rows(&table).unwrap().into_iter().collect();
    (disk, all)
}

/// When a row came.
fn came(id: u64) -> u64 {
    1000 + (id - 1) / 15 * 7
}

/// Flips one bit of every `step`th byte of every file, and looks at what opening it comes to.
fn flip(step: usize, mut look: impl FnMut(&Simulated, &Path, usize)) -> usize {
    let (disk, _) = scene(true);
    let mut flipped = 0;
    for (path, bytes) in disk.files() {
        for at in (0..bytes.len()).step_by(step) {
            let broken = disk.copy();
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << (at % 8);
            broken.overwrite(&path, &bytes);
            look(&broken, &path, at);
            flipped += 1;
        }
    }
    flipped
}

#[test]
fn rows_are_never_wrong() {
    let (_, all) = scene(true);
    let mut refused = 0;
    let flipped = flip(7, |disk, path, at| match open(disk) {
        Err(Error::Corrupt { .. } | Error::Foreign { .. }) => refused += 1,
        Err(error) => panic!("{}, byte {at}: {error}", path.display()),
        Ok((table, report)) => {
            // The end of the newest segment looks as if a crash had torn it: that is told.
            let found: BTreeMap<u64, Vec<u8>> = rows(&table).unwrap().into_iter().collect();
            assert!(
                found == all || report.torn_bytes > 0,
                "{}, byte {at}",
                path.display()
            );
            assert!(found.iter().all(|(id, row)| all.get(id) == Some(row)));
            assert!(found.keys().all(|id| table.came(*id) == came(*id)));
        }
    });
    assert!(
        flipped > 500 && refused * 100 > flipped * 80,
        "{refused} of {flipped}"
    );
}

#[test]
fn salvage_keeps_the_rest() {
    let (_, all) = scene(true);
    let (mut kept, mut known) = (0, 0);
    let flipped = flip(41, |disk, path, at| {
        if path == Path::new(ANCHOR) {
            return;
        }
        let context = format!("{}, byte {at}", path.display());
        let (table, report) = store(disk)
            .salvage(Path::new(ANCHOR), small())
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        let found: BTreeMap<u64, Vec<u8>> = rows(&table).unwrap().into_iter().collect();
        kept += found.len();
        let is_whole = found == all;
        assert!(
            is_whole || !report.damage.is_empty() || report.torn_bytes > 0,
            "{context}"
        );
        for (id, row) in &found {
            // Removals may be lost: then a row is there that was not.
            assert_eq!(row, &vec![(*id - 1) as u8; 60], "{context}");
            // So may be when it came, and then nothing is said.
            let reported = table.came(*id);
            assert!(
                reported == came(*id) || reported == 0,
                "{context}: row {id}, {reported}"
            );
            known += usize::from(reported > 0);
        }
        drop(table);
        let (table, _) = open(disk).unwrap_or_else(|error| panic!("{context}, after: {error}"));
        assert_eq!(rows(&table).unwrap().len(), found.len(), "{context}");
        for id in found.keys() {
            assert!([0, came(*id)].contains(&table.came(*id)), "{context}");
        }
    });
    assert!(
        kept > flipped * all.len() * 3 / 4,
        "{kept} rows in {flipped} salvages"
    );
    assert!(known * 10 > kept * 8, "{known} of {kept}");
}

#[test]
fn lost_files_and_tails_are_refused() {
    let (disk, _) = scene(true);
    for (path, bytes) in disk.files() {
        if path
            .extension()
            .is_none_or(|kind| kind == "que" || kind == "new")
        {
            continue;
        }
        let broken = disk.copy();
        broken.overwrite(&path, &bytes[..bytes.len() - 8]);
        let is_newest = path == newest(&disk);
        match open(&broken) {
            Err(Error::Corrupt { .. }) => assert!(!is_newest),
            Ok((_, report)) => assert!(is_newest && report.torn_bytes > 0, "{}", path.display()),
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
}

/// A disk that lost its last writes may read as zeros. Space that is filled beforehand does, too.
#[test]
fn ends_that_read_as_zeros_are_refused() {
    let (disk, _) = scene(false);
    let mut refused = 0;
    for (path, bytes) in disk.files() {
        let is_log = path
            .extension()
            .is_some_and(|kind| kind == "seg" || kind == "part");
        if !is_log || path == newest(&disk) {
            continue;
        }
        // Behind the file's header and its first frame.
        let len = u32::from_le_bytes(bytes[64..68].try_into().unwrap()) as usize;
        let rest = 64 + 32 + len.next_multiple_of(8);
        if bytes[rest..].iter().all(|byte| *byte == 0) {
            continue;
        }
        let broken = disk.copy();
        broken.overwrite(
            &path,
            &[&bytes[..rest], &vec![0; bytes.len() - rest]].concat(),
        );
        let opened = open(&broken).map(|_| ());
        assert!(
            matches!(opened, Err(Error::Corrupt { .. })),
            "{}",
            path.display()
        );
        refused += 1;
    }
    assert!(refused >= 2, "{refused}");
}

fn newest(disk: &Simulated) -> std::path::PathBuf {
    let segments = disk.files().into_iter().map(|file| file.0);
    let segments = segments.filter(|path| path.extension().is_some_and(|kind| kind == "seg"));
    segments.max().unwrap()
}
