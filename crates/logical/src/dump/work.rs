//! N threads, each with a connection of the snapshot. The largest tables come first, and several
//! threads read one table.

use super::Request;
use super::catalog::{Table, named};
use super::chunks::{Cursor, Range};
use super::encode::Encoder;
use super::manifest::ChunkEntry;
use super::output::Output;
use super::write::ChunkFile;
use evenkeel_op::{Cancel, Error, Progress, Result};
use evenkeel_wire::Connection;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// How many bytes of rows are gathered before they are hashed and packed.
const GATHERED: usize = 128 * 1024;
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
    progress: &dyn Progress,
    cancel: &Cancel,
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
        progress,
        cancel,
        stop: AtomicBool::new(false),
    };
    let results: Vec<Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = connections
            .into_iter()
            .map(|connection| scope.spawn(|| shared.work(connection)))
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
    results.into_iter().collect::<Result<()>>()?;
    Ok(shared
        .written
        .into_iter()
        .map(|list| list.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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
        while let Some((at, range)) = self.claim(connection)? {
            let table = &self.tables[at];
            self.read(connection, at, table, &range)
                .map_err(|error| named(error, table))?;
            if self.stop.load(Ordering::SeqCst) {
                break;
            }
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
        let mut rows = connection.query(&sql)?;
        let mut encoder = Encoder::new(self.request.format, table);
        let mut out = Vec::with_capacity(GATHERED * 2);
        let mut chunk: Option<ChunkFile> = None;
        let (mut part, mut count, mut bytes, mut told) = (0, 0, 0, 0);
        loop {
            let row = rows.next()?;
            let Some(row) = row else { break };
            let file = match &mut chunk {
                Some(file) => file,
                None => {
                    encoder.begin(&mut out);
                    chunk.insert(self.create(table, range, part)?)
                }
            };
            if let Err(error) = encoder.row(row, &mut out) {
                return Err(rows.malformed(error));
            }
            file.rows += 1;
            count += 1;
            if out.len() < GATHERED {
                continue;
            }
            file.write(&out)?;
            bytes += out.len() as u64;
            out.clear();
            out.shrink_to(GATHERED * 8);
            self.progress.advance(count - told);
            told = count;
            self.cancel.check()?;
            if self.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            if file.bytes() >= self.request.chunk_bytes * FILE_MAX {
                self.finish(chunk.take(), &mut encoder, &mut out, at, (range, part))?;
                part += 1;
            }
        }
        bytes += out.len() as u64;
        self.progress.advance(count - told);
        self.finish(chunk, &mut encoder, &mut out, at, (range, part))?;
        locked(&self.cursors[at]).seen(range, count, bytes);
        Ok(())
    }

    fn create(&self, table: &Table, range: &Range, part: u32) -> Result<ChunkFile> {
        let (format, compression) = (self.request.format, self.request.compression);
        let name = format!(
            "{}.{:06}-{part}.{}{}",
            table.stem(),
            range.number,
            format.suffix(),
            compression.suffix()
        );
        ChunkFile::create(self.dir, name, compression)
    }

    fn finish(
        &self,
        chunk: Option<ChunkFile>,
        encoder: &mut Encoder,
        out: &mut Vec<u8>,
        at: usize,
        (range, part): (&Range, u32),
    ) -> Result<()> {
        let Some(mut file) = chunk else { return Ok(()) };
        encoder.end(out);
        file.write(out)?;
        out.clear();
        let entry = file.finish(range.condition.clone())?;
        locked(&self.written[at]).push(Written {
            place: (range.number, part),
            entry,
        });
        Ok(())
    }
}
