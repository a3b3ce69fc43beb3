//! N threads, each with a connection, that bring rows in chunk by chunk. Rows of a chunk and the note
//! that they are in commit together, or neither does.

use super::chunk::{ChunkReader, check};
use super::insert::{self, is_text_only};
use super::queue::{Claim, Queue};
use super::request::{Method, Request};
use super::source::{Chunk, Shape, Source, SourceTable};
use super::state::{self, LoadState, note_chunk, note_taken};
use super::target::{self, Way};
use super::warned::{ErrorValues, clean};
use crate::dump::{RowTime, count};
use evenkeel_op::workers::all_joined;
use evenkeel_op::{Cancel, Context, Error, ErrorKind, Progress, Result, units};
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::{Connection, Refusal};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often a chunk that lost to another transaction is tried.
const TRIES: u32 = 5;

/// What all threads share.
struct Shared<'a> {
    source: &'a Source,
    queue: Queue<'a>,
    way: Way,
    options: &'a ConnectOptions,
    request: &'a Request,
    progress: &'a dyn Progress,
    cancel: &'a Cancel,
    /// The session that keeps other loads away.
    keeper: u64,
    /// Somebody failed.
    stop: AtomicBool,
    chunks: AtomicU64,
    /// What came in with the chunks of tables without transactions.
    taken: Mutex<BTreeMap<u64, (u64, String)>>,
}

/// Loads what is not in yet, and returns how many chunks that was.
///
/// Errors: `Failed` names the chunk that is damaged, or the table that would not take its rows.
pub(super) fn load(
    session: &mut Session,
    (options, request): (&ConnectOptions, &Request),
    source: &Source,
    state: &LoadState,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<u64> {
    let done = empty_what_began(session, source, state)?;
    let left = source.tables.iter().flat_map(|table| &table.chunks);
    let left = left.filter(|chunk| !done.contains(&chunk.number));
    let (count, bytes) = left.fold((0, 0), |(count, bytes), chunk| {
        (count + 1, bytes + chunk.size())
    });
    if count == 0 {
        return Ok(0);
    }
    let way = way(session, source, request.method, progress)?;
    // Of packed files of other programs it is not known how much is in them.
    let mut chunks = source.tables.iter().flat_map(|table| &table.chunks);
    let known = chunks.all(|chunk| chunk.bytes.is_some());
    let unit = evenkeel_op::Unit::Bytes;
    progress.phase("loading rows", known.then_some(bytes), unit);
    let shared = Shared {
        source,
        queue: Queue::new(&source.tables, &done),
        way,
        options,
        request,
        progress,
        cancel,
        keeper: session.id(),
        stop: AtomicBool::new(false),
        chunks: AtomicU64::new(0),
        taken: Mutex::default(),
    };
    let threads = request.threads.min(count).max(1);
    let results: Vec<Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| shared.work()))
            .collect();
        all_joined(threads, "a thread of the load")
    });
    results.into_iter().collect::<Result<()>>()?;
    progress.end();
    Ok(shared.chunks.into_inner())
}

/// Finds out how rows get in.
///
/// Errors: `Refused` where files can only be sent as they are, and that is not allowed.
fn way(
    session: &mut Session,
    source: &Source,
    method: Method,
    progress: &dyn Progress,
) -> Result<Way> {
    let any = |like: fn(&Shape) -> bool| {
        let mut chunks = source.tables.iter().flat_map(|table| &table.chunks);
        chunks.any(|chunk| like(&chunk.shape))
    };
    let sends = any(|shape| matches!(shape, Shape::File(_)));
    let method = match sends || any(Shape::is_lines) {
        true => method,
        false => Method::Insert,
    };
    match target::open_the_way(session, method, progress)? {
        Way::Insert if sends => Err(Error::refused(
            "rows of this dump can be loaded only with LOAD DATA LOCAL, but local_infile is off",
        )
        .hint("turn local_infile on, and load without --method insert")),
        way => Ok(way),
    }
}

/// Empties tables without transactions that are not done as a whole: how far one came is not known.
/// Returns the chunks that are in.
fn empty_what_began(
    session: &mut Session,
    source: &Source,
    state: &LoadState,
) -> Result<BTreeSet<u64>> {
    let mut done = state.chunks.clone();
    if state.phases.is_empty() {
        return Ok(done);
    }
    for table in source.tables.iter().filter(|table| !table.transactional) {
        let numbers: Vec<u64> = table.chunks.iter().map(|chunk| chunk.number).collect();
        if numbers.iter().all(|number| done.contains(number)) {
            continue;
        }
        state::forget_chunks(session, &numbers)?;
        let is_versioned = source.described(table).is_some_and(|one| one.versioned);
        for verb in emptying(is_versioned) {
            session
                .run(&format!("{verb} {}", quoted(table)))
                .context(|| format!("failed to empty {} for its load", table.shown()))?;
        }
        numbers.iter().for_each(|number| {
            done.remove(number);
        });
    }
    Ok(done)
}

/// Returns what empties a table. One that is system-versioned cannot be truncated, and keeps what is deleted.
fn emptying(is_versioned: bool) -> &'static [&'static str] {
    match is_versioned {
        true => &["DELETE FROM", "DELETE HISTORY FROM"],
        false => &["TRUNCATE TABLE"],
    }
}

/// Names the tables that got another number of rows than another program wrote down beside its files.
pub(super) fn missing(source: &Source, taken: &BTreeMap<u64, (u64, String)>) -> Vec<Error> {
    let mut all = Vec::new();
    for table in &source.tables {
        let unknown = table.chunks.iter().filter(|chunk| chunk.rows.is_none());
        let came = unknown.filter_map(|chunk| taken.get(&chunk.number));
        let came: u64 = came.map(|one| one.0).sum();
        let foreign = source.foreign.then_some(table.rows).flatten();
        if let Some(rows) = foreign.filter(|rows| *rows != came) {
            all.push(Error::failed(format!(
                "{} has {} in the files of the dump, but had {rows} when the dump was made",
                table.shown(),
                units::count(came, "row")
            )));
        }
    }
    all
}

fn quoted(table: &SourceTable) -> String {
    format!("{}.{}", quote_name(&table.schema), quote_name(&table.name))
}

/// Returns the statement that loads tab-separated rows of a table.
fn load_statement(table: &SourceTable) -> String {
    let (mut targets, mut sets) = (Vec::new(), Vec::new());
    for column in &table.columns {
        let name = quote_name(&column.name);
        let value = format!("@v{}", targets.len());
        let set = match column {
            one if one.generated => None,
            one if one.by_number => Some(format!("{name} = CAST({value} AS UNSIGNED)")),
            one if one.row_time == Some(RowTime::End) => {
                Some(format!("{name} = IFNULL({value}, {})", target::END))
            }
            // Bytes have no character set, and these types want one.
            one if is_text_only(one) => Some(format!("{name} = CONVERT({value} USING utf8mb4)")),
            _ => {
                targets.push(name);
                continue;
            }
        };
        targets.push(value);
        sets.extend(set);
    }
    let mut sql = format!(
        "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {} CHARACTER SET binary ({})",
        quoted(table),
        targets.join(", ")
    );
    if !sets.is_empty() {
        sql.push_str(&format!(" SET {}", sets.join(", ")));
    }
    sql
}

/// Counts what goes by.
struct Counted<'a, R> {
    from: R,
    progress: &'a dyn Progress,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.from.read(into)?;
        self.progress.advance(read as u64);
        Ok(read)
    }
}

impl Shared<'_> {
    fn work(&self) -> Result<()> {
        let result = self.until_nothing_is_left();
        if result.is_err() {
            self.stop.store(true, Ordering::SeqCst);
        }
        result
    }

    fn until_nothing_is_left(&self) -> Result<()> {
        let mut connection = target::connection(self.options, self.request, "binary", self.cancel)?;
        if self.source.has_history() {
            target::take_history(&mut connection)?;
        }
        let mut last = None;
        while let Some(claim) = self.queue.claim(last) {
            if last != Some(claim.at) {
                connection.run(&format!("USE {}", quote_name(&claim.table.schema)))?;
            }
            last = Some(claim.at);
            connection.run(match (self.way, &claim.chunk.shape) {
                (Way::LoadData, Shape::Tab | Shape::Csv(_) | Shape::File(_)) => "SET NAMES utf8mb4",
                _ => "SET NAMES binary",
            })?;
            self.is_alone(&mut connection)?;
            self.with_waits(&mut connection, claim)
                .context(|| format!("failed to load {}", claim.table.shown()))?;
            self.chunks.fetch_add(1, Ordering::Relaxed);
            fail::fail_point!("load::chunk");
            if self.stop.load(Ordering::SeqCst) {
                break;
            }
        }
        Ok(())
    }

    /// Fails when the session that keeps other loads away is gone: another may have begun.
    fn is_alone(&self, connection: &mut Connection) -> Result<()> {
        let sql = format!("SELECT IS_USED_LOCK('{}')", state::SCHEMA);
        match number(connection, &sql)? {
            Some(holder) if holder == self.keeper => Ok(()),
            _ => Err(Error::new(
                ErrorKind::Unreachable,
                "the session that holds this load's lock was lost",
            )
            .hint("run the same command again: it resumes here")),
        }
    }

    /// Loads a chunk; one that lost to another transaction is tried again.
    fn with_waits(&self, connection: &mut Connection, claim: Claim<'_>) -> Result<()> {
        if !claim.table.transactional {
            return self.without_transaction(connection, claim);
        }
        let mut tries = 0;
        loop {
            let done = self.in_transaction(connection, claim);
            let Err(error) = done else { return Ok(()) };
            // A connection that was lost has rolled back by itself.
            let rolled_back = connection.run("ROLLBACK");
            tries += 1;
            let lost = Refusal::of(&error) == Some(Refusal::InTheWay);
            if !lost || tries == TRIES || rolled_back.is_err() {
                return Err(error);
            }
        }
    }

    /// Loads a chunk: the note first, then the rows, then both commit. Whoever noted it before us
    /// (a run that was killed after it had sent its commit) has it in, or lets us have it.
    fn in_transaction(&self, connection: &mut Connection, claim: Claim<'_>) -> Result<()> {
        connection.run("START TRANSACTION")?;
        match connection.run(&note_chunk(claim.chunk.number)) {
            Err(error) if Refusal::of(&error) == Some(Refusal::RowIsThere) => {
                connection.run("ROLLBACK")?;
                return Ok(());
            }
            other => other?,
        };
        fail::fail_point!("load::noted");
        let (rows, hash) = self.rows(connection, claim.table, claim.chunk)?;
        if claim.chunk.rows.is_none() {
            connection.run(&note_taken(claim.chunk.number, rows, &hash))?;
        }
        fail::fail_point!("load::before_commit");
        connection.run("COMMIT")?;
        fail::fail_point!("load::committed");
        Ok(())
    }

    /// Loads a chunk whose rows stay whatever comes: it is read once before, and noted with all
    /// others of its table when the last is in.
    fn without_transaction(&self, connection: &mut Connection, claim: Claim<'_>) -> Result<()> {
        let checked = check(claim.chunk)?;
        let (rows, hash) = self.rows(connection, claim.table, claim.chunk)?;
        if hash != checked {
            return Err(Error::failed(format!(
                "{} changed while it was loaded",
                claim.chunk.path.display()
            )));
        }
        self.taken().insert(claim.chunk.number, (rows, hash));
        fail::fail_point!("load::before_note");
        if self.queue.is_drained(claim.at) {
            self.note_all(connection, claim.table)?;
        }
        Ok(())
    }

    fn taken(&self) -> MutexGuard<'_, BTreeMap<u64, (u64, String)>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes all chunks of a table without transactions, once its rows are counted.
    fn note_all(&self, connection: &mut Connection, table: &SourceTable) -> Result<()> {
        let taken = self.taken();
        let of_chunk = |chunk: &Chunk| taken.get(&chunk.number).cloned().unwrap_or_default();
        let came: u64 = table.chunks.iter().map(|one| of_chunk(one).0).sum();
        let wanted = table.rows.unwrap_or(came);
        let there = count(connection, &table.from())?;
        if there != wanted {
            return Err(Error::failed(format!(
                "it has {} instead of {wanted}",
                units::count(there, "row")
            ))
            .hint("another session writes to it; the next run empties it and loads it again"));
        }
        connection.run("START TRANSACTION")?;
        for chunk in &table.chunks {
            connection.run(&note_chunk(chunk.number))?;
            if chunk.rows.is_none() {
                let (rows, hash) = of_chunk(chunk);
                connection.run(&note_taken(chunk.number, rows, &hash))?;
            }
        }
        connection.run("COMMIT")?;
        Ok(())
    }

    /// Sends rows in the way that was found, and returns how many the server took.
    fn send(
        &self,
        connection: &mut Connection,
        table: &SourceTable,
        chunk: &Chunk,
        from: &mut dyn Read,
    ) -> Result<u64> {
        let statement = match (self.way, &chunk.shape) {
            (Way::LoadData, lines) if lines.is_lines() => load_statement(table),
            (_, Shape::File(sql)) => sql.clone(),
            _ => return self.insert_rows(connection, table, &chunk.shape, from),
        };
        let values = self.error_values(table);
        let mut watched = values.watch(from, &statement);
        let done = connection.load(&statement, &mut watched)?;
        clean(connection, done.warnings, watched.found())?;
        Ok(done.affected)
    }

    fn error_values(&self, table: &SourceTable) -> ErrorValues {
        ErrorValues::of(table, self.source.described(table))
    }

    fn insert_rows(
        &self,
        connection: &mut Connection,
        table: &SourceTable,
        shape: &Shape,
        from: &mut dyn Read,
    ) -> Result<u64> {
        let values = self.error_values(table);
        let mut rows = 0;
        let mut run = |sql: &[u8]| {
            let done = connection.run_bytes(sql)?;
            if done.warnings > 0 {
                clean(connection, done.warnings, values.in_statement(sql))?;
            }
            rows += done.affected;
            Ok(())
        };
        match shape.is_lines() {
            true => insert::of_lines(&quoted(table), &table.columns, from, &mut run)?,
            false => insert::of_statements(&table.name, from, &mut run)?,
        }
        Ok(rows)
    }

    /// Loads the rows of a chunk, and returns how many there were and the hash of the file.
    fn rows(
        &self,
        connection: &mut Connection,
        table: &SourceTable,
        chunk: &Chunk,
    ) -> Result<(u64, String)> {
        let mut counted = Counted {
            from: ChunkReader::open(chunk)?,
            progress: self.progress,
        };
        let mut sent = self.send(connection, table, chunk, &mut counted);
        let refusal = sent.as_ref().err().and_then(Refusal::of);
        if refusal == Some(Refusal::NoDefault) && chunk.shape.is_lines() {
            // MySQL 8.0 has no LOAD DATA for a table with a geometry that is NOT NULL. It says so before it
            // asks for the first byte.
            connection.run("SET NAMES binary")?;
            sent = self.insert_rows(connection, table, &chunk.shape, &mut counted);
        }
        let reader = counted.from;
        // Where the file is damaged, what the server says of it is of no interest.
        let verdict = reader.has_ended().then(|| reader.verdict()).transpose()?;
        let sent = sent.context(|| format!("failed at {}", chunk.path.display()))?;
        let wanted = chunk.rows.unwrap_or(sent);
        if sent != wanted {
            return Err(Error::failed(format!(
                "the server took {sent} of the {wanted} rows of {}",
                chunk.path.display()
            ))
            .hint("look for rows with the same key, or for a trigger or constraint on the table"));
        }
        let hash = verdict.ok_or_else(|| {
            Error::failed(format!(
                "the server did not read {} to its end",
                chunk.path.display()
            ))
        })?;
        Ok((sent, hash))
    }
}

/// Asks for a number.
fn number(connection: &mut Connection, sql: &str) -> Result<Option<u64>> {
    let mut rows = connection.query(sql)?;
    let mut number = None;
    while let Some(row) = rows.next()? {
        let cell = row.cells().next().ok().flatten();
        number = cell.and_then(|text| String::from_utf8_lossy(text).parse().ok());
    }
    Ok(number)
}
