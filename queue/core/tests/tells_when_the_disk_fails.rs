//! When reading, writing or syncing fails, is it told, is nothing lost, and does the table go on when the
//! disk does?

mod scene;

use evenkeel_queue::io::simulated::{Fault, Simulated};
use evenkeel_queue::{Append, Condition, Error, Options, Queue, Session, Waited, Wanted};
use scene::{create, open, rows, small};
use std::sync::Arc;
use std::time::Duration;

fn filled(options: Options) -> (Simulated, Arc<Queue>) {
    let disk = Simulated::new();
    let table = create(&disk, options);
    for row in 0..60u8 {
        table.append(vec![vec![row; 100]], None).unwrap();
    }
    (disk, table)
}

#[test]
fn a_write_that_fails_leaves_nothing_and_ends_nothing() {
    for fault in [Fault::Refused, Fault::Half] {
        let (disk, table) = filled(Options::default());
        let before = rows(&table).unwrap();
        let ids = table.take(1, None, 2).unwrap();
        disk.fail_after(0, fault, false);
        let failed = table.remove(1, &ids);
        assert!(
            matches!(failed, Err(Error::Io { .. })),
            "{fault:?}: {failed:?}"
        );
        assert_eq!(table.owned_by(1), ids, "they are the owner's still");
        // Space is filled again before that: a write and a sync.
        disk.fail_after(2, fault, false);
        let failed = table.append(vec![b"lost".to_vec()], None);
        assert!(
            matches!(failed, Err(Error::Io { .. })),
            "{fault:?}: {failed:?}"
        );
        table.give_back(1, &ids);
        assert_eq!(rows(&table).unwrap(), before);
        let appended = table.append(vec![b"later".to_vec()], None);
        assert_eq!(appended, Ok(Append::First(61)));
        drop(table);
        assert_eq!(rows(&open(&disk).unwrap().0).unwrap().len(), 61);
    }
}

#[test]
fn a_sync_that_fails_ends_writing_until_the_table_is_opened_again() {
    let (disk, table) = filled(Options::default());
    // The write is the first call, the sync the second.
    disk.fail_after(1, Fault::Refused, false);
    let ids = table.take(1, None, 1).unwrap();
    let failed = table.remove(1, &ids);
    assert!(matches!(failed, Err(Error::Poisoned(_))), "{failed:?}");
    let refused = table.append(vec![b"refused".to_vec()], None);
    assert!(matches!(refused, Err(Error::Poisoned(_))), "{refused:?}");
    assert!(matches!(table.compact(true), Err(Error::Poisoned(_))));
    assert_eq!(
        table.read(2).unwrap(),
        Some(vec![1; 100]),
        "reading goes on"
    );
    drop(table);
    let (table, _) = open(&disk).unwrap();
    // It is not known whether the first was removed; the others are there.
    let found: Vec<u64> = rows(&table).unwrap().iter().map(|row| row.0).collect();
    assert!(found == (1..=60).collect::<Vec<_>>() || found == (2..=60).collect::<Vec<_>>());
    table.append(vec![b"later".to_vec()], None).unwrap();
}

#[test]
fn a_row_that_cannot_be_read_stays_and_is_handed_out_when_it_can() {
    let (disk, table) = filled(small());
    let odd = Condition::new(|row| row[0] % 2 == 1);
    disk.refuse_reads();
    let failed = table.read(1);
    assert!(matches!(failed, Err(Error::Io { .. })), "{failed:?}");
    let failed = table.take(1, Some(&odd), 1);
    assert!(matches!(failed, Err(Error::Io { .. })), "{failed:?}");
    let mut session = Session::new();
    let wanted = [Wanted {
        table: table.clone(),
        condition: Some(odd.clone()),
    }];
    let failed = session.wait(&wanted, 1, Duration::ZERO, &|| false);
    assert!(matches!(failed, Err(Error::Io { .. })), "{failed:?}");
    assert_eq!((table.stats().owned, table.stats().waiters), (0, 0));
    disk.heal();
    let waited = session.wait(&wanted, 1, Duration::ZERO, &|| false);
    assert_eq!(
        waited,
        Ok(Waited::Rows(0, vec![2])),
        "the oldest that passes"
    );
}

#[test]
fn compaction_that_cannot_read_or_write_changes_nothing_and_starts_over() {
    let (disk, table) = filled(small());
    for id in (1..=60).step_by(2) {
        assert!(table.own(id, 1));
    }
    table.remove(1, &table.owned_by(1)).unwrap();
    let before = rows(&table).unwrap();
    disk.refuse_reads();
    assert!(matches!(table.compact(true), Err(Error::Io { .. })));
    disk.heal();
    let many = table.stats().files;
    let mut failures = 0;
    for calls in 0..20 {
        // What failed may have ended writing until then.
        let (table, _) = open(&disk).unwrap();
        disk.fail_after(calls, Fault::Half, false);
        let failed = table.compact(true);
        disk.heal();
        failures += usize::from(failed.is_err());
        assert_eq!(rows(&table).unwrap(), before, "call {calls}: {failed:?}");
    }
    assert!(failures > 5, "{failures}");
    let (table, _) = open(&disk).unwrap();
    table.compact(true).unwrap();
    assert!(
        table.stats().files < many,
        "{} of {many}",
        table.stats().files
    );
    assert_eq!(rows(&table).unwrap(), before);
}

/// Rows cannot be copied on a full disk, but files of dead rows alone can go, and make room.
#[test]
fn on_a_full_disk_files_of_dead_rows_go_and_the_others_stay() {
    let disk = Simulated::new();
    let table = create(
        &disk,
        Options {
            compact_dead: 40,
            ..small()
        },
    );
    for row in 0..100u8 {
        table.append(vec![vec![row; 100]], None).unwrap();
    }
    // The oldest files are dead, those behind them half.
    for id in (1..=40).chain((42..=90).step_by(2)) {
        assert!(table.own(id, 1));
    }
    table.remove(1, &table.owned_by(1)).unwrap();
    let before = rows(&table).unwrap();
    let (files, used) = (table.stats().files, disk.used());
    // Not even the file that rows would be copied to.
    disk.set_capacity(Some(used));
    let mut calls = 0;
    let full = loop {
        match table.compact_slice() {
            Ok(true) => calls += 1,
            Ok(false) => break false,
            Err(Error::Full) => break true,
            Err(error) => panic!("{error}"),
        }
        assert!(calls < 100, "it does not end");
    };
    assert!(
        table.stats().files < files,
        "{} of {files}, full: {full}",
        table.stats().files
    );
    assert!(disk.used() < used);
    assert_eq!(rows(&table).unwrap(), before);
    // With room again all is done.
    disk.set_capacity(None);
    while table.compact_slice().unwrap() {}
    assert_eq!(rows(&table).unwrap(), before);
    drop(table);
    assert_eq!(rows(&open(&disk).unwrap().0).unwrap(), before);
}
