//! One session with a server. It never reconnects: whoever holds a lock through it must learn that
//! it was lost.

mod ask;
mod attempt;
mod error;
mod greeting;
mod limited;
mod peer;
mod quote;
mod row;

pub use ask::Ask;
pub use attempt::{
    FIRST_STATEMENTS, USUAL_SOCKETS, check_files, socket_path, timed_out, unknown_host,
};
pub use error::{
    ServerNumber, broken_off, connect_error, lacks_account, query_error, query_error_of,
    told_by_files,
};
pub use mysql;
pub use peer::server_behind;
pub use quote::{quote, quote_name};
pub use row::Row;

use crate::options::ConnectOptions;
use evenkeel_op::{Context, Error, ErrorKind, Result};
use mysql::Conn;
use mysql::prelude::Queryable;
use std::sync::mpsc;

/// How much one answer may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLimit {
    /// Rows.
    pub rows: usize,
    /// Bytes of all their values.
    pub bytes: usize,
}

/// States that an answer was longer than is allowed. Its session is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

impl TooLong {
    /// Makes the error for what the server at `place` sends: `what` says how much that is.
    #[must_use]
    pub fn error(place: &str, what: &str) -> Error {
        Error::failed(format!("the server at {place} sends {what}"))
            .stating(Self)
            .hint("is this a MySQL or MariaDB server, and is the network sound?")
    }

    /// Makes the error for a statement in a session at `place` that has been lost in this way.
    #[must_use]
    pub fn before(place: &str) -> Error {
        Error::new(
            ErrorKind::Unreachable,
            format!("the session at {place} ended with an answer that was too long"),
        )
    }
}

/// Of an answer that has one row.
const FEW: RowLimit = RowLimit {
    rows: 100,
    bytes: 1 << 20,
};

/// One connection to a server.
pub struct Session {
    conn: Conn,
    limit: Option<RowLimit>,
    packet_max: Option<usize>,
    /// Of an answer that was too long, the rest is still to come: nothing else can be asked.
    is_lost: bool,
    id: u64,
    place: String,
    encrypted: bool,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session {} at {}", self.id, self.place)
    }
}

impl Session {
    /// Connects and logs in.
    ///
    /// Errors: `Unreachable` when nobody answers there, `Refused` when the server does not let us
    /// in, `Usage` for options that contradict each other.
    pub fn open(options: &ConnectOptions) -> Result<Self> {
        let place = attempt::place(options);
        let (sender, receiver) = mpsc::sync_channel(1);
        let (wanted, at) = (options.clone(), place.clone());
        // The driver's own timeout ends with the TCP connection: a server that accepts and then
        // says nothing (frozen, or its accept queue answered by the kernel) would hold us forever.
        // The thread of an attempt that ran out of time ends when its server answers or hangs up.
        std::thread::Builder::new()
            .name("connect".to_owned())
            .spawn(move || {
                // Fails only when the attempt was given up: then the session is closed here.
                let _ = sender.send(attempt::attempt(&wanted, &at));
            })
            .map_err(|e| Error::failed("failed to start a thread").because(e))?;
        let (conn, encrypted) = receiver
            .recv_timeout(options.connect_timeout)
            .map_err(|_| attempt::timed_out(options, &place))??;
        Ok(Self::of(conn, encrypted, place, options.packet_max))
    }

    fn of(conn: Conn, encrypted: bool, place: String, packet_max: Option<usize>) -> Self {
        Self {
            id: u64::from(conn.connection_id()),
            conn,
            limit: None,
            packet_max,
            is_lost: false,
            place,
            encrypted,
        }
    }

    /// Returns the server's id of this connection.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns where this session is connected to, for messages: a socket path or `host:port`.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Returns whether TLS protects this session. Over a socket it does not, and need not.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// Runs a statement whose result is not wanted.
    ///
    /// Errors: `LockTimeout` when the server gave up waiting, `Unreachable` when the connection is
    /// lost, `Refused` when a privilege is missing, else `Failed`; code and text are in the message.
    pub fn run(&mut self, sql: &str) -> Result<()> {
        if let Some(limit) = self.limit {
            return self.few_rows(sql, limit, drop);
        }
        self.ran(sql).map_err(|error| self.failed(&error, sql))
    }

    fn ran(&mut self, sql: &str) -> mysql::Result<()> {
        let mut result = self.conn.query_iter(sql)?;
        // A statement may fail behind its first row; dropping the rest would not tell.
        while let Some(rows) = result.iter() {
            for row in rows {
                row?;
            }
        }
        Ok(())
    }

    /// Turns a statement's error into ours; the account is asked for where the server does not name it.
    fn failed(&mut self, error: &mysql::Error, sql: &str) -> Error {
        if let (true, Some(most)) = (error::is_packet_too_long(error), self.packet_max) {
            let most = evenkeel_op::units::bytes(most as u64);
            return self.too_long(&format!("more than {most} in one row"));
        }
        let account: Option<String> = match error::lacks_account(error) {
            // Where this fails, the first error says enough.
            true => self.account(),
            false => None,
        };
        query_error_of(error, sql, account.as_deref())
    }

    fn account(&mut self) -> Option<String> {
        let limit = self.limit.unwrap_or(FEW);
        let mut first = None;
        let take = |row| {
            first.get_or_insert_with(|| Row::from_driver(row));
        };
        let asked = limited::rows(&mut self.conn, "SELECT CURRENT_USER()", limit, take);
        self.is_lost |= matches!(asked, Ok(false));
        first.and_then(|row| row.at(0).map(str::to_owned))
    }

    /// Has answers with more than this fail from now on. After such a failure, the session is lost. The columns of an
    /// answer are not limited: a server that may be anyone's is asked in another kind of session.
    pub fn limit_rows(&mut self, limit: RowLimit) {
        self.limit = Some(limit);
    }

    /// Returns whether an answer was longer than is allowed. Nothing can be asked in this session any more.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    fn too_long(&mut self, what: &str) -> Error {
        self.is_lost = true;
        TooLong::error(&self.place, what)
    }

    /// Runs a statement and returns all its rows. Errors as [`Session::run`], and `Failed` beyond the limit.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Row>> {
        if let Some(limit) = self.limit {
            let mut rows = Vec::new();
            self.few_rows(sql, limit, |row| rows.push(Row::from_driver(row)))?;
            return Ok(rows);
        }
        let rows: mysql::Result<Vec<mysql::Row>> = self.conn.query(sql);
        let rows = rows.map_err(|error| self.failed(&error, sql))?;
        Ok(rows.into_iter().map(Row::from_driver).collect())
    }

    fn few_rows(&mut self, sql: &str, limit: RowLimit, take: impl FnMut(mysql::Row)) -> Result<()> {
        if self.is_lost {
            return Err(TooLong::before(&self.place));
        }
        match limited::rows(&mut self.conn, sql, limit, take) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let bytes = evenkeel_op::units::bytes(limit.bytes as u64);
                Err(self.too_long(&format!(
                    "more than {} rows or {bytes} in one answer",
                    limit.rows
                )))
            }
            Err(error) => Err(self.failed(&error, sql)),
        }
    }

    /// Runs a statement and returns its first row. Errors as [`Session::run`].
    pub fn one(&mut self, sql: &str) -> Result<Option<Row>> {
        if let Some(limit) = self.limit {
            let mut first = None;
            self.few_rows(sql, limit, |row| {
                first.get_or_insert_with(|| Row::from_driver(row));
            })?;
            return Ok(first);
        }
        let row: mysql::Result<Option<mysql::Row>> = self.conn.query_first(sql);
        let row = row.map_err(|error| self.failed(&error, sql))?;
        Ok(row.map(Row::from_driver))
    }

    /// Runs a statement and returns the first column of its first row; `None` for no row and for
    /// SQL NULL. Errors as [`Session::run`].
    pub fn value(&mut self, sql: &str) -> Result<Option<String>> {
        Ok(self.one(sql)?.and_then(|row| row.at(0).map(str::to_owned)))
    }

    /// Returns a global variable, `None` when this server has none of that name.
    /// Errors as [`Session::run`].
    pub fn variable(&mut self, name: &str) -> Result<Option<String>> {
        Ask::variable(self, name)
    }

    /// Reads InnoDB's current log sequence number.
    pub fn lsn(&mut self) -> Result<u64> {
        if let Some(row) = self.one("SHOW GLOBAL STATUS LIKE 'Innodb_lsn_current'")?
            && let Some(lsn) = row.at(1).and_then(|text| text.parse().ok())
        {
            return Ok(lsn);
        }
        let row = self.one("SHOW ENGINE INNODB STATUS")?;
        row.as_ref()
            .and_then(|row| row.at(2))
            .and_then(|text| text.split("Log sequence number").nth(1))
            .and_then(|rest| rest.split_whitespace().next())
            .and_then(|number| number.parse().ok())
            .ok_or_else(|| Error::failed("the server does not report its log sequence number"))
            .context(|| "failed to read SHOW ENGINE INNODB STATUS")
    }

    /// Returns whether this very connection is still there. Asks the server once.
    pub fn is_alive(&mut self) -> bool {
        let id = self.value("SELECT CONNECTION_ID()");
        matches!(id, Ok(Some(text)) if text.parse() == Ok(self.id))
    }

    /// Returns the driver's connection, for what this type does not offer.
    pub fn raw(&mut self) -> &mut Conn {
        &mut self.conn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::SslMode;

    #[test]
    fn nobody_there_is_unreachable_and_hints() {
        let error = Session::open(&ConnectOptions::over_socket("/nonexistent/s", "u")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        assert!(error.to_string().contains("/nonexistent/s"), "{error}");
        assert!(!error.hints().is_empty());
    }

    #[test]
    fn a_silent_server_is_given_up() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port();
        let options = ConnectOptions {
            connect_timeout: std::time::Duration::from_millis(200),
            ..ConnectOptions::over_tcp("127.0.0.1", port, "u")
        };
        let error = Session::open(&options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable);
        assert!(error.to_string().contains("200 ms"), "{error}");
    }

    #[test]
    fn tls_over_a_socket_is_not_pretended() {
        let mut options = ConnectOptions::over_socket("/nonexistent/s", "u");
        options.ssl_mode = SslMode::Required;
        let error = Session::open(&options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
    }
}
