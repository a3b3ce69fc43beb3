//! The events of a transaction that failed, from the source's binary log.

use super::failed::{FailedEvent, Gtid};
use crate::checksum::TableName;
use evenkeel_binlog::{
    Change, Done, Format, Header, Rotate, begins_group, body, change, kind, statement,
};
use evenkeel_op::{Cancel, Error, Result, units};
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::replication::Position;
use evenkeel_wire::{BinlogRequest, BinlogStream, Received};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How long that may take.
const WITHIN: Duration = Duration::from_secs(60);
/// No more is read, from where the SQL thread is to the event.
const BYTES_MAX: usize = 256 << 20;
/// No longer event is run as a statement.
const EVENT_MAX: usize = 8 << 20;
/// No more events of a transaction are kept, nor more bytes of them.
const EVENTS_MAX: usize = 1000;
const KEPT_MAX: usize = 64 << 20;

/// An event of rows of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowsEvent {
    pub(super) kind: u8,
    pub(super) done: Done,
    pub(super) server: u32,
    /// The bodies of its table map, and of itself.
    pub(super) map: Rc<[u8]>,
    pub(super) rows: Vec<u8>,
}

/// What was fetched.
#[derive(Debug)]
pub(super) struct Fetched {
    /// The format description of their file, as it is.
    pub(super) format: Vec<u8>,
    pub(super) checksums: bool,
    /// Those of the table in its transaction, up to the one that failed.
    pub(super) events: Vec<RowsEvent>,
    /// Whether its transaction changes other tables before: those may change rows of this one.
    pub(super) has_others: bool,
    /// Whether the last one is known to be the one that failed; else it is one of them.
    pub(super) ends_there: bool,
}

/// Fetches them.
///
/// Errors: those of the stream; `Refused` where the event is not found, or cannot be read here.
pub(super) fn fetch(
    source: &ConnectOptions,
    from: &Position,
    failed: &FailedEvent,
    cancel: &Cancel,
) -> Result<Fetched> {
    let wanted = BinlogRequest {
        file: &from.file,
        position: from.position,
        replica: replica_id(),
        semi_sync: false,
        compress: false,
    };
    let mut stream = BinlogStream::open(source, wanted)?;
    let mut reading = Reading::new(from, failed);
    let until = Instant::now() + WITHIN;
    let mut read = 0;
    loop {
        cancel.check()?;
        let event = match stream.receive()? {
            Received::Event(event) | Received::Asking(event) => event,
            Received::Nothing if Instant::now() < until => continue,
            Received::Nothing | Received::End => return Err(not_found()),
        };
        read += event.len();
        if read > BYTES_MAX {
            return Err(Error::refused(format!(
                "the event is more than {} behind the SQL thread's position",
                units::bytes(BYTES_MAX as u64)
            )));
        }
        if reading.take(&event)? {
            return reading.fetched();
        }
        if Instant::now() > until {
            return Err(not_found());
        }
    }
}

fn not_found() -> Error {
    Error::refused(
        "the source's binary log does not have the event where the replica says that it is",
    )
}

struct Reading<'a> {
    failed: &'a FailedEvent,
    file: String,
    /// It is the file where the SQL thread is.
    is_first_file: bool,
    /// The transaction may be the one that failed.
    is_transaction: bool,
    format: Option<(Vec<u8>, Format)>,
    maps: BTreeMap<u64, Rc<[u8]>>,
    events: Vec<RowsEvent>,
    /// Bytes of their rows.
    kept: usize,
    has_others: bool,
    /// Its transaction changes what no event of rows says.
    is_opaque: bool,
}

impl<'a> Reading<'a> {
    fn new(from: &Position, failed: &'a FailedEvent) -> Self {
        Self {
            failed,
            file: from.file.clone(),
            is_first_file: true,
            is_transaction: failed.gtid.is_none(),
            format: None,
            maps: BTreeMap::new(),
            events: Vec::new(),
            kept: 0,
            has_others: false,
            is_opaque: false,
        }
    }

    /// Takes an event; returns whether it was the last one that is wanted.
    fn take(&mut self, event: &[u8]) -> Result<bool> {
        let header = Header::parse(event)?;
        match header.kind {
            kind::FORMAT_DESCRIPTION => {
                self.format = Some((event.to_vec(), Format::parse(event)?));
                return Ok(false);
            }
            kind::ROTATE => {
                let next = Rotate::parse(event)?.file;
                self.is_first_file &= next == self.file;
                self.file = next;
                return Ok(false);
            }
            // The source has sent everything.
            kind::HEARTBEAT | kind::HEARTBEAT_V2 => return Err(not_found()),
            _ => {}
        }
        let format = self.format.as_ref().map(|(_, format)| format);
        let format =
            format.ok_or_else(|| Error::failed("a binary log begins without its format"))?;
        format.verify(event)?;
        let body = body(event, Some(format));
        if begins_group(&header, body) {
            self.events.clear();
            self.maps.clear();
            self.kept = 0;
            (self.has_others, self.is_opaque) = (false, false);
        }
        if let (kind::GTID, Some(wanted)) = (header.kind, self.failed.gtid) {
            self.is_transaction = gtid_of(body) == Some(wanted);
        }
        if header.kind == kind::TRANSACTION_PAYLOAD {
            return Err(Error::refused(
                "the source compresses transactions (binlog_transaction_compression): they are not read here",
            ));
        }
        let is_wanted = |schema: &str, table: &str| {
            *self.failed.table.database == *schema && *self.failed.table.table == *table
        };
        match change(&header, body) {
            Change::Table {
                number,
                schema,
                table,
            } => {
                self.maps.remove(&number);
                if is_wanted(&schema, &table) {
                    self.maps.insert(number, body.into());
                }
            }
            Change::Rows { number, done } => {
                let map = self.maps.get(&number).cloned();
                self.rows(&header, body, done, map)?;
                return Ok(self.is_it(&header));
            }
            Change::Statement(_) | Change::Unsaid(_) => self.is_opaque = true,
            Change::Nothing => {}
        }
        let is_end = matches!(header.kind, kind::XID | kind::XA_PREPARE)
            || header.kind == kind::QUERY && statement(body) == Some(b"COMMIT");
        // Without its place, it is one of the first transaction's.
        Ok(is_end && self.failed.end.is_none())
    }

    /// Keeps an event of rows, if it is of the table.
    fn rows(
        &mut self,
        header: &Header,
        body: &[u8],
        done: Done,
        map: Option<Rc<[u8]>>,
    ) -> Result<()> {
        let Some(map) = map else {
            self.has_others = true;
            return match self.is_it(header) {
                false => Ok(()),
                true => Err(refused(
                    &self.failed.table,
                    "the event there is of another table, or its name is written otherwise",
                )),
            };
        };
        self.kept += body.len();
        let is_too_much = body.len() > EVENT_MAX || self.kept > KEPT_MAX;
        if is_too_much || self.events.len() >= EVENTS_MAX {
            return Err(refused(
                &self.failed.table,
                "its event, or what its transaction does before, is too long to be read here",
            ));
        }
        self.events.push(RowsEvent {
            kind: header.kind,
            done,
            server: header.server,
            map,
            rows: body.to_vec(),
        });
        Ok(())
    }

    fn is_it(&self, header: &Header) -> bool {
        let is_file = match &self.failed.file {
            Some(file) => *file == self.file,
            None => self.is_first_file || self.failed.gtid.is_some(),
        };
        let is_end = |end: u64| header.next != 0 && header.next == end as u32;
        self.is_transaction && is_file && self.failed.end.is_some_and(is_end)
    }

    fn fetched(self) -> Result<Fetched> {
        let (format, parsed) = self.format.ok_or_else(not_found)?;
        if self.events.is_empty() {
            return Err(not_found());
        }
        if self.is_opaque {
            return Err(refused(
                &self.failed.table,
                "its transaction has statements, too, and nobody can say which rows they change",
            ));
        }
        Ok(Fetched {
            format,
            checksums: parsed.checksums,
            events: self.events,
            has_others: self.has_others,
            ends_there: self.failed.end.is_some(),
        })
    }
}

/// Reads the name of a transaction. Body: `u8 flags, 16 bytes UUID, u64 number`.
fn gtid_of(body: &[u8]) -> Option<Gtid> {
    let uuid = *body.get(1..)?.first_chunk()?;
    Some((uuid, u64::from_le_bytes(*body.get(17..)?.first_chunk()?)))
}

/// An id that no replica is likely to have, another one in each process.
fn replica_id() -> u32 {
    let nanos = jiff::Timestamp::now().subsec_nanosecond().unsigned_abs();
    0x8000_0000 | (nanos.rotate_left(5) ^ std::process::id()) & 0x7fff_ffff
}

/// Says which table it is, for messages.
pub(super) fn refused(table: &TableName, why: &str) -> Error {
    Error::refused(format!("{table} is not repaired: {why}"))
}
