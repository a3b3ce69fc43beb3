//! Rows of an event as if they were inserted into another table: a server that runs such events (`BINLOG`) reads every
//! type itself, exactly.
//!
//! Source: the pages on TABLE_MAP_EVENT and ROWS_EVENT of the MySQL internals manual and of the MariaDB knowledge base.

use crate::images::{Bytes, is_set};
use crate::{CHECKSUM, HEADER, Header, Layout, kind};

/// Rows events, in both versions: inserted, updated, deleted.
const FIRST: [u8; 3] = [23, 24, 25];
const SECOND: [u8; 3] = [30, 31, 32];
/// Flags of rows: the last of their statement, and foreign keys are not looked at.
const ENDS_STATEMENT: u16 = 1;
const NO_FOREIGN_KEYS: u16 = 2;

/// The rows of an event, each as the body of an event that inserts them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Images {
    /// The kind of event that they are bodies of.
    pub kind: u8,
    /// As they were; none for rows that are new.
    pub before: Option<Vec<u8>>,
    /// As they are afterwards; none for rows that are gone.
    pub after: Option<Vec<u8>>,
}

impl Layout {
    /// Returns the rows of an event; `None` if it does not have every column of them, or is not read here: compressed
    /// ones, and updates of parts of documents.
    #[must_use]
    pub fn images(&self, kind: u8, body: &[u8]) -> Option<Images> {
        let (kinds, has_more) = match FIRST.contains(&kind) {
            true => (FIRST, false),
            false => (SECOND, true),
        };
        let does = kinds.iter().position(|one| *one == kind)?;
        let mut from = Bytes(body);
        let number = from.take(6)?;
        from.take(2)?;
        if has_more {
            let more = usize::from(from.pair()?);
            from.take(more.checked_sub(2)?)?;
        }
        let columns = self.columns();
        if from.number()? != columns {
            return None;
        }
        let bitmap = columns.div_ceil(8);
        let there = from.take(bitmap)?;
        let also = if does == 1 { from.take(bitmap)? } else { there };
        let is_whole = |bits: &[u8]| (0..columns).all(|at| is_set(bits, at));
        if !is_whole(there) || !is_whole(also) || from.0.is_empty() {
            return None;
        }
        let (mut first, mut second) = (Vec::new(), Vec::new());
        while !from.0.is_empty() {
            first.extend(self.raw_row(there, &mut from)?);
            if does == 1 {
                second.extend(self.raw_row(also, &mut from)?);
            }
        }
        let flags = (ENDS_STATEMENT | NO_FOREIGN_KEYS).to_le_bytes();
        let more: &[u8] = if has_more { &[2, 0] } else { &[] };
        let head = [number, &flags, more, &packed(columns), there].concat();
        let whole = |rows: Vec<u8>| Some([head.clone(), rows].concat());
        let (before, after) = match does {
            0 => (None, whole(first)),
            1 => (whole(first), whole(second)),
            _ => (whole(first), None),
        };
        Some(Images {
            kind: kinds[0],
            before,
            after,
        })
    }

    /// Returns the bytes of one row.
    fn raw_row<'b>(&self, there: &[u8], from: &mut Bytes<'b>) -> Option<&'b [u8]> {
        let all = from.0;
        self.row(there, from)?;
        let length = all.len() - from.0.len();
        // Rows without columns have no end.
        all.get(..length).filter(|row| !row.is_empty())
    }
}

/// Returns the body of a table map under another name; `None` for what is none.
#[must_use]
pub fn renamed(map: &[u8], schema: &str, table: &str) -> Option<Vec<u8>> {
    let mut from = Bytes(map);
    let head = from.take(8)?;
    for _ in 0..2 {
        let length = usize::from(from.byte()?);
        from.take(length + 1)?;
    }
    let name = |text: &str| {
        let length = u8::try_from(text.len()).ok()?;
        Some([&[length], text.as_bytes(), &[0]].concat())
    };
    Some([head, &name(schema)?, &name(table)?, from.0].concat())
}

/// Returns an event with this body, as a server with or without checksums writes it.
#[must_use]
pub fn event_of(kind: u8, server: u32, body: &[u8], has_checksum: bool) -> Vec<u8> {
    let checksum = if has_checksum { CHECKSUM } else { 0 };
    let header = Header {
        time: 0,
        kind,
        server,
        length: (HEADER + body.len() + checksum) as u32,
        next: 0,
        flags: 0,
    };
    let mut event = [&header.bytes()[..], body].concat();
    if has_checksum {
        event.extend(crc32fast::hash(&event).to_le_bytes());
    }
    event
}

/// Whether an event begins a transaction.
#[must_use]
pub fn begins_group(header: &Header, body: &[u8]) -> bool {
    match header.kind {
        kind::GTID | kind::ANONYMOUS_GTID | kind::GTID_TAGGED | kind::MARIADB_GTID => true,
        kind::QUERY => crate::statement(body) == Some(b"BEGIN"),
        _ => false,
    }
}

fn packed(number: usize) -> Vec<u8> {
    match u8::try_from(number) {
        Ok(short @ 0..=250) => vec![short],
        _ => [&[252][..], &(number as u16).to_le_bytes()].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use proptest::prelude::*;

    /// INT, VARCHAR(300).
    const MAP: &[u8] = b"\x07\0\0\0\0\0\x01\0\x01d\0\x01t\0\x02\x03\x0f\x02\x2c\x01\x03";

    fn row(id: u8, text: &[u8]) -> Vec<u8> {
        [&[0, id, 0, 0, 0, text.len() as u8, 0], text].concat()
    }

    fn body(head: &[u8], bitmaps: &[u8], rows: &[Vec<u8>]) -> Vec<u8> {
        let number = b"\x07\0\0\0\0\0\x01\0";
        [&number[..], head, &[2], bitmaps, &rows.concat()].concat()
    }

    #[test]
    fn updates_are_two_inserts() {
        let layout = Layout::of(MAP).unwrap();
        let rows = [row(1, b"old"), row(1, b"newer"), row(2, b""), row(3, b"x")];
        for (kind, inserts, head) in [(24, 23, &b""[..]), (31, 30, b"\x06\0abcd")] {
            let images = layout.images(kind, &body(head, &[3, 3], &rows)).unwrap();
            let more: &[u8] = if kind == 31 { &[2, 0] } else { &[] };
            let part = |rows: &[Vec<u8>]| {
                let head = [&b"\x07\0\0\0\0\0\x03\0"[..], more].concat();
                Some([&head[..], &[2, 3], &rows.concat()].concat())
            };
            assert_eq!(images.kind, inserts);
            assert_eq!(images.before, part(&[rows[0].clone(), rows[2].clone()]));
            assert_eq!(images.after, part(&[rows[1].clone(), rows[3].clone()]));
        }
    }

    #[test]
    fn inserts_and_deletes_have_one_side() {
        let layout = Layout::of(MAP).unwrap();
        let rows = [row(1, b"a"), row(2, b"b")];
        let inserted = layout.images(23, &body(b"", &[3], &rows)).unwrap();
        assert!(inserted.before.is_none() && inserted.after.is_some());
        let deleted = layout.images(32, &body(b"\x02\0", &[3], &rows)).unwrap();
        assert!(deleted.after.is_none() && deleted.before.is_some());
        assert_eq!((inserted.kind, deleted.kind), (23, 30));
    }

    #[test]
    fn what_is_not_whole_is_not_read() {
        let layout = Layout::of(MAP).unwrap();
        let rows = [row(1, b"a"), row(2, b"b")];
        assert_eq!(
            layout.images(24, &body(b"", &[1, 3], &rows)),
            None,
            "a part of the columns"
        );
        assert_eq!(
            layout.images(24, &body(b"", &[3, 3], &rows[..1])),
            None,
            "half a pair"
        );
        assert_eq!(layout.images(23, &body(b"", &[3], &[])), None, "no row");
        // Sound rows of the first column alone.
        let first = [vec![0, 1, 0, 0, 0], vec![0, 2, 0, 0, 0]];
        assert_eq!(layout.images(23, &body(b"", &[1], &first)), None);
        assert_eq!(layout.images(24, &body(b"", &[1, 1], &first)), None);
        for compressed in [166, 167, 168, 39] {
            assert_eq!(layout.images(compressed, &body(b"", &[3, 3], &rows)), None);
        }
    }

    #[test]
    fn a_map_has_another_name_and_nothing_else() {
        let other = renamed(MAP, "a_schema", "x").unwrap();
        assert_eq!(Layout::of(&other), Layout::of(MAP));
        assert_eq!(&other[8..20], b"\x08a_schema\0\x01x");
        assert_eq!(renamed(&other, "d", "t").unwrap(), MAP);
        assert_eq!(renamed(MAP, &"x".repeat(256), "t"), None);
    }

    #[test]
    fn events_have_the_checksum_of_their_format() {
        let format = |checksums| Format {
            server_version: String::new(),
            server: 1,
            checksums,
        };
        for checksums in [false, true] {
            let event = event_of(19, 7, MAP, checksums);
            assert_eq!(crate::body(&event, Some(&format(checksums))), MAP);
            format(checksums).verify(&event).unwrap();
            assert_eq!(Header::parse(&event).unwrap().length as usize, event.len());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(kind: u8, rows in proptest::collection::vec(any::<u8>(), 0..80)) {
            let layout = Layout::of(MAP).unwrap();
            let _ = layout.images(kind, &rows);
            let _ = renamed(&rows, "a", "b");
        }
    }
}
