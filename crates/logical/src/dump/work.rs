//! N threads, each with a connection of the snapshot. The largest tables come first, and several
//! threads read one table.

use super::catalog::named;
use super::chunks::{Cursor, Range};
use super::encode::Encoder;
use super::journal::{Journal, LeftTable};
use super::manifest::{ChunkEntry, Written};
use super::output::Output;
use super::request::Request;
use super::stream_rows::{GATHERED, RowsOut, Taker, stream_rows};
use super::table::DumpTable;
use super::threads::{join, locked};
use super::write::ChunkFile;
use evenkeel_op::{Cancel, Progress, Result, Run};
use evenkeel_server::throttle::Throttle;
use evenkeel_wire::Connection;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

/// So many ranges for each thread at least, so that all end at about the same time.
const RANGES_PER_THREAD: u64 = 2;
/// Unless that made them smaller than this: each costs questions, and a file.
const RANGE_MIN: u64 = 1 << 20;
/// How many target sizes a file may grow to before another is begun for the same range.
const FILE_MAX: u64 = 2;

/// What all threads share.
struct Shared<'a> {
    tables: &'a [DumpTable],
    cursors: Vec<Mutex<Cursor<'a>>>,
    written: Vec<Mutex<Vec<Written>>>,
    request: &'a Request,
    place: WorkContext<'a>,
    throttle: &'a Throttle,
    progress: &'a dyn Progress,
    cancel: &'a Cancel,
    /// Somebody failed.
    stop: AtomicBool,
}

/// Where files go, and what is there already.
pub(super) struct WorkContext<'a> {
    pub(super) output: &'a Output,
    /// None where what was written cannot be resumed.
    pub(super) journal: Option<&'a Journal>,
    /// By table, in the tables' order.
    pub(super) kept: Vec<Option<LeftTable>>,
}

/// Dumps every table and returns the files by table, in the tables' order.
pub(super) fn all(
    connections: Vec<Connection>,
    tables: &[DumpTable],
    request: &Request,
    mut place: WorkContext<'_>,
    throttle: &Throttle,
    run: Run<'_>,
) -> Result<Vec<Vec<Written>>> {
    let kept = std::mem::take(&mut place.kept);
    let (mut cursors, mut written) = (Vec::new(), Vec::new());
    let all_bytes = tables.iter().map(|table| table.bytes).sum();
    let range_bytes = range_bytes(request.chunk_bytes, all_bytes, connections.len());
    for (table, kept) in tables.iter().zip(kept) {
        let mut cursor = Cursor::new(table, range_bytes);
        let there = kept.map_or_else(Vec::new, |kept| resume(&mut cursor, kept));
        cursors.push(Mutex::new(cursor));
        written.push(Mutex::new(there));
    }
    let shared = Shared {
        tables,
        cursors,
        written,
        request,
        place,
        throttle,
        progress: run.progress,
        cancel: run.cancel,
        stop: AtomicBool::new(false),
    };
    join(connections, |connection| shared.work(connection))?;
    Ok(shared
        .written
        .into_iter()
        .map(|list| list.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect())
}

/// Returns how large a range should be: as large as asked for, but where there is little to read, small enough that
/// each thread has some of it.
fn range_bytes(wanted: u64, all_bytes: u64, threads: usize) -> u64 {
    let share = all_bytes / (threads.max(1) as u64 * RANGES_PER_THREAD);
    wanted.min(share.max(RANGE_MIN))
}

/// Has a table resumed where it was left, and returns the files that are there.
fn resume(cursor: &mut Cursor<'_>, kept: LeftTable) -> Vec<Written> {
    let mut there = Vec::new();
    for (number, files) in &kept.done {
        let (mut rows, mut bytes) = (0, 0);
        for (part, entry) in (0..).zip(files) {
            (rows, bytes) = (rows + entry.rows, bytes + entry.bytes);
            there.push(Written {
                place: (*number, part),
                entry: entry.clone(),
            });
        }
        if let Some(range) = kept.ranges.get(number) {
            cursor.seen(range, rows, bytes);
        }
    }
    let done = kept.done.into_keys().collect();
    if let Some(after) = kept.after {
        cursor.resume(kept.ranges.into_values().collect(), after, &done);
    }
    there
}

impl Shared<'_> {
    fn work(&self, mut connection: Connection) -> Result<()> {
        let result = self.until_nothing_is_left(&mut connection);
        if result.is_err() {
            self.stop.store(true, Ordering::SeqCst);
        }
        result
    }

    fn until_nothing_is_left(&self, connection: &mut Connection) -> Result<()> {
        while !self.stop.load(Ordering::SeqCst) {
            self.throttle.wait(&self.stop, self.progress, self.cancel)?;
            let Some((at, range)) = self.claim(connection)? else {
                break;
            };
            let table = &self.tables[at];
            let _reading = self.throttle.reading();
            self.read(connection, at, table, &range)
                .map_err(|error| named(error, table))?;
        }
        Ok(())
    }

    /// Finds the next range: of the largest table that has one. Where somebody else is just
    /// looking for a table's next range, another table may have one at hand.
    fn claim(&self, connection: &mut Connection) -> Result<Option<(usize, Range)>> {
        let mut busy = Vec::new();
        for (at, cursor) in self.cursors.iter().enumerate() {
            self.cancel.check()?;
            let mut cursor = match cursor.try_lock() {
                Ok(cursor) => cursor,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    busy.push(at);
                    continue;
                }
            };
            if let Some(range) = self.next(connection, &mut cursor, at)? {
                return Ok(Some((at, range)));
            }
        }
        for at in busy {
            let mut cursor = locked(&self.cursors[at]);
            if let Some(range) = self.next(connection, &mut cursor, at)? {
                return Ok(Some((at, range)));
            }
        }
        Ok(None)
    }

    fn next(
        &self,
        connection: &mut Connection,
        cursor: &mut Cursor<'_>,
        at: usize,
    ) -> Result<Option<Range>> {
        let next = cursor.next(connection);
        let next = next.map_err(|error| named(error, &self.tables[at]))?;
        if let Some(range) = &next {
            let after = cursor.position();
            if let Some(journal) = self.place.journal {
                journal.handed_out(at, range, after)?;
            }
            fail::fail_point!("dump.handed-out");
        }
        Ok(next)
    }

    fn read(
        &self,
        connection: &mut Connection,
        at: usize,
        table: &DumpTable,
        range: &Range,
    ) -> Result<()> {
        Cursor::forget_earlier_reads(connection, table, range)?;
        let sql = Cursor::select(table, range);
        let mut rows_out = RowsOut {
            encoder: Encoder::new(self.request.format, table),
            out: Vec::with_capacity(GATHERED * 2),
            between: true,
        };
        let mut files = Files {
            shared: self,
            at,
            range,
            chunk: None,
            whole: Vec::new(),
            rows: 0,
            bytes: 0,
            reported: 0,
        };
        stream_rows(connection, &sql, &mut rows_out, &mut files)?;
        if self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        files.bytes += rows_out.out.len() as u64;
        self.progress.advance(files.rows - files.reported);
        files.finish(&mut rows_out)?;
        let entries = files.whole.iter().cloned();
        if let Some(journal) = self.place.journal {
            journal.done(at, range.number, entries.collect())?;
        }
        let written = files
            .whole
            .into_iter()
            .zip(0..)
            .map(|(entry, part)| Written {
                place: (range.number, part),
                entry,
            });
        locked(&self.written[at]).extend(written);
        locked(&self.cursors[at]).seen(range, files.rows, files.bytes);
        fail::fail_point!("dump.range-done");
        Ok(())
    }
}

/// The files of a range.
struct Files<'s, 'a> {
    shared: &'s Shared<'a>,
    at: usize,
    range: &'s Range,
    chunk: Option<ChunkFile>,
    /// The files of the range that are whole, in order.
    whole: Vec<ChunkEntry>,
    rows: u64,
    bytes: u64,
    /// Rows that the progress knows of.
    reported: u64,
}

impl Taker for Files<'_, '_> {
    fn row(&mut self, rows_out: &mut RowsOut) -> Result<()> {
        let file = match &mut self.chunk {
            Some(file) => file,
            None => {
                rows_out.encoder.begin(&mut rows_out.out);
                self.chunk.insert(self.create()?)
            }
        };
        file.rows += 1;
        self.rows += 1;
        Ok(())
    }

    fn take(&mut self, rows_out: &mut RowsOut) -> Result<bool> {
        let Some(file) = &mut self.chunk else {
            return Ok(true);
        };
        file.write(&rows_out.out)?;
        self.bytes += rows_out.out.len() as u64;
        rows_out.out.clear();
        let full = file.bytes() >= self.shared.request.chunk_bytes * FILE_MAX;
        self.shared.progress.advance(self.rows - self.reported);
        self.reported = self.rows;
        self.shared.cancel.check()?;
        if self.shared.stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if full && rows_out.between {
            self.finish(rows_out)?;
        }
        Ok(true)
    }
}

impl Files<'_, '_> {
    fn create(&self) -> Result<ChunkFile> {
        let request = self.shared.request;
        let name = format!(
            "{}.{:06}-{}.{}{}",
            self.shared.tables[self.at].stem(),
            self.range.number,
            self.whole.len(),
            request.format.suffix(),
            request.compression.suffix()
        );
        ChunkFile::create(self.shared.place.output, name, request.compression)
    }

    /// Ends the file, if there is one.
    fn finish(&mut self, rows_out: &mut RowsOut) -> Result<()> {
        let Some(mut file) = self.chunk.take() else {
            return Ok(());
        };
        rows_out.encoder.end(&mut rows_out.out);
        file.write(&rows_out.out)?;
        rows_out.out.clear();
        self.whole.push(file.finish(self.range.condition.clone())?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_databases_have_work_for_every_thread() {
        const MIB: u64 = 1 << 20;
        assert_eq!(range_bytes(16 * MIB, 80 * MIB, 4), 10 * MIB);
        assert_eq!(
            range_bytes(16 * MIB, 8000 * MIB, 4),
            16 * MIB,
            "as asked for"
        );
        assert_eq!(
            range_bytes(16 * MIB, 0, 4),
            MIB,
            "not smaller than is worth it"
        );
        assert_eq!(
            range_bytes(64 << 10, 0, 4),
            64 << 10,
            "what is asked for may be"
        );
    }
}
