//! Does a log that was forged by somebody who can count checksums end in errors, within its own bounds?

mod made;

use evenkeel_binlog::{Events, Groups, GtidSet, Rotate, body, change, end_of_file, kind, started};
use made::Made;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::io::Cursor;

/// More than the log's own length that is kept of it in memory or said of it, as a factor.
const LARGER: usize = 64;

/// What is done to an event of a sound log.
#[derive(Debug, Clone)]
enum Forgery {
    Kind(u8),
    Write(Index, Vec<u8>),
    Cut(Index),
    Grow(Vec<u8>),
}

fn kinds() -> Vec<u8> {
    vec![
        kind::QUERY,
        kind::ROTATE,
        kind::FORMAT_DESCRIPTION,
        kind::XID,
        kind::TABLE_MAP,
        kind::GTID,
        kind::ANONYMOUS_GTID,
        kind::PREVIOUS_GTIDS,
        kind::XA_PREPARE,
        kind::TRANSACTION_PAYLOAD,
        kind::GTID_TAGGED,
        kind::EXECUTE_LOAD_QUERY,
        kind::MARIADB_QUERY_COMPRESSED,
        kind::MARIADB_GTID,
        kind::MARIADB_GTID_LIST,
    ]
}

/// Numbers at which counting goes wrong.
fn numbers() -> impl Strategy<Value = Vec<u8>> {
    let edges = select(vec![
        0,
        1,
        0x7f,
        0xff,
        0xffff,
        1 << 28,
        1 << 55,
        u64::MAX - 1,
        u64::MAX,
    ]);
    prop_oneof![
        edges.prop_map(|number| number.to_le_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 1..24),
    ]
}

fn forgery() -> impl Strategy<Value = Forgery> {
    prop_oneof![
        select(kinds()).prop_map(Forgery::Kind),
        any::<u8>().prop_map(Forgery::Kind),
        (any::<Index>(), numbers()).prop_map(|(at, bytes)| Forgery::Write(at, bytes)),
        any::<Index>().prop_map(Forgery::Cut),
        proptest::collection::vec(any::<u8>(), 0..300).prop_map(Forgery::Grow),
    ]
}

/// The events of a log that has one of each, as kinds and bodies.
fn sound() -> Vec<(u8, Vec<u8>)> {
    let mysql = [
        &[1][..],
        &[9; 16],
        &7u64.to_le_bytes(),
        &[2],
        &[0; 16],
        &[1; 14],
    ]
    .concat();
    let interval = [&1u64.to_le_bytes()[..], &[9; 16], &1u64.to_le_bytes()].concat();
    let interval = [
        interval,
        1u64.to_le_bytes().to_vec(),
        8u64.to_le_bytes().to_vec(),
    ]
    .concat();
    let query = |text: &[u8]| [&[0; 8][..], &[1, 0, 0, 2, 0, 9, 9], b"s\0", text].concat();
    let maria = [&5u64.to_le_bytes()[..], &[0; 4], &[0; 7]].concat();
    let list = [
        &1u32.to_le_bytes()[..],
        &[0; 4],
        &[7, 0, 0, 0],
        &4u64.to_le_bytes(),
    ]
    .concat();
    vec![
        (kind::PREVIOUS_GTIDS, interval),
        (kind::MARIADB_GTID_LIST, list),
        (kind::GTID, mysql),
        (kind::QUERY, query(b"BEGIN")),
        (
            kind::TABLE_MAP,
            b"\x07\0\0\0\0\0\x01\0\x04shop\0\x06orders\0\x02\x03\x0f".to_vec(),
        ),
        (kind::XID, vec![1; 8]),
        (kind::MARIADB_GTID, maria),
        (kind::QUERY, query(b"CREATE TABLE t (a INT)")),
        (kind::ROTATE, b"\x04\0\0\0\0\0\0\0b.000002".to_vec()),
    ]
}

fn forge(forgeries: Vec<(Index, Forgery)>) -> Vec<u8> {
    let mut events = sound();
    for (which, forgery) in forgeries {
        let (kind, body) = which.get_mut(&mut events);
        match forgery {
            Forgery::Kind(other) => *kind = other,
            Forgery::Write(at, bytes) => {
                let at = at.index(body.len() + 1);
                let end = body.len().min(at + bytes.len());
                body.splice(at..end, bytes);
            }
            Forgery::Cut(at) => body.truncate(at.index(body.len() + 1)),
            Forgery::Grow(bytes) => body.extend(bytes),
        }
    }
    let mut made = Made::new(true);
    made.gtid(1, true);
    made.query("CREATE TABLE s.u (a INT)");
    for (kind, body) in events {
        made.event(kind, &body);
    }
    made.bytes
}

fn look_at_set(set: &GtidSet, length: usize) {
    let text = set.to_string();
    assert!(text.len() <= LARGER * length, "{} of {length}", text.len());
    assert!(set.is_subset(set));
    assert!(set.without(set).is_empty());
    let _ = (text.parse::<GtidSet>(), set.lasts());
}

proptest! {
    #[test]
    fn whatever_is_forged(forgeries in proptest::collection::vec((any::<Index>(), forgery()), 1..6)) {
        let bytes = forge(forgeries);
        let length = bytes.len();
        let mut events = Events::new(Cursor::new(&bytes)).unwrap();
        let (mut groups, mut all) = (Groups::default(), GtidSet::default());
        while let Ok(Some(event)) = events.next_event() {
            let format = events.format().unwrap().clone();
            let content = body(&event.bytes, Some(&format));
            let sets = [GtidSet::parse_previous(content), GtidSet::parse_list(content)];
            for set in sets.iter().flatten() {
                look_at_set(set, length);
            }
            let _ = (change(&event.header, content), started(content));
            if let Ok(rotate) = Rotate::parse(&event.bytes) {
                prop_assert!(!rotate.file.contains('/') && !rotate.file.starts_with('.'));
            }
            let Ok(group) = groups.step(&event, &format) else { break };
            if let Some(group) = group {
                prop_assert!(group.start < group.end && group.end <= length as u64);
                if let Some(gtid) = group.gtid {
                    all.add(&gtid);
                }
            }
        }
        look_at_set(&all, length);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.000001");
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(end) = end_of_file(&path) {
            prop_assert_eq!(end.position + end.cut_off, length as u64);
        }
    }
}
