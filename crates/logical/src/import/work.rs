//! Connections that run what is handed to them, each in the file's settings.

use super::batch::{Batch, Joined};
use super::order::{JobOrder, Schedule};
use super::places::At;
use super::settings::{ASIDE, BACK};
use evenkeel_op::{Cancel, Error, ErrorKind, Result};
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::{Connection, Refusal};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many bytes of statements may wait and run; one statement may be longer.
const HELD: usize = 32 << 20;
/// How often who waits looks whether it should stop.
const TICK: Duration = Duration::from_millis(200);
/// How often a transaction that others got in the way of is tried.
pub(super) const TRIES: usize = 10;
/// With `sql_mode` ORACLE, BEGIN is the beginning of a block.
const BEGIN: &str = "START TRANSACTION";
/// A NULL where none may be: an error in one row, and in one of many rows only a warning.
const BAD_NULL: &[u8] = b"1048";
/// Connections of their own silence are not to be closed by the server.
const WAIT_FOR_LOCKS: &str =
    "SET SESSION wait_timeout = 31536000, net_read_timeout = 3600, net_write_timeout = 3600";

/// A failure, and where in the file.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) at: At,
    pub(super) table: Option<usize>,
    pub(super) error: Box<Error>,
    /// Whether the statement on that line should be run again; definitions that were put off are
    /// made anyway.
    pub(super) again: bool,
}

/// What a connection is to do.
#[derive(Debug)]
pub(super) enum Job {
    Rows(Batch),
    /// A definition that was put off.
    Index {
        /// How its text should be read, as SET has it.
        reading: String,
        sql: Vec<u8>,
        at: At,
    },
}

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) rows: u64,
    pub(super) already_there: u64,
    /// Statements that went to the server.
    pub(super) sent: u64,
}

impl Counts {
    fn add(&mut self, more: Self) {
        self.rows += more.rows;
        self.already_there += more.already_there;
        self.sent += more.sent;
    }
}

#[derive(Default)]
struct WorkState {
    schedule: Schedule<Job>,
    /// The file's settings, without those that every connection has had.
    settings: Vec<Arc<[u8]>>,
    /// How many of the settings were dropped from the list.
    dropped: usize,
    /// Connections that have followed the settings so far.
    followed: usize,
    /// To be followed at once.
    must_follow: bool,
    closed: bool,
    stopped: bool,
    failures: Vec<Failure>,
    /// Failures after which it continued, and that have not been reported.
    forgiven: Vec<Failure>,
    counts: Counts,
}

/// Where the reader of the file and the connections meet.
pub(super) struct Pool {
    state: Mutex<WorkState>,
    changed: Condvar,
    /// Whether rows that are there already are no error.
    pub(super) resumed: bool,
    /// Whether a statement that the server refuses is left out and reported.
    pub(super) forgives: bool,
    pub(super) threads: usize,
    pub(super) cancel: Cancel,
}

impl Pool {
    pub(super) fn new(threads: usize, resumed: bool, forgives: bool, cancel: &Cancel) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            resumed,
            forgives,
            threads,
            cancel: cancel.clone(),
        }
    }

    fn state(&self) -> MutexGuard<'_, WorkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, WorkState>) -> MutexGuard<'s, WorkState> {
        let waited = self.changed.wait_timeout(state, TICK);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until `until` holds. Returns whether it does: not when something failed.
    ///
    /// Each statement that may be waited for has a deadline of its own, the connection's.
    fn wait_for(&self, until: impl Fn(&WorkState) -> bool) -> Result<bool> {
        let mut state = self.state();
        loop {
            self.cancel.check()?;
            if state.stopped {
                return Ok(false);
            }
            if until(&state) {
                return Ok(true);
            }
            state = self.wait(state);
        }
    }

    /// Hands work over, once there is room for it. Returns false when something failed.
    pub(super) fn push(&self, table: usize, ordered: bool, job: Job) -> Result<bool> {
        let (settings, line, bytes) = match &job {
            Job::Rows(batch) => (Some(batch.settings), batch.at().line, batch.bytes()),
            // Nothing of the file waits for it.
            Job::Index { sql, .. } => (None, u64::MAX, sql.len()),
        };
        let place = JobOrder {
            table,
            ordered,
            settings,
            line,
            bytes,
        };
        let room = |state: &WorkState| {
            let held = state.schedule.bytes();
            held == 0 || held + bytes <= HELD
        };
        let outcome = self.wait_for(room);
        // Also after a failure: what was not done is counted from what waits.
        self.state().schedule.push(place, job);
        self.changed.notify_all();
        outcome
    }

    /// Waits until a table's work is done. Returns false when something failed.
    pub(super) fn wait_table(&self, table: usize) -> Result<bool> {
        self.wait_for(|state| state.schedule.is_free(table))
    }

    /// Waits until all work is done. Returns false when something failed.
    pub(super) fn wait_all(&self) -> Result<bool> {
        self.wait_for(|state| state.schedule.is_idle())
    }

    /// Adds a setting of the file. Returns how many there are.
    pub(super) fn set(&self, sql: &[u8]) -> usize {
        let mut state = self.state();
        state.settings.push(sql.into());
        state.dropped + state.settings.len()
    }

    /// Returns how many settings are remembered.
    pub(super) fn settings_held(&self) -> usize {
        self.state().settings.len()
    }

    /// Has every connection follow the settings, and forgets them. Returns false when something
    /// failed.
    pub(super) fn follow_all(&self) -> Result<bool> {
        if !self.wait_all()? {
            return Ok(false);
        }
        {
            let mut state = self.state();
            (state.followed, state.must_follow) = (0, true);
        }
        self.changed.notify_all();
        if !self.wait_for(|state| state.followed == self.threads)? {
            return Ok(false);
        }
        let mut state = self.state();
        state.must_follow = false;
        state.dropped += state.settings.len();
        state.settings.clear();
        self.changed.notify_all();
        Ok(true)
    }

    /// Says that no more work comes, or that what waits should be dropped.
    pub(super) fn close(&self, drop_rest: bool) {
        let mut state = self.state();
        state.closed = true;
        state.stopped |= drop_rest;
        self.changed.notify_all();
    }

    /// Returns what says so when the thread that has it panics: the others would wait for it forever.
    pub(super) fn alarm(&self) -> Alarm<'_> {
        Alarm(self)
    }

    /// Returns the smallest line of work that is not done.
    pub(super) fn first_line(&self) -> Option<u64> {
        self.state().schedule.first_line()
    }

    /// Counts what was done elsewhere.
    pub(super) fn count(&self, counts: Counts) {
        self.state().counts.add(counts);
    }

    pub(super) fn counts(&self) -> Counts {
        self.state().counts
    }

    /// Takes what failed, and the tables and lines of what was dropped.
    pub(super) fn leftovers(&self) -> (Vec<Failure>, Vec<(usize, u64)>) {
        let mut state = self.state();
        (
            std::mem::take(&mut state.failures),
            state.schedule.give_up(),
        )
    }

    /// Takes what failed and was left out since the last time, in the file's order.
    pub(super) fn forgiven(&self) -> Vec<Failure> {
        let mut all = std::mem::take(&mut self.state().forgiven);
        all.sort_by_key(|one| one.at);
        all
    }

    /// Notes a failure, if it is one to continue after; else returns it.
    fn forgive(&self, failure: Failure) -> Result<(), Failure> {
        if !self.forgives || is_grave(&failure.error) {
            return Err(failure);
        }
        self.state().forgiven.push(failure);
        Ok(())
    }

    fn fail(&self, failure: Failure) {
        let mut state = self.state();
        state.stopped = true;
        state.failures.push(failure);
        self.changed.notify_all();
    }
}

/// Stops all work when a thread ends by a panic.
pub(super) struct Alarm<'p>(&'p Pool);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.close(true);
        }
    }
}

/// Opens a connection for statements of a file.
pub(super) fn open(options: &ConnectOptions, cancel: &Cancel) -> Result<Connection> {
    let mut connection = Connection::open(options, cancel)?;
    connection.run(WAIT_FOR_LOCKS)?;
    Ok(connection)
}

/// Returns whether an error says that something is there already.
pub(super) fn is_duplicate(error: &Error) -> bool {
    matches!(
        Refusal::of(error),
        Some(Refusal::RowIsThere | Refusal::DefinitionIsThere)
    )
}

/// One connection and its place in the file's settings.
pub(super) struct Worker<'p> {
    pub(super) pool: &'p Pool,
    pub(super) connection: Connection,
    followed: usize,
}

impl<'p> Worker<'p> {
    pub(super) fn new(pool: &'p Pool, connection: Connection) -> Self {
        Self {
            pool,
            connection,
            followed: 0,
        }
    }

    /// Works until there is no more to come.
    pub(super) fn work(mut self) {
        let _alarm = self.pool.alarm();
        while let Some((id, job)) = self.next() {
            let done = match &job {
                Job::Rows(batch) => self.rows(batch),
                Job::Index { reading, sql, at } => {
                    self.index(reading, sql).map_err(|error| Failure {
                        at: *at,
                        table: None,
                        error: Box::new(error),
                        again: false,
                    })
                }
            };
            let done = done.or_else(|failure| {
                let forgiven = self.pool.forgive(failure);
                forgiven.map(|()| Counts::default())
            });
            // At once, or who waits would take a failure for done.
            let mut state = self.pool.state();
            state.schedule.end(id);
            match done {
                Ok(counts) => state.counts.add(counts),
                Err(failure) => {
                    state.stopped = true;
                    state.failures.push(failure);
                }
            }
            drop(state);
            self.pool.changed.notify_all();
        }
    }

    fn next(&mut self) -> Option<(u64, Job)> {
        let mut state = self.pool.state();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(taken) = state.schedule.take() {
                return Some(taken);
            }
            if state.closed && state.schedule.is_idle() {
                return None;
            }
            let target = state.dropped + state.settings.len();
            if state.must_follow && self.followed < target {
                drop(state);
                if let Err(error) = self.follow(target) {
                    self.pool.fail(Failure {
                        at: At::default(),
                        table: None,
                        error: Box::new(error),
                        again: false,
                    });
                }
                state = self.pool.state();
                state.followed += 1;
                self.pool.changed.notify_all();
                continue;
            }
            state = self.pool.wait(state);
        }
    }

    /// Repeats the file's settings up to the first `target`.
    ///
    /// Errors: `Failed` where it has repeated more than those: rows would come out as others.
    fn follow(&mut self, target: usize) -> Result<()> {
        if self.followed == target {
            return Ok(());
        }
        let todo: Option<Vec<Arc<[u8]>>> = {
            let state = self.pool.state();
            let from = self.followed.checked_sub(state.dropped);
            let to = target.checked_sub(state.dropped);
            let range = from.zip(to).map(|(from, to)| from..to);
            range.and_then(|range| Some(state.settings.get(range)?.to_vec()))
        };
        let beyond =
            || Error::failed("a connection has repeated settings from further on in the file");
        for sql in todo.ok_or_else(beyond)? {
            self.connection.run_bytes(&sql)?;
        }
        self.followed = target;
        Ok(())
    }

    fn index(&mut self, reading: &str, sql: &[u8]) -> Result<Counts> {
        self.connection.run(ASIDE)?;
        self.connection.run(&format!("SET SESSION {reading}"))?;
        let sent = match self.connection.run_bytes(sql) {
            Err(error) if self.pool.resumed && is_duplicate(&error) => 0,
            other => other.map(|_| 1)?,
        };
        self.connection.run(BACK)?;
        Ok(Counts {
            sent,
            ..Counts::default()
        })
    }

    fn rows(&mut self, batch: &Batch) -> Result<Counts, Failure> {
        let first = |error| Failure {
            at: batch.at(),
            table: Some(batch.table),
            error: Box::new(error),
            again: true,
        };
        self.follow(batch.settings).map_err(first)?;
        if batch.joined == Joined::Apart {
            return self.one_by_one(batch);
        }
        for _ in 0..TRIES {
            match self.attempt(batch) {
                Err(failure) if Refusal::of(&failure.error) == Some(Refusal::InTheWay) => {
                    self.connection.run("ROLLBACK").map_err(first)?;
                }
                other => return other,
            }
        }
        self.attempt(batch)
    }

    /// Runs a batch as one transaction, once.
    fn attempt(&mut self, batch: &Batch) -> Result<Counts, Failure> {
        let first = |error| Failure {
            at: batch.at(),
            table: Some(batch.table),
            error: Box::new(error),
            again: true,
        };
        self.connection.run(BEGIN).map_err(first)?;
        if let Some(whole) = batch.whole() {
            match self.whole(whole, batch.pieces.len()) {
                Ok(true) => {
                    fail::fail_point!("import.before-commit");
                    self.connection.run("COMMIT").map_err(first)?;
                    fail::fail_point!("import.committed");
                    return Ok(Counts {
                        rows: batch.rows(),
                        sent: 1,
                        already_there: 0,
                    });
                }
                Err(error) if is_grave(&error) => return Err(first(error)),
                // To find the statement that it was, or because many rows mean another thing.
                Ok(false) | Err(_) => {
                    self.connection.run("ROLLBACK").map_err(first)?;
                    self.connection.run(BEGIN).map_err(first)?;
                }
            }
        }
        match self.one_by_one(batch) {
            // With the transaction, all of the batch is gone.
            Err(failure) if is_grave(&failure.error) => Err(first(*failure.error)),
            // What came before the one that failed stays, as it would with a client.
            done => {
                self.connection.run("COMMIT").map_err(first)?;
                done
            }
        }
    }

    /// Runs the rows of many statements as one. Returns false when they would have come out
    /// different one by one.
    fn whole(&mut self, sql: &[u8], statements: usize) -> Result<bool> {
        let warnings = self.connection.run_bytes(sql)?.warnings;
        if warnings == 0 || statements == 1 {
            return Ok(true);
        }
        let mut shown = 0;
        let mut rows = self.connection.query("SHOW WARNINGS")?;
        while let Some(row) = rows.next()? {
            let mut cells = row.cells();
            let code = cells.next().and_then(|_| cells.next());
            if !matches!(code, Ok(Some(code)) if code != BAD_NULL) {
                return Ok(false);
            }
            shown += 1;
        }
        Ok(shown == warnings)
    }

    fn one_by_one(&mut self, batch: &Batch) -> Result<Counts, Failure> {
        let (mut counts, mut failed) = (Counts::default(), 0);
        for piece in &batch.pieces {
            match self.connection.run_bytes(&batch.single(piece)) {
                Ok(_) => counts.sent += 1,
                // Where each statement is there wholly or not at all.
                Err(error)
                    if self.pool.resumed
                        && batch.joined != Joined::Apart
                        && is_duplicate(&error) =>
                {
                    counts.already_there += 1;
                }
                Err(error) => {
                    failed += piece.rows;
                    self.pool.forgive(Failure {
                        at: piece.at,
                        table: Some(batch.table),
                        error: Box::new(error),
                        again: true,
                    })?;
                }
            }
        }
        counts.rows = batch.rows() - failed;
        Ok(counts)
    }
}

/// Returns whether the transaction is gone, and there is no use in trying its statements.
fn is_grave(error: &Error) -> bool {
    let stops = matches!(
        error.kind(),
        ErrorKind::Unreachable | ErrorKind::Interrupted | ErrorKind::Terminated
    );
    stops || matches!(Refusal::of(error), None | Some(Refusal::InTheWay))
}
