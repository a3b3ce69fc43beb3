//! A dump as one ordered script. Threads read ahead of each other and write in turn: each range has
//! a number, and what is read before its turn waits in a buffer of limited size.

use super::catalog::named;
use super::chunks::{Cursor, Range};
use super::encode::{Encoder, Format};
use super::request::Request;
use super::script::{Script, comment};
use super::stream_rows::{GATHERED, RowsOut, Taker, stream_rows};
use super::table::DumpTable;
use super::threads::{join, locked};
use crate::objects::{Objects, Phase, Rendering, Statement};
use evenkeel_op::{Cancel, Context, Progress, Result, Run};
use evenkeel_server::throttle::Throttle;
use evenkeel_wire::Connection;
use std::collections::HashMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How much all threads together may hold of what is not their turn yet, in bytes.
const HELD: usize = 64 << 20;
/// The most that one of them may hold.
const HELD_EACH: usize = 8 << 20;
/// How often who waits for a turn looks whether it should stop.
const TICK: Duration = Duration::from_millis(200);
/// What is made before rows.
const BEFORE: [Phase; 3] = [Phase::Accounts, Phase::Databases, Phase::Sequences];
/// What is made after them.
const AFTER: [Phase; 8] = [
    Phase::Histograms,
    Phase::Routines,
    Phase::ViewPlaceholders,
    Phase::Grants,
    Phase::Views,
    Phase::Triggers,
    Phase::Events,
    Phase::Wake,
];

/// What was written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) rows: u64,
    pub(super) ranges: u64,
    /// Of all that was written.
    pub(super) bytes: u64,
}

/// The stream and what was said on it.
pub(super) struct Out<'a> {
    to: &'a mut (dyn Write + Send),
    script: Script,
    how: Rendering,
    sums: Sums,
}

impl<'a> Out<'a> {
    /// Begins the script: everything that comes before tables.
    pub(super) fn begin(
        to: &'a mut (dyn Write + Send),
        objects: &Objects,
        what: &str,
    ) -> Result<Self> {
        let mut opening = Vec::new();
        let mut out = Self {
            to,
            script: Script::begin(objects, what, &mut opening),
            how: Rendering {
                split_tables: false,
                ..Rendering::default()
            },
            sums: Sums::default(),
        };
        out.write(&opening)?;
        for phase in BEFORE {
            out.phase(objects, phase)?;
        }
        Ok(out)
    }

    /// Ends the script with what comes after rows.
    pub(super) fn end(mut self, objects: &Objects) -> Result<Sums> {
        self.script.is_set_otherwise();
        for phase in AFTER {
            self.phase(objects, phase)?;
        }
        let mut text = Vec::new();
        comment(b"end of the dump", &mut text);
        self.write(&text)?;
        self.to.flush().context(|| FAILED)?;
        Ok(self.sums)
    }

    fn phase(&mut self, objects: &Objects, phase: Phase) -> Result<()> {
        let mut text = Vec::new();
        self.script.phase(objects, phase, &self.how, &mut text);
        self.write(&text)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.sums.bytes += bytes.len() as u64;
        self.to.write_all(bytes).context(|| FAILED)
    }
}

const FAILED: &str = "failed to write the dump to its reader";

/// What a thread does next.
enum Claim {
    /// Writes what makes the table.
    Table,
    Rows(Range),
}

/// How far tables are handed out.
struct Claims<'a> {
    /// The table's place, and its ranges once it was begun.
    at: usize,
    cursor: Option<Cursor<'a>>,
    ticket: u64,
}

struct Shared<'a, 'o> {
    tables: &'a [DumpTable],
    creates: HashMap<(String, String), Statement>,
    claims: Mutex<Claims<'a>>,
    /// Whose turn it is. Changes under `waiting`.
    turn: AtomicU64,
    waiting: Mutex<()>,
    moved: Condvar,
    /// Locked only by whose turn it is.
    out: Mutex<&'a mut Out<'o>>,
    /// How large a range should be, and how much of it may wait.
    range_bytes: u64,
    held: usize,
    throttle: &'a Throttle,
    progress: &'a dyn Progress,
    cancel: &'a Cancel,
    stop: AtomicBool,
}

/// Writes all tables in order.
pub(super) fn all(
    connections: Vec<Connection>,
    (objects, tables): (&Objects, &[DumpTable]),
    request: &Request,
    throttle: &Throttle,
    out: &mut Out<'_>,
    run: Run<'_>,
) -> Result<()> {
    let creates = objects.statements(Phase::Tables, &out.how);
    let held = (HELD / connections.len().max(1)).min(HELD_EACH);
    let shared = Shared {
        tables,
        creates: creates
            .into_iter()
            .map(|one| ((one.object.database.clone(), one.object.name.clone()), one))
            .collect(),
        claims: Mutex::new(Claims {
            at: 0,
            cursor: None,
            ticket: 0,
        }),
        turn: AtomicU64::new(0),
        waiting: Mutex::default(),
        moved: Condvar::new(),
        out: Mutex::new(out),
        range_bytes: request.chunk_bytes.min(held as u64 / 2),
        held,
        throttle,
        progress: run.progress,
        cancel: run.cancel,
        stop: AtomicBool::new(false),
    };
    join(connections, |connection| shared.work(connection))
}

impl<'a> Shared<'a, '_> {
    fn work(&self, mut connection: Connection) -> Result<()> {
        // Also after a panic: the others would wait for this thread's turn to pass.
        let work = AssertUnwindSafe(|| self.until_nothing_is_left(&mut connection));
        let result = catch_unwind(work);
        if !matches!(result, Ok(Ok(()))) {
            self.stop.store(true, Ordering::SeqCst);
        }
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn until_nothing_is_left(&self, connection: &mut Connection) -> Result<()> {
        loop {
            self.throttle.wait(&self.stop, self.progress, self.cancel)?;
            let Some((at, ticket, claim)) = self.claim(connection)? else {
                return Ok(());
            };
            let table = &self.tables[at];
            let _reading = self.throttle.reading();
            let going_on = match claim {
                Claim::Table => self.begin(table, ticket)?,
                Claim::Rows(range) => self
                    .read(connection, (at, table), ticket, &range)
                    .map_err(|error| named(error, table))?,
            };
            if !going_on {
                return Ok(());
            }
        }
    }

    /// Takes the next step, in the order in which it will be written. The lowest that is not written
    /// yet always has somebody who works on it.
    fn claim(&self, connection: &mut Connection) -> Result<Option<(usize, u64, Claim)>> {
        let mut claims = locked(&self.claims);
        loop {
            if self.stop.load(Ordering::SeqCst) {
                return Ok(None);
            }
            let at = claims.at;
            let Some(table) = self.tables.get(at) else {
                return Ok(None);
            };
            let claim = match &mut claims.cursor {
                None => {
                    claims.cursor = Some(Cursor::new(table, self.range_bytes));
                    Claim::Table
                }
                Some(cursor) => {
                    let next = cursor.next(connection);
                    match next.map_err(|error| named(error, table))? {
                        Some(range) => Claim::Rows(range),
                        None => {
                            claims.cursor = None;
                            claims.at += 1;
                            continue;
                        }
                    }
                }
            };
            claims.ticket += 1;
            return Ok(Some((at, claims.ticket - 1, claim)));
        }
    }

    /// Waits for a turn; false when all should stop.
    fn wait(&self, ticket: u64) -> Result<bool> {
        let mut guard = locked(&self.waiting);
        loop {
            self.cancel.check()?;
            if self.stop.load(Ordering::SeqCst) {
                return Ok(false);
            }
            if self.is_turn(ticket) {
                return Ok(true);
            }
            let waited = self.moved.wait_timeout(guard, TICK);
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn is_turn(&self, ticket: u64) -> bool {
        self.turn.load(Ordering::SeqCst) == ticket
    }

    fn pass_on(&self) {
        let _guard = locked(&self.waiting);
        self.turn.fetch_add(1, Ordering::SeqCst);
        self.moved.notify_all();
    }

    fn begin(&self, table: &DumpTable, ticket: u64) -> Result<bool> {
        if !self.wait(ticket)? {
            return Ok(false);
        }
        let mut out = locked(&self.out);
        let mut text = Vec::new();
        if let Some(create) = self
            .creates
            .get(&(table.schema.clone(), table.name.clone()))
        {
            out.script.add(create, &mut text);
        }
        if table.has_rows {
            Encoder::new(Format::Sql, table).begin(&mut text);
            out.script.is_set_otherwise();
        }
        out.write(&text)?;
        drop(out);
        self.pass_on();
        Ok(true)
    }

    fn read(
        &self,
        connection: &mut Connection,
        (at, table): (usize, &DumpTable),
        ticket: u64,
        range: &Range,
    ) -> Result<bool> {
        fail::fail_point!("dump.stream-range");
        Cursor::forget_earlier_reads(connection, table, range)?;
        let mut rows_out = RowsOut {
            encoder: Encoder::new(Format::Sql, table),
            out: Vec::with_capacity(GATHERED * 2),
            between: true,
        };
        let mut turns = Turns {
            shared: self,
            ticket,
            rows: 0,
            bytes: 0,
        };
        stream_rows(
            connection,
            &Cursor::select(table, range),
            &mut rows_out,
            &mut turns,
        )?;
        rows_out.encoder.end(&mut rows_out.out);
        if !self.wait(ticket)? {
            return Ok(false);
        }
        turns.write(&mut rows_out)?;
        let mut out = locked(&self.out);
        out.sums.rows += turns.rows;
        out.sums.ranges += 1;
        drop(out);
        self.pass_on();
        self.progress.advance(turns.rows);
        let mut claims = locked(&self.claims);
        if claims.at == at
            && let Some(cursor) = &mut claims.cursor
        {
            cursor.seen(range, turns.rows, turns.bytes);
        }
        Ok(true)
    }
}

/// Rows of one range, written when it is their turn.
struct Turns<'s, 'a, 'o> {
    shared: &'s Shared<'a, 'o>,
    ticket: u64,
    rows: u64,
    bytes: u64,
}

impl Turns<'_, '_, '_> {
    fn write(&mut self, rows_out: &mut RowsOut) -> Result<()> {
        self.bytes += rows_out.out.len() as u64;
        locked(&self.shared.out).write(&rows_out.out)?;
        rows_out.out.clear();
        Ok(())
    }
}

impl Taker for Turns<'_, '_, '_> {
    fn row(&mut self, _: &mut RowsOut) -> Result<()> {
        self.rows += 1;
        Ok(())
    }

    fn take(&mut self, rows_out: &mut RowsOut) -> Result<bool> {
        if !self.shared.is_turn(self.ticket) {
            if rows_out.out.len() < self.shared.held {
                return Ok(true);
            }
            if !self.shared.wait(self.ticket)? {
                return Ok(false);
            }
        }
        self.shared.cancel.check()?;
        self.write(rows_out)?;
        Ok(!self.shared.stop.load(Ordering::Relaxed))
    }
}
