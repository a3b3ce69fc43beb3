//! A connection with its statements, and the transactions.

use super::{Compat, Distribution, Mode, Shape, tables};
use evenkeel_drive::{Outcome, Revival, Unit, Work};
use evenkeel_op::{Cancel, Error, ErrorKind, Result};
use evenkeel_server::connect::quote_name;
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::{Connection, Prepared, Value};
use fastrand::Rng;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Rows of a range.
const RANGE: u32 = 100;
/// Rows asked for by their keys.
const POINTS: u32 = 10;
/// Kinds of failures that are distinguished.
const FAILURES_TOLD: usize = 20;

/// The statements of each table, by their place here.
const STATEMENTS: [&str; 9] = [
    "SELECT c FROM sbtest# WHERE id=?",
    "SELECT c FROM sbtest# WHERE id BETWEEN ? AND ?",
    "SELECT SUM(k) FROM sbtest# WHERE id BETWEEN ? AND ?",
    "SELECT c FROM sbtest# WHERE id BETWEEN ? AND ? ORDER BY c",
    "SELECT DISTINCT c FROM sbtest# WHERE id BETWEEN ? AND ? ORDER BY c",
    "UPDATE sbtest# SET k=k+1 WHERE id=?",
    "UPDATE sbtest# SET c=? WHERE id=?",
    "DELETE FROM sbtest# WHERE id=?",
    "INSERT INTO sbtest# (id, k, c, pad) VALUES (?, ?, ?, ?)",
];
const POINT: usize = 0;
const RANGES: [usize; 4] = [1, 2, 3, 4];
const UPDATE_K: usize = 5;
const UPDATE_C: usize = 6;
const DELETE: usize = 7;
const INSERT: usize = 8;

/// What all sessions of a run have in common.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) options: ConnectOptions,
    pub(super) database: String,
    pub(super) mode: Mode,
    pub(super) compat: Compat,
    pub(super) shape: Shape,
    pub(super) distribution: Distribution,
    pub(super) prepared: bool,
    /// Stops a session that waits for its server.
    pub(super) cancel: Cancel,
    /// Transactions done, those among them that end after the last interval.
    pub(super) transactions: AtomicU64,
    /// Their statements.
    pub(super) statements: AtomicU64,
    /// Failures, in the server's words, and how often each.
    pub(super) failures: Mutex<BTreeMap<String, u64>>,
}

/// A connection and what it prepared.
#[derive(Debug)]
struct Link {
    connection: Connection,
    /// Of each table, in the order of `STATEMENTS`; none where they go as text.
    prepared: Vec<Vec<Prepared>>,
    text: Vec<u8>,
    sent: u64,
}

/// One session.
#[derive(Debug)]
pub(super) struct Session {
    common: Arc<Common>,
    random: Rng,
    link: Option<Link>,
    c: Vec<u8>,
    pad: Vec<u8>,
}

impl Link {
    fn open(common: &Common) -> Result<Self> {
        let mut connection = Connection::open(&common.options, &common.cancel)?;
        connection.run(&format!("USE {}", quote_name(&common.database)))?;
        let mut prepared = Vec::new();
        let tables = if common.prepared {
            common.shape.tables
        } else {
            0
        };
        for table in 1..=tables {
            let number = table.to_string();
            let mut own = Vec::with_capacity(STATEMENTS.len());
            for sql in STATEMENTS {
                own.push(connection.prepare(&sql.replace('#', &number))?);
            }
            prepared.push(own);
        }
        Ok(Self {
            connection,
            prepared,
            text: Vec::new(),
            sent: 0,
        })
    }

    fn plain(&mut self, sql: &str) -> Result<()> {
        self.sent += 1;
        self.connection.run(sql).map(|_| ())
    }

    /// Runs a statement on a table, which counts from 1.
    fn run(&mut self, table: u32, which: usize, values: &[Value<'_>]) -> Result<()> {
        self.sent += 1;
        if let Some(own) = self.prepared.get_mut(table as usize - 1) {
            return self.connection.execute(&mut own[which], values).map(|_| ());
        }
        self.text.clear();
        write(&mut self.text, STATEMENTS[which], table, values);
        self.connection.run_bytes(&self.text).map(|_| ())
    }
}

/// Writes a statement with its values in their places.
fn write(into: &mut Vec<u8>, sql: &str, table: u32, values: &[Value<'_>]) {
    let mut values = values.iter();
    for byte in sql.bytes() {
        match byte {
            b'#' => into.extend_from_slice(table.to_string().as_bytes()),
            b'?' => match values.next() {
                Some(Value::Number(number)) => {
                    into.extend_from_slice(number.to_string().as_bytes())
                }
                // Digits and dashes: nothing that would have to be escaped.
                Some(Value::Text(text)) => {
                    into.push(b'\'');
                    into.extend_from_slice(text);
                    into.push(b'\'');
                }
                None => into.push(b'?'),
            },
            other => into.push(other),
        }
    }
}

impl Session {
    pub(super) fn open(common: &Arc<Common>, random: Rng) -> Result<Self> {
        Ok(Self {
            link: Some(Link::open(common)?),
            common: Arc::clone(common),
            random,
            c: Vec::new(),
            pad: Vec::new(),
        })
    }

    fn table(&mut self) -> u32 {
        self.random.u32(1..=self.common.shape.tables)
    }

    fn row(&mut self) -> u32 {
        let size = self.common.shape.table_size;
        self.common.distribution.draw(size, &mut self.random)
    }

    fn id(&mut self) -> Value<'static> {
        Value::Number(self.row().into())
    }

    /// Does one transaction.
    fn transact(&mut self, link: &mut Link) -> Result<()> {
        let mode = self.common.mode;
        if mode == Mode::PointSelect {
            let (table, id) = (self.table(), self.id());
            return link.run(table, POINT, &[id]);
        }
        link.plain("BEGIN")?;
        if mode.reads() {
            self.read(link)?;
        }
        if mode.writes() {
            self.write(link)?;
        }
        link.plain("COMMIT")
    }

    fn read(&mut self, link: &mut Link) -> Result<()> {
        let table = self.table();
        for _ in 0..POINTS {
            let id = self.id();
            link.run(table, POINT, &[id])?;
        }
        for which in RANGES {
            let (table, from) = (self.table(), self.row());
            let ends = [from, from + RANGE - 1].map(|id| Value::Number(id.into()));
            link.run(table, which, &ends)?;
        }
        Ok(())
    }

    fn write(&mut self, link: &mut Link) -> Result<()> {
        let (table, id) = (self.table(), self.id());
        link.run(table, UPDATE_K, &[id])?;
        let (table, id) = (self.table(), self.id());
        self.c.clear();
        tables::digits(&mut self.c, 10, &mut self.random);
        link.run(table, UPDATE_C, &[Value::Text(&self.c), id])?;
        let (table, id, k) = (self.table(), self.id(), self.id());
        if self.common.compat == Compat::Old {
            link.run(table, UPDATE_K, &[id])?;
        }
        link.run(table, DELETE, &[id])?;
        self.c.clear();
        self.pad.clear();
        tables::digits(&mut self.c, 10, &mut self.random);
        tables::digits(&mut self.pad, 5, &mut self.random);
        let values = [id, k, Value::Text(&self.c), Value::Text(&self.pad)];
        link.run(table, INSERT, &values)
    }

    fn note(&self, error: &Error) {
        let failures = self.common.failures.lock();
        let mut failures = failures.unwrap_or_else(|e| e.into_inner());
        // The statement behind it has other values each time.
        let reported = error.to_string();
        let reported = reported.split(", in: ").next().unwrap_or_default();
        if failures.len() < FAILURES_TOLD || failures.contains_key(reported) {
            *failures.entry(reported.to_owned()).or_default() += 1;
        }
    }
}

/// Deadlock, a lock not had in time, a row changed since the transaction's snapshot; and a row that
/// another one has just written again after its DELETE. sysbench retries the transaction, too.
fn is_conflict(refusal: Option<u16>) -> bool {
    matches!(refusal, Some(1213 | 1205 | 1020 | 1062))
}

impl Work for Session {
    fn once(&mut self) -> Unit {
        let mut unit = Unit::done(0);
        let Some(mut link) = self.link.take() else {
            return Unit::ended(0, Outcome::Lost);
        };
        loop {
            let before = link.sent;
            let Err(error) = self.transact(&mut link) else {
                let sent = link.sent - before;
                self.common.transactions.fetch_add(1, Ordering::Relaxed);
                self.common.statements.fetch_add(sent, Ordering::Relaxed);
                self.link = Some(link);
                return unit;
            };
            let refusal = link.connection.refusal();
            let is_lost = refusal.is_none()
                || error.kind() == ErrorKind::Unreachable
                || link.connection.run("ROLLBACK").is_err();
            if !is_lost && is_conflict(refusal) && !self.common.cancel.is_cancelled() {
                unit.retries += 1;
                continue;
            }
            if error.kind() != ErrorKind::Interrupted {
                self.note(&error);
            }
            unit.outcome = if is_lost {
                Outcome::Lost
            } else {
                Outcome::Failed
            };
            if !is_lost {
                self.link = Some(link);
            }
            return unit;
        }
    }

    fn revive(&mut self) -> Revival {
        match Link::open(&self.common) {
            Ok(link) => {
                self.link = Some(link);
                Revival::Back
            }
            Err(_) => Revival::NotYet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_go_as_text_too() {
        let mut text = Vec::new();
        let values = [
            Value::Number(7),
            Value::Number(-1),
            Value::Text(b"1-2"),
            Value::Text(b"3"),
        ];
        write(&mut text, STATEMENTS[INSERT], 12, &values);
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "INSERT INTO sbtest12 (id, k, c, pad) VALUES (7, -1, '1-2', '3')"
        );
    }
}
