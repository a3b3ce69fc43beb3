//! Sessions with servers that may be anyone's: whatever one sends, it costs no more memory than was allowed, it comes to
//! an end, and it does not get a password that it could read.

use crate::connection::{Answer, Connection, SILENCE};
use crate::decode::Column;
use crate::login::{Distrust, LoginTerms};
use crate::rows::Row as Packet;
use evenkeel_op::{Cancel, Error, ErrorKind, Result, units};
use evenkeel_server::connect::{Ask, FIRST_STATEMENTS, Row, RowLimit, TooLong, query_error_of};
use evenkeel_server::options::ConnectOptions;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// More columns than any server's table has.
const COLUMNS: u64 = 4096;
/// Where the options say nothing, in bytes.
const PACKET: usize = 64 << 20;

/// A session whose answers are bounded: in rows, in columns, in bytes, and in time.
#[derive(Debug)]
pub struct BoundedSession {
    connection: Connection,
    limit: RowLimit,
    packet_max: usize,
    /// The rest of an answer is still to come: nothing else can be asked.
    is_lost: bool,
}

/// How much of an answer has come.
#[derive(Debug, Default)]
struct Come {
    results: usize,
    rows: usize,
    bytes: usize,
}

/// More came than may.
struct TooMuch;

impl Come {
    fn adds(&mut self, rows: usize, bytes: usize, limit: RowLimit) -> Result<(), TooMuch> {
        self.rows += rows;
        self.bytes = self.bytes.saturating_add(bytes);
        match self.rows > limit.rows || self.bytes > limit.bytes || self.results > limit.rows {
            true => Err(TooMuch),
            false => Ok(()),
        }
    }
}

/// Why an answer was not read to its end.
enum Broken {
    Failed(Error),
    TooMuch,
    TooWide(u64),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<TooMuch> for Broken {
    fn from(_: TooMuch) -> Self {
        Self::TooMuch
    }
}

impl BoundedSession {
    /// Connects and logs in, within the options' time.
    ///
    /// Errors: `Unreachable` when nobody answers there in time, `Refused` when the server does not let us in, or asks
    /// for the password in a way that others could read.
    pub fn open(options: &ConnectOptions, limit: RowLimit) -> Result<Self> {
        Self::within(options, limit, options.connect_timeout)
    }

    /// Does the same, and waits as long for what listens and says nothing as for an answer: so no attempt is left
    /// behind at a server that is frozen.
    ///
    /// Errors: as [`BoundedSession::open`].
    pub fn open_patiently(options: &ConnectOptions, limit: RowLimit) -> Result<Self> {
        Self::within(options, limit, SILENCE)
    }

    fn within(options: &ConnectOptions, limit: RowLimit, within: Duration) -> Result<Self> {
        let packet_max = options.packet_max.unwrap_or(PACKET);
        let terms = LoginTerms {
            compress: false,
            distrust: Some(Distrust { within, packet_max }),
        };
        let begun = Instant::now();
        let mut session = Self {
            connection: Connection::on_terms(options, terms, &Cancel::new())?,
            limit,
            packet_max,
            is_lost: false,
        };
        session.connection.set_silence(within);
        for sql in FIRST_STATEMENTS {
            session.ask(sql, begun + within, &mut drop)?;
        }
        session.connection.set_silence(SILENCE);
        Ok(session)
    }

    /// Returns the server's number of this session.
    #[must_use]
    pub fn id(&self) -> u64 {
        u64::from(self.connection.id())
    }

    /// Has answers with more than this fail from now on. After such a failure, the session is lost.
    pub fn limit_rows(&mut self, limit: RowLimit) {
        self.limit = limit;
    }

    /// Returns whether an answer was longer than is allowed. Nothing can be asked in this session any more.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Returns what is beneath.
    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    fn ask(&mut self, sql: &str, until: Instant, take: &mut dyn FnMut(Row)) -> Result<()> {
        if self.is_lost {
            return Err(TooLong::before(self.connection.place()));
        }
        self.connection.set_deadline(until);
        let ended = self.read(sql, take);
        let Err(broken) = ended else {
            return Ok(());
        };
        let what = match broken {
            Broken::Failed(_) if self.connection.is_too_long() => {
                let most = units::bytes(self.packet_max as u64);
                format!("more than {most} in one row")
            }
            Broken::Failed(error) => return Err(error),
            Broken::TooWide(count) => format!("{count} columns, more than {COLUMNS}"),
            Broken::TooMuch => {
                let bytes = units::bytes(self.limit.bytes as u64);
                format!(
                    "more than {} rows or {bytes} in one answer",
                    self.limit.rows
                )
            }
        };
        self.is_lost = true;
        Err(TooLong::error(self.connection.place(), &what))
    }

    /// Reads all results of a statement, and hands over the rows of the first.
    fn read(&mut self, sql: &str, take: &mut dyn FnMut(Row)) -> Result<(), Broken> {
        let mut come = Come::default();
        let mut answer = self.connection.begin(sql.as_bytes(), sql)?;
        loop {
            come.results += 1;
            come.adds(0, 0, self.limit)?;
            match answer {
                Answer::Ended(ending) => self.connection.note(ending),
                Answer::Columns(count) => {
                    let names = self.names(count, sql, &mut come)?;
                    self.connection.rows_follow();
                    self.rows(&names, sql, &mut come, take)?;
                }
                // Whoever is not offered files does not ask for one.
                Answer::WantsFile => Err(self.nonsense(sql))?,
            }
            if !self.connection.has_more() {
                return Ok(());
            }
            answer = self.connection.answer(sql)?;
        }
    }

    fn nonsense(&mut self, sql: &str) -> Error {
        self.connection.malformed(crate::decode::Malformed, sql)
    }

    /// Reads the definitions of columns.
    fn names(&mut self, count: u64, sql: &str, come: &mut Come) -> Result<Arc<[String]>, Broken> {
        if count > COLUMNS {
            return Err(Broken::TooWide(count));
        }
        let mut names = Vec::new();
        for _ in 0..count {
            let packet = self.connection.packet(sql)?;
            come.adds(0, packet.len() + size_of::<String>(), self.limit)?;
            match Column::of(packet) {
                Ok(column) => names.push(column.name),
                Err(_) => Err(self.nonsense(sql))?,
            }
        }
        if names.is_empty() || self.connection.has_eof() && !self.ends(sql)? {
            Err(self.nonsense(sql))?;
        }
        Ok(names.into())
    }

    /// Reads what ends the definitions of columns.
    fn ends(&mut self, sql: &str) -> Result<bool> {
        let packet = self.connection.packet(sql)?;
        Ok(packet.first() == Some(&0xFE))
    }

    fn rows(
        &mut self,
        names: &Arc<[String]>,
        sql: &str,
        come: &mut Come,
        take: &mut dyn FnMut(Row),
    ) -> Result<(), Broken> {
        while let Some(bytes) = self.connection.row(sql)? {
            let size = bytes.len() + names.len() * size_of::<Option<String>>();
            come.adds(1, size, self.limit)?;
            match row(names, bytes) {
                Some(row) if come.results == 1 => take(row),
                Some(_) => {}
                None => Err(self.nonsense(sql))?,
            }
        }
        Ok(())
    }
}

impl AsFd for BoundedSession {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}

impl Drop for BoundedSession {
    fn drop(&mut self) {
        if !self.is_lost {
            self.connection.quit();
        }
    }
}

/// Reads a row that has as many values as there are columns, and nothing behind them. What is not UTF-8 comes out with
/// replacement characters.
fn row(names: &Arc<[String]>, bytes: &[u8]) -> Option<Row> {
    let mut cells = Packet::of(bytes).cells();
    let mut values = Vec::with_capacity(names.len());
    for _ in 0..names.len() {
        let cell = cells.next().ok()?;
        values.push(cell.map(|bytes| String::from_utf8_lossy(bytes).into_owned()));
    }
    cells.is_empty().then(|| Row::new(names.clone(), values))
}

impl Ask for BoundedSession {
    fn each(&mut self, sql: &str, take: &mut dyn FnMut(Row)) -> Result<()> {
        let until = Instant::now() + SILENCE;
        let asked = self.ask(sql, until, take);
        let (Err(error), Some(lacking)) = (&asked, self.connection.take_lacking()) else {
            return asked;
        };
        if error.kind() == ErrorKind::Unreachable {
            return asked;
        }
        // Where this fails, the first error says enough.
        let mut account = None;
        let mut take = |row: Row| account = row.at(0).map(str::to_owned);
        let _ = self.ask("SELECT CURRENT_USER()", until, &mut take);
        Err(query_error_of(&lacking, sql, account.as_deref()))
    }

    fn place(&self) -> &str {
        self.connection.place()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(count: usize) -> Arc<[String]> {
        vec!["a".to_owned(); count].into()
    }

    #[test]
    fn a_row_has_as_many_values_as_columns() {
        let bytes = [1, b'x', 0xFB];
        let read = row(&names(2), &bytes).unwrap();
        assert_eq!((read.at(0), read.at(1)), (Some("x"), None));
        assert!(row(&names(1), &bytes).is_none());
        assert!(row(&names(3), &bytes).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_row_or_none(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            columns in 0usize..9,
        ) {
            let read = row(&names(columns), &bytes);
            prop_assert!(read.is_none_or(|row| row.names().len() == columns));
        }

        /// However an answer is cut into rows and results, no more than the limit is kept.
        #[test]
        fn no_more_comes_than_may(parts in proptest::collection::vec((0usize..3, 0usize..400), 0..99)) {
            let limit = RowLimit { rows: 20, bytes: 3000 };
            let mut come = Come::default();
            let (mut rows, mut bytes) = (0, 0);
            for (one, size) in parts {
                come.results += usize::from(one == 0);
                match come.adds(one, size, limit) {
                    Ok(()) => (rows, bytes) = (rows + one, bytes + size),
                    Err(TooMuch) => break,
                }
                prop_assert!(rows <= 20 && bytes <= 3000 && come.results <= 20);
            }
        }
    }
}
