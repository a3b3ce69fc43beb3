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
use std::time::{Duration, Instant};

/// How long that may take.
const WITHIN: Duration = Duration::from_secs(60);
/// No more is read, from where the SQL thread is to the event.
const BYTES_MAX: usize = 256 << 20;
/// No longer event is run as a statement.
const EVENT_MAX: usize = 8 << 20;

/// An event of rows of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowsEvent {
    pub(super) kind: u8,
    pub(super) done: Done,
    pub(super) server: u32,
    /// The bodies of its table map, and of itself.
    pub(super) map: Vec<u8>,
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
    maps: BTreeMap<u64, Vec<u8>>,
    events: Vec<RowsEvent>,
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
                    self.maps.insert(number, body.to_vec());
                }
            }
            Change::Rows { number, done } => {
                if let Some(map) = self.maps.get(&number) {
                    if body.len() > EVENT_MAX {
                        return Err(Error::refused("its event is too long to be read here"));
                    }
                    self.events.push(RowsEvent {
                        kind: header.kind,
                        done,
                        server: header.server,
                        map: map.clone(),
                        rows: body.to_vec(),
                    });
                }
                return Ok(self.is_it(&header));
            }
            _ => {}
        }
        let is_end = header.kind == kind::XID
            || header.kind == kind::QUERY && statement(body) == Some(b"COMMIT");
        // Without its place, it is one of the first transaction's.
        Ok(is_end && self.failed.end.is_none())
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
        Ok(Fetched {
            format,
            checksums: parsed.checksums,
            events: self.events,
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
