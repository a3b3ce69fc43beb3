//! Wherever a crash cuts a log off, does it end where its last complete transaction does, with the
//! GTIDs up to there?

mod made;

use evenkeel_binlog::{End, end_of_file, kind};
use evenkeel_testkit::effort::{Part, share};
use made::Made;
use std::io::Write;

fn end(bytes: &[u8]) -> End {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("binlog.000001");
    std::fs::write(&path, bytes).unwrap();
    end_of_file(&path).unwrap()
}

/// A log with its transactions: where each ends, and the GTIDs up to there.
fn mariadb(checksums: bool) -> (Made, Vec<(u64, &'static str)>) {
    let mut made = Made::new(checksums);
    // A list of one: 0-1-9.
    let list = [1u32, 0, 1, 9, 0].map(u32::to_le_bytes).concat();
    let mut ends = vec![
        (made.bytes.len() as u64, ""),
        (made.event(kind::MARIADB_GTID_LIST, &list), "0-1-9"),
    ];
    made.gtid(10, true);
    ends.push((made.query("CREATE TABLE t (a INT)"), "0-7-10"));
    made.gtid(11, false);
    made.query(&format!("INSERT INTO t VALUES ('{}')", "x".repeat(9000)));
    made.event(23, &[7; 5000]);
    ends.push((made.event(kind::XID, &[0; 8]), "0-7-11"));
    made.gtid(12, false);
    made.query("INSERT INTO t VALUES (2)");
    ends.push((made.query("COMMIT"), "0-7-12"));
    (made, ends)
}

#[test]
fn every_cut_ends_at_a_boundary() {
    for (nth, checksums) in [false, true].into_iter().enumerate() {
        let (made, ends) = mariadb(checksums);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("binlog.000001");
        let mut file = std::fs::File::create(&path).unwrap();
        let mut written = 0;
        let is_near = |cut: &usize| ends.iter().any(|(end, _)| end.abs_diff(*cut as u64) < 64);
        let (near, far): (Vec<usize>, Vec<usize>) = (4..=made.bytes.len()).partition(is_near);
        let mut cuts = share("cuts far from an end", &far, Part::new(nth, 2));
        cuts.extend(near);
        cuts.sort_unstable();
        for cut in cuts {
            file.write_all(&made.bytes[written..cut]).unwrap();
            written = cut;
            let found = end_of_file(&path).unwrap();
            let until = ends.iter().rev().find(|(end, _)| *end <= cut as u64);
            let (position, gtid) = until.copied().unwrap_or((4, ""));
            assert_eq!(found.position, position, "cut at {cut}");
            assert_eq!(found.gtid.unwrap_or_default(), gtid, "cut at {cut}");
            assert_eq!(found.cut_off, cut as u64 - position, "cut at {cut}");
        }
    }
}

#[test]
fn checkpoints_change_nothing() {
    let (mut made, ends) = mariadb(true);
    let (last, gtid) = *ends.last().unwrap();
    assert_eq!(end(&made.bytes).changes_until, last);
    let name = b"\x0d\0\0\0binlog.000001";
    made.event(kind::MARIADB_CHECKPOINT, name);
    let position = made.event(kind::MARIADB_CHECKPOINT, name);
    let found = end(&made.bytes);
    assert_eq!((found.position, found.changes_until), (position, last));
    assert_eq!(found.gtid.as_deref(), Some(gtid));
    made.gtid(13, true);
    let changed = made.query("CREATE TABLE u (a INT)");
    assert_eq!(end(&made.bytes).changes_until, changed);
}

#[test]
fn room_that_was_allocated_ahead_is_no_event() {
    let (made, ends) = mariadb(true);
    let found = end(&[&made.bytes[..], &[0; 4096]].concat());
    assert_eq!(found.position, ends.last().unwrap().0);
    assert_eq!(found.cut_off, 4096);
}

#[test]
fn gtids_of_mysql_are_added_to_those_of_the_files_before() {
    let mut made = Made::new(true);
    let mut before = 1u64.to_le_bytes().to_vec();
    before.extend([9; 16]);
    before.extend([1u64, 1, 5].map(u64::to_le_bytes).concat());
    made.event(kind::PREVIOUS_GTIDS, &before);
    let gtid = |number: u64| [&[0u8][..], &[9; 16], &number.to_le_bytes(), &[0; 17]].concat();
    made.event(kind::GTID, &gtid(5));
    made.query("BEGIN");
    let committed = made.event(kind::XID, &[0; 8]);
    made.event(kind::GTID, &gtid(6));
    made.query("BEGIN");
    let found = end(&made.bytes);
    assert_eq!(found.position, committed);
    let server = "09090909-0909-0909-0909-090909090909";
    assert_eq!(found.gtid, Some(format!("{server}:1-5")));
}

#[test]
fn what_cannot_be_read_is_refused_by_name() {
    for (reported, event) in [
        ("encrypted", kind::MARIADB_START_ENCRYPTION),
        ("tagged", kind::GTID_TAGGED),
    ] {
        let mut made = Made::new(true);
        made.event(event, &[0; 40]);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("binlog.000001");
        std::fs::write(&path, &made.bytes).unwrap();
        let error = end_of_file(&path).unwrap_err();
        assert_eq!(error.kind(), evenkeel_op::ErrorKind::Refused);
        assert!(format!("{error:?}").contains(reported), "{error:?}");
    }
}
