//! N threads, each with a connection of the snapshot. The largest tables come first, and several
//! threads read one table.

use super::Request;
use super::catalog::{Table, named};
use super::chunks::{Cursor, Range};
use super::encode::Encoder;
use super::manifest::ChunkEntry;
use super::output::Output;
use super::pour::{GATHERED, Poured, Taker, pour};
use super::throttle::Throttle;
use super::write::ChunkFile;
use evenkeel_op::{Cancel, Error, Progress, Result};
use evenkeel_wire::Connection;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// How many target sizes a file may grow to before another is begun for the same range.
const FILE_MAX: u64 = 2;

/// A file that was written, and where it belongs among its table's.
#[derive(Debug)]
pub(super) struct Written {
    /// The range's number and the file's within it.
    pub(super) place: (u32, u32),
    pub(super) entry: ChunkEntry,
}

/// What all threads share.
struct Shared<'a> {
    tables: &'a [Table],
    cursors: Vec<Mutex<Cursor<'a>>>,
    written: Vec<Mutex<Vec<Written>>>,
    request: &'a Request,
    dir: &'a Path,
    throttle: &'a Throttle,
    progress: &'a dyn Progress,
    cancel: &'a Cancel,
    /// Somebody failed.
    stop: AtomicBool,
}

/// Dumps every table and returns the files by table, in the tables' order.
pub(super) fn all(
    connections: Vec<Connection>,
    tables: &[Table],
    request: &Request,
    output: &Output,
    throttle: &Throttle,
    (progress, cancel): (&dyn Progress, &Cancel),
) -> Result<Vec<Vec<Written>>> {
    let dir = output.path("");
    let shared = Shared {
        tables,
        cursors: tables
            .iter()
            .map(|table| Mutex::new(Cursor::new(table, request.chunk_bytes)))
            .collect(),
        written: tables.iter().map(|_| Mutex::default()).collect(),
        request,
        dir: &dir,
        throttle,
        progress,
        cancel,
        stop: AtomicBool::new(false),
    };
    join(connections, |connection| shared.work(connection))?;
    Ok(shared
        .written
        .into_iter()
        .map(|list| list.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect())
}

/// Has each connection worked on by a thread of its own, and returns the first error.
pub(super) fn join(
    connections: Vec<Connection>,
    work: impl Fn(Connection) -> Result<()> + Sync,
) -> Result<()> {
    let work = &work;
    let results: Vec<Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = connections
            .into_iter()
            .map(|connection| scope.spawn(move || work(connection)))
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(Error::failed("a thread of the dump panicked")))
            })
            .collect()
    });
    results.into_iter().collect()
}

/// Locks, also what a panicking thread has left.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        cursor
            .next(connection)
            .map_err(|error| named(error, &self.tables[at]))
    }

    fn read(
        &self,
        connection: &mut Connection,
        at: usize,
        table: &Table,
        range: &Range,
    ) -> Result<()> {
        let sql = Cursor::select(table, range);
        let mut poured = Poured {
            encoder: Encoder::new(self.request.format, table),
            out: Vec::with_capacity(GATHERED * 2),
            between: true,
        };
        let mut files = Files {
            shared: self,
            at,
            range,
            chunk: None,
            part: 0,
            rows: 0,
            bytes: 0,
            told: 0,
        };
        pour(connection, &sql, &mut poured, &mut files)?;
        if self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        files.bytes += poured.out.len() as u64;
        self.progress.advance(files.rows - files.told);
        files.finish(&mut poured)?;
        locked(&self.cursors[at]).seen(range, files.rows, files.bytes);
        Ok(())
    }
}

/// The files of a range.
struct Files<'s, 'a> {
    shared: &'s Shared<'a>,
    at: usize,
    range: &'s Range,
    chunk: Option<ChunkFile>,
    /// The number of the file within the range.
    part: u32,
    rows: u64,
    bytes: u64,
    /// Rows that the progress knows of.
    told: u64,
}

impl Taker for Files<'_, '_> {
    fn row(&mut self, poured: &mut Poured) -> Result<()> {
        let file = match &mut self.chunk {
            Some(file) => file,
            None => {
                poured.encoder.begin(&mut poured.out);
                self.chunk.insert(self.create()?)
            }
        };
        file.rows += 1;
        self.rows += 1;
        Ok(())
    }

    fn take(&mut self, poured: &mut Poured) -> Result<bool> {
        let Some(file) = &mut self.chunk else {
            return Ok(true);
        };
        file.write(&poured.out)?;
        self.bytes += poured.out.len() as u64;
        poured.out.clear();
        let full = file.bytes() >= self.shared.request.chunk_bytes * FILE_MAX;
        self.shared.progress.advance(self.rows - self.told);
        self.told = self.rows;
        self.shared.cancel.check()?;
        if self.shared.stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if full && poured.between {
            self.finish(poured)?;
            self.part += 1;
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
            self.part,
            request.format.suffix(),
            request.compression.suffix()
        );
        ChunkFile::create(self.shared.dir, name, request.compression)
    }

    /// Ends the file, if there is one.
    fn finish(&mut self, poured: &mut Poured) -> Result<()> {
        let Some(mut file) = self.chunk.take() else {
            return Ok(());
        };
        poured.encoder.end(&mut poured.out);
        file.write(&poured.out)?;
        poured.out.clear();
        let entry = file.finish(self.range.condition.clone())?;
        locked(&self.shared.written[self.at]).push(Written {
            place: (self.range.number, self.part),
            entry,
        });
        Ok(())
    }
}
