//! Are the rows in the server those in the files? Each is read again: the files as they were loaded,
//! the server as a dump would read it. Sums of the rows' hashes are compared, so that the order does
//! not count; where rows are INSERT statements or another program's, only how many there are.

use super::chunk::{ChunkReader, check};
use super::request::Request;
use super::source::{Chunk, Source, SourceTable};
use super::target;
use crate::dump::{Sum, count};
use evenkeel_op::workers::all_joined;
use evenkeel_op::{Cancel, Context, Error, Progress, Result, Unit, units};
use evenkeel_server::options::ConnectOptions;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How much of a file is read at a time.
const READ: usize = 1 << 18;

/// Compares all tables and returns what is different, a sentence for each.
///
/// Errors: those of the connection; `Failed` for a file that is damaged by now.
pub(super) fn differences(
    (options, request): (&ConnectOptions, &Request),
    source: &Source,
    taken: &BTreeMap<u64, (u64, String)>,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Vec<String>> {
    let bytes = source.tables.iter().map(SourceTable::bytes).sum();
    progress.phase("verifying rows", Some(bytes), Unit::Bytes);
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let work = || -> Result<()> {
        let mut connection = target::connection(options, request, "utf8mb4", cancel)?;
        while let Some(table) = source.tables.get(next.fetch_add(1, Ordering::SeqCst)) {
            cancel.check()?;
            let Some(described) = source.described(table) else {
                continue;
            };
            let is_ours = |chunk: &Chunk| chunk.shape.is_lines();
            let differs = match table.chunks.iter().all(is_ours) && !source.foreign {
                true => {
                    let here = of_files(table, cancel)?;
                    let there =
                        Sum::of_server(&mut connection, &table.schema, described, &table.columns)
                            .context(|| format!("failed to verify {}", table.shown()))?;
                    reported(table, here.rows, there.rows, here == there)
                }
                false => {
                    let there = count(&mut connection, &table.from())?;
                    let came = files_are_the_same(table, taken)?;
                    reported(table, table.rows.unwrap_or(came), there, true)
                }
            };
            found
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(differs);
            progress.advance(table.bytes());
        }
        Ok(())
    };
    let threads = request.threads.min(source.tables.len());
    let results: Vec<Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        all_joined(threads, "a thread of the load")
    });
    results.into_iter().collect::<Result<()>>()?;
    progress.end();
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort();
    Ok(found)
}

fn reported(table: &SourceTable, here: u64, there: u64, same: bool) -> Option<String> {
    let shown = table.shown();
    match (here == there, same) {
        (true, true) => None,
        (true, false) => Some(format!(
            "{shown}: some of its {here} rows have different values"
        )),
        (false, _) => Some(format!(
            "{shown} has {} instead of {here}",
            units::count(there, "row")
        )),
    }
}

/// Reads files of other programs again: they have to be what they were when they were loaded. Returns
/// how many rows came in with them.
fn files_are_the_same(table: &SourceTable, taken: &BTreeMap<u64, (u64, String)>) -> Result<u64> {
    let mut rows = 0;
    for chunk in table.chunks.iter().filter(|chunk| chunk.rows.is_none()) {
        let Some((came, hash)) = taken.get(&chunk.number) else {
            continue;
        };
        if check(chunk)? != *hash {
            return Err(Error::failed(format!(
                "{} has changed since it was loaded",
                chunk.path.display()
            )));
        }
        rows += came;
    }
    Ok(rows)
}

fn of_files(table: &SourceTable, cancel: &Cancel) -> Result<Sum> {
    let mut all = Sum::default();
    for chunk in &table.chunks {
        cancel.check()?;
        let mut sum = Sum::default();
        let mut lines = BufReader::with_capacity(READ, ChunkReader::open(chunk)?);
        let mut line = Vec::new();
        while lines
            .read_until(b'\n', &mut line)
            .context(|| "failed to read rows")?
            > 0
        {
            sum.add(&line);
            line.clear();
        }
        lines.into_inner().verdict()?;
        all = all.and(sum);
    }
    Ok(all)
}
