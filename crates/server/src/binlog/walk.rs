//! Walks the events of a binary log, remembering where the last complete transaction ends.

use super::{BinlogEnd, MariaDbGtids, MySqlGtids};
use evenkeel_op::{Error, Result};
use std::io::{self, BufReader, Read, Seek};

const HEADER: u64 = 19;
const QUERY: u8 = 2;
const XID: u8 = 16;
const GTID: u8 = 33;
const ANONYMOUS_GTID: u8 = 34;
const PREVIOUS_GTIDS: u8 = 35;
const XA_PREPARE: u8 = 38;
const TRANSACTION_PAYLOAD: u8 = 40;
const GTID_TAGGED: u8 = 42;
const MARIA_GTID: u8 = 162;
const MARIA_GTID_LIST: u8 = 163;
const MARIA_START_ENCRYPTION: u8 = 164;
const MARIA_QUERY_COMPRESSED: u8 = 165;

/// Body bytes that are ever needed: a query's start, a GTID. GTID lists are read whole.
const BODY_READ: u64 = 4096;
/// A GTID list larger than this is taken for damage.
const LIST_LIMIT: u64 = 64 << 20;

/// Where in an event group the walk is.
#[derive(Default, Clone, Copy, PartialEq)]
enum Group {
    /// Between groups.
    #[default]
    Outside,
    /// Behind a GTID; the next query says whether a transaction begins or a statement stands alone.
    Announced,
    /// Inside a transaction, which an XID or COMMIT ends.
    Transaction,
}

#[derive(Default)]
struct Walk {
    mysql: MySqlGtids,
    mariadb: MariaDbGtids,
    /// The GTID whose group is not complete yet.
    pending: Option<Pending>,
    group: Group,
}

enum Pending {
    MySql([u8; 16], u64),
    MariaDb(u32, u32, u64),
}

pub(super) fn walk<R: Read + Seek>(reader: &mut BufReader<R>, size: u64) -> Result<BinlogEnd> {
    let mut walk = Walk::default();
    let mut at = 4u64;
    let mut complete = 4u64;
    while let Some(event) = next_event(reader, at, size)? {
        at += event.length;
        walk.step(&event)?;
        if walk.group == Group::Outside {
            complete = at;
        }
    }
    // Each family writes only its own events, so at most one of the two is not empty.
    let gtid = Some(walk.mariadb.to_string())
        .filter(|text| !text.is_empty())
        .or_else(|| Some(walk.mysql.to_string()).filter(|text| !text.is_empty()));
    Ok(BinlogEnd {
        position: complete,
        gtid,
        cut_off: size - complete,
    })
}

struct Event {
    kind: u8,
    server: u32,
    length: u64,
    /// The first bytes of the body; all of it for GTID lists.
    body: Vec<u8>,
}

/// Reads the event at `at`; `None` at the end, also where a crash cut the last event off.
fn next_event<R: Read + Seek>(
    reader: &mut BufReader<R>,
    at: u64,
    size: u64,
) -> Result<Option<Event>> {
    if at + HEADER > size {
        return Ok(None);
    }
    let io = |error: io::Error| Error::failed("failed to read an event").because(error);
    let mut header = [0u8; HEADER as usize];
    reader.read_exact(&mut header).map_err(io)?;
    let length = u64::from(u32::from_le_bytes([
        header[9], header[10], header[11], header[12],
    ]));
    let kind = header[4];
    // Preallocated or half-written tails read as zeros or run past the end.
    if length < HEADER || at + length > size {
        return Ok(None);
    }
    let body_length = length - HEADER;
    let wanted = match kind {
        PREVIOUS_GTIDS | MARIA_GTID_LIST if body_length > LIST_LIMIT => {
            return Err(Error::failed(format!("the GTID list at {at} is damaged")));
        }
        PREVIOUS_GTIDS | MARIA_GTID_LIST => body_length,
        QUERY | GTID | MARIA_GTID => body_length.min(BODY_READ),
        _ => 0,
    };
    let mut body = vec![0u8; wanted as usize];
    reader.read_exact(&mut body).map_err(io)?;
    reader
        .seek_relative((body_length - wanted) as i64)
        .map_err(io)?;
    Ok(Some(Event {
        kind,
        server: u32::from_le_bytes(array(&header[5..9])),
        length,
        body,
    }))
}

impl Walk {
    /// Takes one event; afterwards `group` says whether the file could end here.
    fn step(&mut self, event: &Event) -> Result<()> {
        let damaged = || Error::failed(format!("an event of type {} is damaged", event.kind));
        match event.kind {
            MARIA_START_ENCRYPTION => return Err(Error::refused("the binary log is encrypted")),
            GTID_TAGGED => return Err(Error::refused("the binary log holds tagged GTIDs")),
            PREVIOUS_GTIDS => {
                self.mysql = MySqlGtids::parse_previous(&event.body).ok_or_else(damaged)?;
            }
            MARIA_GTID_LIST => {
                self.mariadb = MariaDbGtids::parse_list(&event.body).ok_or_else(damaged)?;
            }
            GTID => {
                let server = event.body.get(1..17).ok_or_else(damaged)?;
                let number = event.body.get(17..25).ok_or_else(damaged)?;
                let number = u64::from_le_bytes(array(number));
                self.announce(Some(Pending::MySql(array(server), number)));
            }
            ANONYMOUS_GTID => self.announce(None),
            MARIA_GTID => self.begin_mariadb(event).ok_or_else(damaged)?,
            XID | XA_PREPARE | TRANSACTION_PAYLOAD => self.close(),
            QUERY => self.query(&event.body).ok_or_else(damaged)?,
            // Too short to be a transaction's own end, so a compressed query only ever closes a
            // statement that stands alone.
            MARIA_QUERY_COMPRESSED if self.group == Group::Announced => self.close(),
            _ => {}
        }
        Ok(())
    }

    fn announce(&mut self, pending: Option<Pending>) {
        self.pending = pending;
        self.group = Group::Announced;
    }

    /// MariaDB's GTID event is also the BEGIN of a transaction, unless its flag 1 says that one
    /// statement stands alone. Body: `u64 sequence, u32 domain, u8 flags`.
    fn begin_mariadb(&mut self, event: &Event) -> Option<()> {
        let sequence = u64::from_le_bytes(array(event.body.get(..8)?));
        let domain = u32::from_le_bytes(array(event.body.get(8..12)?));
        let standalone = *event.body.get(12)? & 1 != 0;
        self.announce(Some(Pending::MariaDb(domain, event.server, sequence)));
        if !standalone {
            self.group = Group::Transaction;
        }
        Some(())
    }

    /// Body: `u32 thread, u32 seconds, u8 database length, u16 error, u16 status length`, then
    /// status, database, NUL, text and perhaps a checksum of four bytes.
    fn query(&mut self, body: &[u8]) -> Option<()> {
        let database = usize::from(*body.get(8)?);
        let status = usize::from(u16::from_le_bytes(array(body.get(11..13)?)));
        let text = body.get(13 + status + database + 1..).unwrap_or_default();
        let is = |word: &[u8]| {
            matches!(text.len().checked_sub(word.len()), Some(0 | 4))
                && text[..word.len()].eq_ignore_ascii_case(word)
        };
        if is(b"BEGIN") || text.starts_with(b"XA START") {
            self.group = Group::Transaction;
        } else if self.group != Group::Transaction || is(b"COMMIT") || is(b"ROLLBACK") {
            self.close();
        }
        Some(())
    }

    fn close(&mut self) {
        match self.pending.take() {
            Some(Pending::MySql(server, number)) => self.mysql.add(server, number, number),
            Some(Pending::MariaDb(domain, server, number)) => {
                self.mariadb.add(domain, server, number);
            }
            None => {}
        }
        self.group = Group::Outside;
    }
}

/// Copies a slice that the caller cut to the array's length.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0u8; N];
    let length = bytes.len().min(N);
    out[..length].copy_from_slice(&bytes[..length]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn event(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        bytes.push(kind);
        bytes.extend(7u32.to_le_bytes());
        bytes.extend((19 + body.len() as u32).to_le_bytes());
        bytes.extend([0; 6]);
        bytes.extend(body);
        bytes
    }

    fn query(text: &str) -> Vec<u8> {
        let mut body = vec![0; 13];
        body.push(0);
        body.extend(text.as_bytes());
        event(QUERY, &body)
    }

    fn maria_gtid(sequence: u64, flags: u8) -> Vec<u8> {
        let mut body = sequence.to_le_bytes().to_vec();
        body.extend(0u32.to_le_bytes());
        body.push(flags);
        event(MARIA_GTID, &body)
    }

    fn end(events: &[Vec<u8>]) -> BinlogEnd {
        let bytes: Vec<u8> = [vec![0; 4], events.concat()].concat();
        let size = bytes.len() as u64;
        let mut reader = BufReader::new(Cursor::new(bytes));
        reader.seek_relative(4).unwrap();
        walk(&mut reader, size).unwrap()
    }

    #[test]
    fn a_cut_off_transaction_does_not_count() {
        let events = [
            maria_gtid(1, 1),
            query("CREATE TABLE t (a int)"),
            maria_gtid(2, 0),
            query("INSERT INTO t VALUES (1)"),
            event(XID, &[0; 8]),
            maria_gtid(3, 0),
            query("INSERT INTO t VALUES (2)"),
        ];
        let found = end(&events);
        let complete: usize = events[..5].iter().map(Vec::len).sum();
        assert_eq!(found.gtid.as_deref(), Some("0-7-2"));
        assert_eq!(found.position, 4 + complete as u64);
        assert_eq!(found.cut_off, (events[5].len() + events[6].len()) as u64);
    }

    #[test]
    fn every_cut_ends_at_a_boundary() {
        let mut gtid = vec![0u8];
        gtid.extend([9; 16]);
        gtid.extend(5u64.to_le_bytes());
        let events = [
            event(GTID, &gtid),
            query("BEGIN"),
            query("INSERT INTO t VALUES (1)"),
            query("COMMIT"),
        ];
        let whole: Vec<u8> = [vec![0; 4], events.concat()].concat();
        for cut in 4..=whole.len() {
            let mut reader = BufReader::new(Cursor::new(whole[..cut].to_vec()));
            reader.seek_relative(4).unwrap();
            let found = walk(&mut reader, cut as u64).unwrap();
            let expected = if cut == whole.len() { cut } else { 4 };
            assert_eq!(found.position, expected as u64, "cut at {cut}");
            assert_eq!(found.gtid.is_some(), cut == whole.len(), "cut at {cut}");
        }
    }
}
