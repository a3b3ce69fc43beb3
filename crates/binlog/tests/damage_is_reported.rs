//! Does every cut and every flipped bit of a binary log end in an error or a torn tail?

mod made;

use evenkeel_binlog::{Event, Events, Format, Groups, Header, Rotate, Tail, kind};
use made::Made;
use proptest::prelude::*;
use std::io::Cursor;

/// Reads a file to its end; the events before an error too.
fn read(bytes: &[u8]) -> (Vec<Event>, Result<Tail, String>) {
    let mut all = Vec::new();
    let mut events = match Events::new(Cursor::new(bytes)) {
        Ok(events) => events,
        Err(error) => return (all, Err(error.chain())),
    };
    loop {
        match events.next_event() {
            Ok(Some(event)) => all.push(event),
            Ok(None) => return (all, Ok(events.tail().unwrap())),
            Err(error) => return (all, Err(error.chain())),
        }
    }
}

fn file(checksums: bool) -> Vec<u8> {
    let mut made = Made::new(checksums);
    made.gtid(1, true);
    made.query("CREATE TABLE t (a INT)");
    made.gtid(2, false);
    made.query("INSERT INTO t VALUES (1)");
    made.event(kind::XID, &[1; 8]);
    made.event(kind::ROTATE, b"\x04\0\0\0\0\0\0\0b.000002");
    made.bytes
}

#[test]
fn a_cut_is_a_torn_tail() {
    let whole = file(true);
    let (all, end) = read(&whole);
    assert_eq!((all.len(), end), (7, Ok(Tail::Clean)));
    let ends: Vec<u64> = [4].into_iter().chain(all.iter().map(Event::end)).collect();
    for cut in 0..whole.len() as u64 {
        let (events, end) = read(&whole[..cut as usize]);
        let last = ends.iter().rev().find(|end| **end <= cut).copied();
        let expected = match last {
            Some(last) if last == cut => Tail::Clean,
            Some(position) => Tail::Torn { position },
            None => Tail::Torn { position: 0 },
        };
        assert_eq!(end, Ok(expected), "cut at {cut}");
        assert_eq!(events, all[..events.len()], "cut at {cut}");
    }
}

#[test]
fn a_flipped_bit_is_never_read() {
    let whole = file(true);
    let (all, _) = read(&whole);
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let (events, end) = read(&bytes);
        let before = events.iter().zip(&all).take_while(|(a, b)| a == b).count();
        // The server sets this flag and clears it again without a new checksum.
        let in_use = bit == (4 + 17) * 8;
        assert!(in_use || before == events.len(), "bit {bit}");
        assert!(in_use || end != Ok(Tail::Clean), "bit {bit}");
    }
}

#[test]
fn an_encrypted_file_is_refused() {
    let mut made = Made::new(true);
    made.event(kind::MARIADB_START_ENCRYPTION, &[1; 17]);
    assert!(read(&made.bytes).1.unwrap_err().contains("encrypted"));
    let mut mysql = file(true);
    mysql[0] = 0xfd;
    assert!(read(&mysql).1.unwrap_err().contains("encrypted"));
    assert!(read(b"hello").1.unwrap_err().contains("not a binary log"));
}

#[test]
fn a_name_that_leads_elsewhere_is_damage() {
    let rotate = |name: &[u8]| {
        let mut made = Made::new(true);
        let from = made.bytes.len();
        made.event(kind::ROTATE, &[&[4, 0, 0, 0, 0, 0, 0, 0], name].concat());
        Rotate::parse(&made.bytes[from..])
    };
    assert_eq!(rotate(b"b.000002").unwrap().file, "b.000002");
    for name in [
        &b""[..],
        b"../b.000002",
        b"a/b.000002",
        b".hidden",
        b"b\n",
        b"\xff.1",
    ] {
        assert!(rotate(name).is_err(), "{name:?}");
    }
}

fn any_header() -> impl Strategy<Value = Header> {
    (
        any::<(u32, u8, u32)>(),
        19..=evenkeel_binlog::EVENT_MAX,
        any::<(u32, u16)>(),
    )
        .prop_map(|((time, kind, server), length, (next, flags))| Header {
            time,
            kind,
            server,
            length,
            next,
            flags,
        })
}

proptest! {
    #[test]
    fn headers_read_back(header in any_header()) {
        prop_assert_eq!(Header::parse(&header.bytes()).unwrap(), header);
    }

    #[test]
    fn nothing_panics(junk in proptest::collection::vec(any::<u8>(), 0..200), kind in any::<u8>()) {
        let _ = (Header::parse(&junk), Format::parse(&junk), Rotate::parse(&junk));
        let mut made = Made::new(false);
        let format = Format::parse(&made.bytes[4..]).unwrap();
        made.event(kind, &junk);
        let mut groups = Groups::default();
        for event in read(&made.bytes).0 {
            let _ = groups.step(&event, &format);
        }
    }

    #[test]
    fn files_without_checksums_never_panic(at in 0usize..400, byte in any::<u8>()) {
        let mut bytes = file(false);
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = read(&bytes);
    }
}
