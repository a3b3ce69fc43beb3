//! Queues in a server.

use crate::name::QueueName;
use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_server::connect::{Row, ServerNumber, Session, quote};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a server's queues look like.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatusReport {
    /// How long the server runs, in seconds.
    pub uptime_s: u64,
    /// The queues, by name.
    pub queues: Vec<QueueState>,
}

/// What one queue looks like.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueueState {
    /// Its database.
    pub database: String,
    /// Its name.
    pub table: String,
    /// Why nothing is known of it, and what to do.
    pub problem: Option<String>,
    /// What is in it; nothing where there is a problem.
    #[serde(flatten)]
    pub numbers: Option<QueueNumbers>,
}

/// What is in a queue. Counts are since the server opened the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueueNumbers {
    /// Rows that are there, owned ones too.
    pub rows: u64,
    /// Those that a consumer owns.
    pub owned: u64,
    /// Consumers that wait.
    pub waiters: u64,
    /// Rows that came.
    pub written: u64,
    /// Rows that went.
    pub removed: u64,
    /// Both for each second of the server's uptime.
    pub written_per_s: f64,
    /// Both for each second of the server's uptime.
    pub removed_per_s: f64,
    /// Bytes of its files.
    pub bytes: u64,
    /// How long the oldest row that is there has waited, in seconds; 0 where there is none. None where the server does
    /// not know, as an earlier version wrote that row.
    pub oldest_s: Option<u64>,
    /// Who owns rows, by the server's numbers of their connections; none where an earlier version does not say it.
    pub owners: Option<Vec<Owner>>,
    /// The other numbers that the server gives, by its names.
    pub counters: BTreeMap<String, u64>,
}

/// A connection that owns rows of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Owner {
    /// The server's number of it, as `SHOW PROCESSLIST` has it.
    pub connection: u64,
    /// Rows that it owns.
    pub rows: u64,
}

/// The first rows that nobody owns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Peeked {
    /// The table.
    pub table: String,
    /// The names of its columns; empty where there is no row.
    pub columns: Vec<String>,
    /// The rows, oldest first: each cell as text, or null.
    pub rows: Vec<Vec<Option<String>>>,
}

/// What compaction did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compacted {
    /// The table.
    pub table: String,
    /// Bytes of its files before.
    pub bytes_before: u64,
    /// Bytes of its files now.
    pub bytes_after: u64,
    /// Rows that are there now.
    pub rows: u64,
}

impl StatusReport {
    /// Returns whether all queues could be read.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.queues.iter().all(|one| one.problem.is_none())
    }
}

/// Looks at a server's queues: those that are named, or all. One that cannot be read is listed with its problem.
///
/// Errors: those of the session; `Refused` where a name is no queue's, or the functions are missing.
pub fn status(session: &mut Session, names: &[QueueName]) -> Result<StatusReport> {
    let uptime = session.one("SHOW GLOBAL STATUS LIKE 'Uptime'")?;
    let uptime = uptime.as_ref().and_then(|row| row.at(1));
    let uptime_s = uptime.and_then(|text| text.parse().ok()).unwrap_or(0);
    let names = match names {
        [] => all(session)?,
        some => {
            for name in some {
                must_be_queue(session, name)?;
            }
            some.to_vec()
        }
    };
    let mut queues = Vec::new();
    for name in names {
        let state = match looked_at(session, &name) {
            Ok(counters) => counters.map(|counters| QueueState {
                problem: None,
                numbers: Some(QueueNumbers::new(counters, uptime_s)),
                database: name.database,
                table: name.table,
            }),
            Err(error) if concerns_all(&error) => return Err(error),
            Err(error) => Some(QueueState::unreadable(name, &error)),
        };
        queues.extend(state);
    }
    Ok(StatusReport { uptime_s, queues })
}

/// What the server counts of a queue that it lists; nothing where it was dropped meanwhile.
fn looked_at(session: &mut Session, name: &QueueName) -> Result<Option<BTreeMap<String, u64>>> {
    let counted = counters(session, name)?;
    if counted.is_some() || engine(session, name)?.as_deref() != Some(ENGINE) {
        return Ok(counted);
    }
    // Its file may come a moment later than the server's own.
    match counters(session, name)? {
        None => Err(Error::failed(
            "the server lists it, and the engine does not find its file",
        )
        .hint(
            "restore the file that ends in .QUE and the directory #sqlqueue from a backup, or drop \
             the table",
        )),
        counted => Ok(counted),
    }
}

/// Whether an error met at one queue says that none can be read.
fn concerns_all(error: &Error) -> bool {
    error.kind() == ErrorKind::Unreachable || lacks_functions(error)
}

impl QueueState {
    fn unreadable(name: QueueName, why: &Error) -> Self {
        let chain = why.chain();
        let reported = [vec![&*chain], why.hints()].concat();
        Self {
            database: name.database,
            table: name.table,
            problem: Some(reported.join("; ")),
            numbers: None,
        }
    }
}

impl QueueNumbers {
    fn new(mut counters: BTreeMap<String, u64>, uptime_s: u64) -> Self {
        let owners = take_owners(&mut counters);
        let number = |name: &str| counters.get(name).copied().unwrap_or(0);
        let rate = |count: u64| count as f64 / uptime_s.max(1) as f64;
        let (written, removed) = (number("rows_written"), number("rows_removed"));
        Self {
            rows: number("rows"),
            owned: number("rows_owned"),
            waiters: number("waiters"),
            written,
            removed,
            written_per_s: rate(written),
            removed_per_s: rate(removed),
            bytes: number("bytes"),
            oldest_s: counters.get("oldest_row_seconds").copied(),
            owners,
            counters,
        }
    }
}

/// Takes those who own rows out of a queue's numbers.
fn take_owners(counters: &mut BTreeMap<String, u64>) -> Option<Vec<Owner>> {
    let mut owners = Vec::new();
    counters.retain(|name, rows| {
        let connection = name.strip_prefix("rows_owned_by_");
        let connection = connection.and_then(|number| number.parse().ok());
        owners.extend(connection.map(|connection| Owner {
            connection,
            rows: *rows,
        }));
        connection.is_none()
    });
    owners.sort_unstable_by_key(|owner| owner.connection);
    counters.contains_key("owners").then_some(owners)
}

/// Reads the first rows that nobody owns, and takes none.
///
/// Errors: those of the session; `Refused` where the table is no queue.
pub fn peek(session: &mut Session, name: &QueueName, limit: u32) -> Result<Peeked> {
    must_be_queue(session, name)?;
    let found = session.rows(&format!("SELECT * FROM {} LIMIT {limit}", name.sql()))?;
    let cells = |row: &Row| {
        let cells = (0..row.names().len()).map(|at| row.at(at).map(str::to_owned));
        cells.collect()
    };
    Ok(Peeked {
        table: name.to_string(),
        columns: found.first().map_or(Vec::new(), |row| row.names().to_vec()),
        rows: found.iter().map(cells).collect(),
    })
}

/// Has the server compact a queue.
///
/// Errors: those of the session; `Refused` where the table is no queue.
pub fn compact(session: &mut Session, name: &QueueName) -> Result<Compacted> {
    must_be_queue(session, name)?;
    let before = counters(session, name)?.ok_or_else(|| no_queue(name))?;
    let sql = format!("SELECT queue_compact({})", name.argument()?);
    session.run(&sql).map_err(|error| reported(error, name))?;
    let after = counters(session, name)?.ok_or_else(|| no_queue(name))?;
    let number = |of: &BTreeMap<String, u64>, what| of.get(what).copied().unwrap_or(0);
    Ok(Compacted {
        table: name.to_string(),
        bytes_before: number(&before, "bytes"),
        bytes_after: number(&after, "bytes"),
        rows: number(&after, "rows"),
    })
}

/// What servers call the engine.
const ENGINE: &str = "QUEUE";

/// The names of all tables of the engine, in their order.
fn all(session: &mut Session) -> Result<Vec<QueueName>> {
    let rows = session.rows(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE ENGINE = 'QUEUE' \
         ORDER BY TABLE_SCHEMA, TABLE_NAME",
    )?;
    let name = |row: &Row| {
        Some(QueueName {
            database: row.at(0)?.to_owned(),
            table: row.at(1)?.to_owned(),
        })
    };
    Ok(rows.iter().filter_map(name).collect())
}

/// A table's engine; nothing where it is none that the account may see.
pub(crate) fn engine(session: &mut Session, name: &QueueName) -> Result<Option<String>> {
    session.value(&format!(
        "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
        quote(&name.database),
        quote(&name.table)
    ))
}

/// How many rows of a queue have an owner, and how many sessions wait for some; nothing where it is gone.
pub(crate) fn consumers(session: &mut Session, name: &QueueName) -> Result<Option<(u64, u64)>> {
    let counters = counters(session, name)?;
    let number = |all: &BTreeMap<String, u64>, what| all.get(what).copied().unwrap_or(0);
    Ok(counters.map(|all| (number(&all, "rows_owned"), number(&all, "waiters"))))
}

fn must_be_queue(session: &mut Session, name: &QueueName) -> Result<()> {
    match engine(session, name)?.as_deref() {
        Some(ENGINE) => Ok(()),
        Some(_) => {
            Err(Error::refused(format!("{name} is not a queue (ENGINE=QUEUE)")).hint(LIST_THEM))
        }
        None => Err(no_queue(name)),
    }
}

const LIST_THEM: &str = "'evenkeel queue status' lists those that this account may see";

pub(crate) fn no_queue(name: &QueueName) -> Error {
    Error::refused(format!("there is no queue {name}")).hint(LIST_THEM)
}

/// What the server counts of a queue; nothing where it is gone.
fn counters(session: &mut Session, name: &QueueName) -> Result<Option<BTreeMap<String, u64>>> {
    let sql = format!("SELECT queue_stats({})", name.argument()?);
    let text = session.value(&sql).map_err(|error| reported(error, name))?;
    Ok(text.map(|text| read(&text)))
}

fn read(text: &str) -> BTreeMap<String, u64> {
    let line = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.trim().to_owned(), value.trim().parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// Whether a server says that it knows no such function.
fn lacks_functions(error: &Error) -> bool {
    matches!(ServerNumber::of(error), Some(1305 | 1046))
}

/// Adds what to do.
pub(crate) fn reported(error: Error, name: &QueueName) -> Error {
    if lacks_functions(&error) {
        return error.of_kind(ErrorKind::Refused).hint(
            "the server does not have the queue functions: run 'evenkeel plugin install queue'",
        );
    }
    match error.kind() {
        ErrorKind::Refused => error.hint(format!("the account needs SELECT and DELETE on {name}")),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_their_names() {
        let numbers = read("rows: 7\nrows_owned: 2\nwhat: ever\n\nrows_written: 600\n");
        assert_eq!(numbers.len(), 3);
        let state = QueueNumbers::new(numbers, 60);
        assert_eq!((state.rows, state.owned, state.waiters), (7, 2, 0));
        assert!((state.written_per_s - 10.0).abs() < 1e-9);
        // An earlier version says neither.
        assert_eq!((state.oldest_s, state.owners), (None, None));
        let text =
            "rows: 7\noldest_row_seconds: 90\nowners: 2\nrows_owned_by_10: 1\nrows_owned_by_9: 3\n";
        let state = QueueNumbers::new(read(text), 60);
        assert_eq!(state.oldest_s, Some(90));
        let owner = |connection, rows| Owner { connection, rows };
        assert_eq!(state.owners, Some(vec![owner(9, 3), owner(10, 1)]));
        assert_eq!(state.counters.len(), 3);
    }

    #[test]
    fn a_problem_stands_in_the_place_of_numbers() {
        let name: QueueName = "shop.a:b".parse().unwrap();
        let why = name.argument().unwrap_err();
        assert!(!concerns_all(&why));
        let state = QueueState::unreadable(name, &why);
        let problem = state.problem.unwrap();
        assert!(
            problem.contains("cannot take the name shop.a:b; rename it"),
            "{problem}"
        );
        assert_eq!(state.numbers, None);
        assert!(concerns_all(&Error::new(ErrorKind::Unreachable, "gone")));
        let unknown = Error::failed("no such function").stating(ServerNumber(1305));
        assert!(concerns_all(&unknown));
    }
}
