//! Whatever is archived, or done to the archive: an error or what was archived, and nothing else.

use super::*;
use evenkeel_binlog::{HEADER, Header};
use evenkeel_repository::logs::SegmentHeader;
use evenkeel_repository::{Create, Repository};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::path::Path;

const HOME: (&str, &str) = ("mariadb-7", "t1");
const FILE: &str = "b.000001";

fn event(bytes: &mut Vec<u8>, kind: u8, body: &[u8]) {
    let length = HEADER + body.len() + 4;
    let header = Header {
        time: 1000,
        kind,
        server: 7,
        length: length as u32,
        next: (bytes.len() + length) as u32,
        flags: 0,
    };
    let event = [&header.bytes(), body].concat();
    bytes.extend(&event);
    bytes.extend(crc32fast::hash(&event).to_le_bytes());
}

/// A log with these events behind its format description.
fn log(events: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    let mut format = vec![4, 0];
    format.extend(b"10.11.99-made");
    format.resize(52, 0);
    format.extend([0, 0, 0, 0, HEADER as u8]);
    format.extend([0; 40]);
    format.push(1);
    event(&mut bytes, kind::FORMAT_DESCRIPTION, &format);
    for (kind, body) in events {
        event(&mut bytes, *kind, body);
    }
    bytes
}

/// Archives a log, cut into segments at these places.
fn archive(repository: &Path, bytes: &[u8], cuts: &[Index]) -> Logs {
    let made = Repository::create(repository.to_owned(), Create::default()).unwrap();
    let logs = made.logs();
    let _lock = logs.claim(HOME.0).unwrap();
    let writer = logs.writer().unwrap();
    writer.make_timeline(HOME.0, HOME.1).unwrap();
    let mut ends: Vec<usize> = cuts.iter().map(|cut| 1 + cut.index(bytes.len())).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    ends.dedup();
    let mut start = 0;
    for end in ends {
        let place = LogPosition {
            file: FILE.to_owned(),
            position: start as u64,
        };
        let mut header = SegmentHeader {
            file: FILE.to_owned(),
            start: start as u64,
            end: end as u64,
            previous: (start > 0).then_some(place),
            gap: None,
            last_event: start as u64,
            last_event_hash: None,
            transactions: 0,
            first_time: None,
            last_time: None,
            first_gtid: None,
            last_gtid: None,
            gtids: None,
            last_statement: None,
            unfinished: None,
            server_version: "10.11.99".to_owned(),
            crc: 0,
            stored: 0,
            stored_crc: None,
            of: None,
        };
        let new = writer.write(HOME, &mut header, &bytes[start..end]).unwrap();
        new.finish().unwrap();
        start = end;
    }
    logs
}

/// Reads the log in every way that there is; the events that were copied.
fn read(logs: &Logs) -> Result<Vec<u8>> {
    let timelines = logs.timelines(None)?;
    let Some(timeline) = timelines.first() else {
        return Ok(Vec::new());
    };
    let from = LogPosition {
        file: FILE.to_owned(),
        position: 4,
    };
    let mut seen = 0;
    read_file(logs, timeline, &from, None, |item| {
        if let Item::Transaction(transaction, ..) = item {
            assert!(transaction.at.position < transaction.end);
            assert!(transaction.at.position >= seen);
            seen = transaction.end;
        }
        Ok(true)
    })?;
    FileEnd::read(ArchivedFile::open(logs, timeline, FILE))?;
    let mut out = Vec::new();
    let archived = ArchivedFile::open(logs, timeline, FILE);
    copy_others(archived, u64::MAX, Some(&GtidSet::default()), &mut out)?;
    Ok(out)
}

fn kinds() -> impl Strategy<Value = u8> {
    prop_oneof![
        select(vec![
            kind::QUERY,
            kind::XID,
            kind::GTID,
            kind::ANONYMOUS_GTID,
            kind::PREVIOUS_GTIDS,
            kind::TRANSACTION_PAYLOAD,
            kind::MARIADB_GTID,
            kind::MARIADB_GTID_LIST,
            kind::FORMAT_DESCRIPTION,
        ]),
        any::<u8>(),
    ]
}

fn events() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
    let body = proptest::collection::vec(prop_oneof![Just(0), Just(0xff), any::<u8>()], 0..80);
    proptest::collection::vec((kinds(), body), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn forged_events_are_errors_or_come_as_they_are(events in events(), cuts in proptest::collection::vec(any::<Index>(), 0..4)) {
        let room = tempfile::tempdir().unwrap();
        let bytes = log(&events);
        let logs = archive(&room.path().join("r"), &bytes, &cuts);
        if let Ok(copied) = read(&logs) {
            prop_assert!(bytes.starts_with(&copied) || copied.len() < bytes.len());
        }
        let names: Vec<_> = std::fs::read_dir(room.path()).unwrap().collect();
        prop_assert_eq!(names.len(), 1, "something was written outside");
    }

    #[test]
    fn a_segment_that_was_changed_is_an_error(cuts in proptest::collection::vec(any::<Index>(), 0..3), which in any::<Index>(), at in any::<Index>(), new in proptest::collection::vec(any::<u8>(), 0..40), cut in any::<bool>()) {
        let room = tempfile::tempdir().unwrap();
        let top = room.path().join("r");
        let body = [&[0; 8][..], &[1, 0, 0, 0, 0], b"s\0CREATE TABLE t (a INT)"].concat();
        let bytes = log(&[(kind::QUERY, body.clone()), (kind::QUERY, body)]);
        let logs = archive(&top, &bytes, &cuts);
        prop_assert_eq!(read(&logs).unwrap(), bytes);
        let folder = top.join("binlogs").join(HOME.0).join(HOME.1);
        let mut segments: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|one| one.unwrap().path()).collect();
        segments.sort();
        let path = which.get(&segments);
        let before = std::fs::read(path).unwrap();
        let mut after = before.clone();
        let at = at.index(after.len());
        match cut {
            true => after.truncate(at),
            false => { after.splice(at..(at + new.len()).min(before.len()), new); }
        }
        std::fs::write(path, &after).unwrap();
        prop_assert_eq!(read(&logs).is_err(), after != before);
    }
}
