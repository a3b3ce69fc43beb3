//! Are the rows in the server those in the files? Each is read again: the files as they were loaded,
//! the server as a dump would read it. Sums of the rows' hashes are compared, so that the order does
//! not count; where rows are INSERT statements, only how many there are.

use super::chunk::ChunkReader;
use super::source::{Packing, Source, Table};
use super::{Request, target};
use crate::dump::{Format, Sum, count};
use crate::objects;
use evenkeel_op::{Cancel, Context, Error, Progress, Result, Unit};
use evenkeel_server::options::ConnectOptions;
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
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Vec<String>> {
    let bytes = source.tables.iter().map(Table::bytes).sum();
    progress.phase("verifying rows", Some(bytes), Unit::Bytes);
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let work = || -> Result<()> {
        let mut connection = target::connection(options, request, "utf8mb4", cancel)?;
        while let Some(table) = source.tables.get(next.fetch_add(1, Ordering::SeqCst)) {
            cancel.check()?;
            let Some(described) = described(source, table) else {
                continue;
            };
            let differs = match source.format {
                Format::Tab => {
                    let here = of_files(table, source.packing, cancel)?;
                    let there = Sum::of_server(&mut connection, &table.schema, described)
                        .context(|| format!("failed to verify {}", table.shown()))?;
                    told(table, here.rows, there.rows, here == there)
                }
                Format::Sql => {
                    let there = count(&mut connection, &table.schema, &table.name)?;
                    told(table, table.rows, there, true)
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
        let joined = threads.into_iter().map(|thread| {
            let panicked = |_| Err(Error::failed("a thread of the load panicked"));
            thread.join().unwrap_or_else(panicked)
        });
        joined.collect()
    });
    results.into_iter().collect::<Result<()>>()?;
    progress.end();
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort();
    Ok(found)
}

fn described<'a>(source: &'a Source, table: &Table) -> Option<&'a objects::Table> {
    let databases = source.objects.databases.iter();
    let mut of_schema = databases.filter(|one| one.name == table.schema);
    of_schema.find_map(|one| one.tables.iter().find(|it| it.name == table.name))
}

fn told(table: &Table, here: u64, there: u64, same: bool) -> Option<String> {
    let shown = table.shown();
    match (here == there, same) {
        (true, true) => None,
        (true, false) => Some(format!(
            "{shown} has other values in some of its {here} rows"
        )),
        (false, _) => Some(format!("{shown} has {there} rows instead of {here}")),
    }
}

fn of_files(table: &Table, packing: Packing, cancel: &Cancel) -> Result<Sum> {
    let mut all = Sum::default();
    for chunk in &table.chunks {
        cancel.check()?;
        let mut sum = Sum::default();
        let mut lines = BufReader::with_capacity(READ, ChunkReader::open(chunk, packing)?);
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
