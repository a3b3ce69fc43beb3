//! A history in an SQLite file.

use super::VERSION;
use super::store::{Store, TABLES, Value};
use evenkeel_op::{Cancel, Error, ErrorKind, Result};
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, ErrorCode, OpenFlags, params_from_iter};
use rustix::process::geteuid;
use std::fs::OpenOptions;
use std::io::ErrorKind as IoKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// `EKDH`: says in the file's header whose it is.
const APPLICATION: i64 = 0x454B_4448;
/// How long another program may write before this one gives up.
const WAIT: Duration = Duration::from_secs(60);
/// After how long a wait looks whether it should end.
const STEP: Duration = Duration::from_millis(100);

pub(super) struct InFile {
    connection: Connection,
    path: PathBuf,
    cancel: Cancel,
}

impl InFile {
    /// Opens the file; one that does not exist is made, and only its owner may read it.
    ///
    /// Errors: `Usage` for what is no history; `Failed` where it cannot be read or written.
    pub(super) fn open(path: &Path, cancel: &Cancel) -> Result<Self> {
        refuse_directories_of_others(path)?;
        make(path)?;
        // SQLite takes some names for no files.
        let absolute = std::path::absolute(path).map_err(|error| cannot_open(path, error))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(absolute, flags).map_err(|error| failed(path, &error))?;
        let mut file = Self {
            connection,
            path: path.to_owned(),
            cancel: cancel.clone(),
        };
        file.prepare()?;
        Ok(file)
    }

    fn prepare(&mut self) -> Result<()> {
        let waits = self.connection.busy_timeout(STEP);
        waits.map_err(|error| self.failed(&error))?;
        // A commit is on the disk when it is done, and what was removed is overwritten.
        self.said(
            "PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; PRAGMA trusted_schema = OFF",
        )?;
        if self.is_ours()? {
            return Ok(());
        }
        self.begin()?;
        let made = self.make_tables();
        match made {
            Ok(()) => self.commit(),
            Err(error) => {
                self.roll_back();
                Err(error)
            }
        }
    }

    fn is_ours(&mut self) -> Result<bool> {
        let sql = "SELECT (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_master), \
             (SELECT count(*) FROM sqlite_master WHERE type IN ('trigger', 'view'))";
        let read = |file: &mut Self| {
            file.connection
                .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        };
        let (application, tables, foreign): (i64, i64, i64) = self.waiting(read)?;
        match (application, tables) {
            (APPLICATION, _) if foreign > 0 => Err(Error::refused(format!(
                "{} has triggers or views, which no history has: they may change what is kept",
                self.path.display()
            ))
            .hint("drop them with sqlite3, or begin a new history")),
            (APPLICATION, _) => Ok(true),
            (0, 0) => Ok(false),
            _ => Err(Error::usage(format!(
                "{} is an SQLite database of another program",
                self.path.display()
            ))
            .hint("name a file that does not exist: it will be made")),
        }
    }

    fn make_tables(&mut self) -> Result<()> {
        // Another program may have been faster.
        if self.is_ours()? {
            return Ok(());
        }
        for table in TABLES {
            self.said(table)?;
        }
        self.said(&format!(
            "INSERT OR IGNORE INTO digest_history (id, version, next_number, writes) VALUES (1, {VERSION}, 1, 0); \
             PRAGMA application_id = {APPLICATION}"
        ))
    }

    fn said(&mut self, sql: &str) -> Result<()> {
        let sql = sql.to_owned();
        self.waiting(move |file| file.connection.execute_batch(&sql))
    }

    /// Does something as soon as no other program writes.
    fn waiting<T>(&mut self, mut what: impl FnMut(&mut Self) -> rusqlite::Result<T>) -> Result<T> {
        let begun = Instant::now();
        loop {
            let error = match what(self) {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            if !is_busy(&error) || begun.elapsed() > WAIT {
                return Err(self.failed(&error));
            }
            self.cancel.check()?;
        }
    }

    fn failed(&self, error: &rusqlite::Error) -> Error {
        failed(&self.path, error)
    }
}

impl Store for InFile {
    fn begin(&mut self) -> Result<()> {
        self.said("BEGIN IMMEDIATE")
    }

    fn commit(&mut self) -> Result<()> {
        self.said("COMMIT")
    }

    fn roll_back(&mut self) {
        // Where this fails too, SQLite does it when the file is next opened.
        let _ = self.connection.execute_batch("ROLLBACK");
    }

    fn run(&mut self, sql: &str, values: &[Value]) -> Result<()> {
        self.waiting(|file| {
            let mut statement = file.connection.prepare(sql)?;
            statement
                .execute(params_from_iter(values.iter().map(sql_value)))
                .map(|_| ())
        })
    }

    fn rows(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Vec<Value>>> {
        self.waiting(|file| {
            let mut statement = file.connection.prepare(sql)?;
            let columns = statement.column_count();
            let values = params_from_iter(values.iter().map(sql_value));
            let rows = statement.query_map(values, |row| {
                (0..columns).map(|at| row.get(at).map(value)).collect()
            })?;
            rows.collect()
        })
    }
}

fn sql_value(value: &Value) -> SqlValue {
    match value {
        Value::Null => SqlValue::Null,
        Value::Integer(number) => SqlValue::Integer(*number),
        Value::Text(text) => SqlValue::Text(text.clone()),
    }
}

fn value(value: SqlValue) -> Value {
    match value {
        SqlValue::Integer(number) => Value::Integer(number),
        SqlValue::Text(text) => Value::Text(text),
        _ => Value::Null,
    }
}

/// Makes an empty file where there is none.
fn make(path: &Path) -> Result<()> {
    match std::fs::metadata(path) {
        // Whoever owns it reads the samples in it, and can have triggers change what is written.
        Ok(there) if there.is_file() && there.uid() != geteuid().as_raw() => {
            return Err(Error::refused(format!(
                "{} belongs to another user, who would read what is kept in it",
                path.display()
            ))
            .hint("name a file of your own: it is made if it does not exist"));
        }
        Ok(there) if there.is_file() => return Ok(()),
        Ok(_) => {
            return Err(
                Error::usage(format!("{} is not a regular file", path.display()))
                    .hint("name a file for the history; it is made if it does not exist"),
            );
        }
        Err(error) if error.kind() != IoKind::NotFound => return Err(cannot_open(path, error)),
        Err(_) => {}
    }
    let mut new = OpenOptions::new();
    match new.write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == IoKind::AlreadyExists => Ok(()),
        Err(error) => Err(cannot_open(path, error)),
    }
}

/// Refuses a directory in which another user can make files: SQLite would play a journal that lies beside a history back
/// into it.
fn refuse_directories_of_others(path: &Path) -> Result<()> {
    let absolute = std::path::absolute(path).map_err(|error| cannot_open(path, error))?;
    // Of a link, SQLite looks beside the file that it leads to.
    let file = absolute.canonicalize().unwrap_or(absolute);
    if file.is_dir() {
        // No history: that is said next.
        return Ok(());
    }
    let Some(Ok(there)) = file.parent().map(std::fs::metadata) else {
        return Ok(());
    };
    let is_ours = [0, geteuid().as_raw()].contains(&there.uid());
    if is_ours && there.mode() & 0o002 == 0 {
        return Ok(());
    }
    Err(Error::refused(format!(
        "another user can make files beside {}, and so change what is in it",
        path.display()
    ))
    .hint("keep histories in a directory that only you can write to"))
}

fn cannot_open(path: &Path, error: std::io::Error) -> Error {
    Error::usage(format!("failed to open the history {}", path.display()))
        .because(error)
        .hint("name a file in a directory that exists and may be written")
}

fn is_busy(error: &rusqlite::Error) -> bool {
    let busy = [ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked];
    error
        .sqlite_error_code()
        .is_some_and(|code| busy.contains(&code))
}

fn failed(path: &Path, error: &rusqlite::Error) -> Error {
    let place = path.display();
    let because = |failure: Error| failure.because(std::io::Error::other(error.to_string()));
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => Error::usage(format!(
            "{place} is not a history: it is no SQLite database"
        ))
        .hint("name a file that does not exist: it will be made"),
        Some(ErrorCode::DiskFull) => because(Error::failed(format!(
            "no space for the history {place}, so nothing of this run was added"
        )))
        .hint("free space, then repeat the command"),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => because(Error::new(
            ErrorKind::Busy,
            format!("another program has been writing the history {place} for a minute"),
        ))
        .hint("repeat the command when it is done"),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => because(
            Error::usage(format!("the history {place} may not be written")),
        )
        .hint("run as its owner; SQLite also creates files beside it, in its directory"),
        Some(ErrorCode::DatabaseCorrupt) => because(Error::new(
            ErrorKind::Differs,
            format!("the history {place} is damaged"),
        ))
        .hint("use a copy of it, or save what can be read: sqlite3 FILE .recover"),
        _ => because(Error::failed(format!(
            "failed to read or write the history {place}, so nothing of this run was added"
        )))
        .hint("see whether its disk is full or failing, then repeat the command"),
    }
}
