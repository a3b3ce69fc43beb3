//! Which tables were written to between two views of a server: what its binary log says of it, and
//! whether it says all.

use super::cascades::Written;
use super::catalog::Look;
use super::journal::View;
use super::shapes::{Columns, Shapes, key};
use super::statement::Names;
use evenkeel_binlog::{Change, Format, Header, Layout, Rotate, body, change, kind, started};
use evenkeel_op::{Cancel, Error, Result};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::{Row, Session};
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::{BinlogRequest, BinlogStream, Received};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

/// What of a log is read before it counts as longer than what it could save, in bytes.
const LOG_MIN: u64 = 64 << 20;

/// Tables that were written to, as [`key`] has them.
#[derive(Debug, Default)]
pub(super) struct Touched {
    /// As the log says.
    pub(super) logged: BTreeMap<String, Written>,
    /// As InnoDB says.
    pub(super) noticed: BTreeSet<String>,
}

/// Fills in what the view says of its server.
pub(super) fn describe(view: &mut View, time: u64, session: &mut Session) -> Result<()> {
    view.time = time;
    let row = session.one("SELECT @@server_id, @@hostname, @@datadir")?;
    let text = |at: usize| row.as_ref().and_then(|row| row.at(at)).unwrap_or_default();
    let place = format!("{} {} {}", text(0), text(1), text(2));
    let uuid = session.variable("server_uuid")?.unwrap_or_default();
    view.server = format!("{place} {uuid}");
    let is = |found: Option<String>| found.as_deref() == Some("1");
    view.durable = is(session.variable("innodb_flush_log_at_trx_commit")?)
        && is(session.variable("sync_binlog")?);
    Ok(())
}

/// Returns the server's clock, in seconds since 1970.
pub(super) fn clock(session: &mut Session) -> Result<u64> {
    let now = session.value("SELECT UNIX_TIMESTAMP()")?;
    now.and_then(|text| text.split('.').next()?.parse().ok())
        .ok_or_else(|| Error::failed("the server does not report its time"))
}

/// Returns the tables that were written to after one view and before another; the inner error says in
/// words why that cannot be known. At most `worth` bytes of the log are read, or 64 MiB.
pub(super) fn between(
    options: &ConnectOptions,
    (session, look, shapes): (&mut Session, &Look, &Shapes),
    (first, second): (&View, &View),
    worth: u64,
    cancel: &Cancel,
) -> Result<Result<Touched, String>> {
    if let Err(why) = comparable(first, second) {
        return Ok(Err(why));
    }
    if let Err(why) = logs_everything(session) {
        return Ok(Err(why));
    }
    let names = Names::read(session, look)?;
    let mut reading = match Reading::open(options, (first, second), &names, shapes) {
        Ok(reading) => reading,
        Err(why) => return Ok(Err(why)),
    };
    reading.most = worth.max(LOG_MIN);
    let logged = match reading.finish(cancel)? {
        Ok(logged) => logged,
        Err(why) => return Ok(Err(why)),
    };
    // What was not logged (sql_log_bin = 0) InnoDB remembers until it is restarted.
    let sql = format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES \
         WHERE UPDATE_TIME >= FROM_UNIXTIME({})",
        first.time
    );
    let rows = session.rows(&sql)?;
    let name = |at: usize, row: &Row| row.at(at).unwrap_or_default().to_owned();
    let noticed = rows.iter().map(|row| key(&name(0, row), &name(1, row)));
    Ok(Ok(Touched {
        logged,
        noticed: noticed.collect(),
    }))
}

fn comparable(first: &View, second: &View) -> Result<(), String> {
    let why = match (first, second) {
        _ if !first.locked => "the first view was taken without a lock",
        _ if first.server != second.server => "it is another server",
        _ if first.coordinates.binlog_file.is_none() => {
            "the binary log position of the first view is unknown"
        }
        _ if second.coordinates.binlog_file.is_none() => {
            "the binary log position of the new view is unknown"
        }
        _ => return Ok(()),
    };
    Err(why.to_owned())
}

/// Says whether the log has all that was written by others than those who keep it out by hand.
fn logs_everything(session: &mut Session) -> Result<(), String> {
    let reported = |error: Error| format!("the server does not report what it logs: {error}");
    let abilities = Abilities::probe(session).map_err(reported)?;
    let statement = match abilities.show_binary_log_status {
        true => "SHOW BINARY LOG STATUS",
        false => "SHOW MASTER STATUS",
    };
    let row = session.one(statement).map_err(reported)?;
    let filtered = row.is_some_and(|row| {
        let some = |at: usize| row.at(at).is_some_and(|text| !text.is_empty());
        some(2) || some(3)
    });
    if filtered {
        return Err("the server keeps some databases out of its binary log".to_owned());
    }
    let mut is_on = |name: &str| session.variable(name).map_err(reported);
    let forwards = ["log_slave_updates", "log_replica_updates"]
        .into_iter()
        .map(&mut is_on)
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .flatten()
        .any(|value| value == "ON");
    if forwards {
        return Ok(());
    }
    let cluster = is_on("wsrep_on")?.as_deref() == Some("ON");
    let replication = evenkeel_server::replication::Replication::read(session, &abilities);
    if cluster || !replication.map_err(reported)?.channels.is_empty() {
        return Err("the server does not log what it replicates".to_owned());
    }
    Ok(())
}

/// A table whose rows follow.
struct Mapped {
    name: String,
    /// How its columns lie there, if that is known and they are those that it has.
    layout: Option<Layout>,
}

impl Mapped {
    /// Returns the columns that an update changed.
    fn changed(&self, kind: u8, body: &[u8]) -> Columns {
        let changed = self.layout.as_ref().and_then(|one| one.changed(kind, body));
        changed.map_or(Columns::Any, Columns::These)
    }
}

fn note(touched: &mut BTreeMap<String, Written>, table: &str, written: Written) {
    let both = match touched.remove(table) {
        Some(before) => before.and(written),
        None => written,
    };
    touched.insert(table.to_owned(), both);
}

/// A log on its way through.
struct Reading<'a> {
    stream: BinlogStream,
    first: &'a View,
    second: &'a View,
    names: &'a Names,
    shapes: &'a Shapes,
    file: String,
    position: u64,
    format: Option<Format>,
    /// The last event of the file before said that the server was shut down.
    stopped: bool,
    seen: u64,
    most: u64,
    /// By the number that rows name them by.
    mapped: BTreeMap<u64, Mapped>,
    touched: BTreeMap<String, Written>,
}

impl<'a> Reading<'a> {
    fn open(
        options: &ConnectOptions,
        (first, second): (&'a View, &'a View),
        names: &'a Names,
        shapes: &'a Shapes,
    ) -> Result<Self, String> {
        let from = &first.coordinates;
        let (file, position) = (
            from.binlog_file.clone().unwrap_or_default(),
            from.binlog_position.unwrap_or_default(),
        );
        let wanted = BinlogRequest {
            file: &file,
            position,
            replica: replica(),
            semi_sync: false,
            compress: false,
        };
        let stream = BinlogStream::open(options, wanted)
            .map_err(|error| format!("the binary log cannot be read: {error}"))?;
        Ok(Self {
            stream,
            first,
            second,
            names,
            shapes,
            file,
            position,
            format: None,
            stopped: false,
            seen: 0,
            most: 0,
            mapped: BTreeMap::new(),
            touched: BTreeMap::new(),
        })
    }

    fn finish(mut self, cancel: &Cancel) -> Result<Result<BTreeMap<String, Written>, String>> {
        while !self.is_there() {
            cancel.check()?;
            let event = match self.stream.receive() {
                Ok(Received::Event(event) | Received::Asking(event)) => event,
                Ok(Received::Nothing) => continue,
                Ok(Received::End) => {
                    return Ok(Err("the binary log ends before the new view".to_owned()));
                }
                Err(error) => return Ok(Err(format!("the binary log cannot be read: {error}"))),
            };
            match self.take(&event) {
                Ok(Ok(())) => {}
                Ok(Err(why)) => return Ok(Err(why)),
                Err(error) => return Ok(Err(format!("the binary log is damaged: {error}"))),
            }
        }
        Ok(Ok(self.touched))
    }

    /// Returns whether the new view was reached. The file's first event is always waited for.
    fn is_there(&self) -> bool {
        let to = &self.second.coordinates;
        self.format.is_some()
            && to.binlog_file.as_ref() == Some(&self.file)
            && to.binlog_position.is_some_and(|end| self.position >= end)
    }

    fn take(&mut self, event: &[u8]) -> Result<Result<(), String>> {
        let header = Header::parse(event)?;
        self.seen += event.len() as u64;
        if self.seen > self.most {
            return Ok(Err(
                "reading the binary log since the first view would cost more than it saves"
                    .to_owned(),
            ));
        }
        let is_first = header.kind == kind::FORMAT_DESCRIPTION;
        if is_first {
            self.mapped.clear();
            let begun = self.format.is_none();
            self.format = Some(Format::parse(event)?);
            // Else it is a log that was reset and began again under the same name.
            if begun && u64::from(header.time) >= self.first.time {
                return Ok(Err(
                    "the binary log was reset since the first view".to_owned()
                ));
            }
            let content = body(event, self.format.as_ref());
            let crashed = !begun && started(content) != 0 && !self.stopped;
            if crashed && !(self.first.durable && self.second.durable) {
                return Ok(Err("the server has crashed, and without \
                     innodb_flush_log_at_trx_commit = 1 and sync_binlog = 1 its log may not say what \
                     it lost"
                    .to_owned()));
            }
        }
        if header.kind == kind::ROTATE {
            let next = Rotate::parse(event)?;
            if next.file != self.file {
                (self.file, self.position) = (next.file, next.position);
            }
            return Ok(Ok(()));
        }
        if header.is_artificial() || matches!(header.kind, kind::HEARTBEAT | kind::HEARTBEAT_V2) {
            return Ok(Ok(()));
        }
        self.stopped = header.kind == kind::STOP;
        if let Some(format) = self.format.as_ref().filter(|_| !is_first) {
            format.verify(event)?;
        }
        self.position += event.len() as u64;
        let body = body(event, self.format.as_ref());
        Ok(self.note_change(&header, body))
    }

    fn note_change(&mut self, header: &Header, body: &[u8]) -> Result<(), String> {
        match change(header, body) {
            Change::Nothing => {}
            Change::Table {
                number,
                schema,
                table,
            } => {
                let name = key(&schema, &table);
                let is_known = |layout: &Layout| layout.columns() == self.shapes.width(&name);
                let layout = Layout::of(body).filter(is_known);
                self.mapped.insert(number, Mapped { name, layout });
            }
            Change::Rows { number, done } => match self.mapped.get(&number) {
                Some(table) => {
                    let written = Written::of(done, table.changed(header.kind, body));
                    note(&mut self.touched, &table.name, written);
                }
                None => return Err(self.unsaid("rows of a table without a name")),
            },
            Change::Statement(text) => match self.names.touched(&text) {
                Ok(tables) => {
                    for one in tables {
                        note(&mut self.touched, one, Written::ANYHOW);
                    }
                }
                Err(what) => return Err(self.unsaid(&what)),
            },
            Change::Unsaid(what) => return Err(self.unsaid(&what)),
        }
        Ok(())
    }

    fn unsaid(&self, what: &str) -> String {
        let (file, end) = (&self.file, self.position);
        format!(
            "the binary log does not say which tables {what} wrote to (it ends at {file}:{end})"
        )
    }
}

/// An id that no replica is likely to have, another one in each process.
fn replica() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.subsec_nanos());
    0x8000_0000 | (nanos.rotate_left(7) ^ std::process::id()) & 0x7fff_ffff
}
