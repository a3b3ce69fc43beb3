//! Questions whose answers are bytes.

use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_server::connect::{Session, query_error, quote_name};
use mysql::prelude::Queryable;

/// One row: bytes by column name.
pub(super) struct Answer {
    names: Vec<String>,
    values: Vec<Option<Vec<u8>>>,
}

impl Answer {
    /// Returns a column, whatever the case of its name; `None` for NULL and for no such column.
    pub(super) fn bytes(&self, name: &str) -> Option<&[u8]> {
        let at = self
            .names
            .iter()
            .position(|one| one.eq_ignore_ascii_case(name))?;
        self.values[at].as_deref()
    }

    /// Returns a column that is a name, a number or a keyword; empty for NULL.
    pub(super) fn text(&self, name: &str) -> String {
        self.some(name).unwrap_or_default()
    }

    /// Returns a column that is a name, a number or a keyword.
    pub(super) fn some(&self, name: &str) -> Option<String> {
        self.bytes(name)
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Returns a column that is a number; 0 for NULL.
    pub(super) fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or(0)
    }

    /// Returns whether a column is `word`, whatever its case.
    pub(super) fn is(&self, name: &str, word: &str) -> bool {
        self.text(name).eq_ignore_ascii_case(word)
    }

    /// Returns the first column.
    pub(super) fn first(&self) -> Option<&[u8]> {
        self.values.first()?.as_deref()
    }
}

/// Runs a statement and returns its rows, or the driver's error.
pub(super) fn try_rows(session: &mut Session, sql: &str) -> Result<Vec<Answer>, mysql::Error> {
    let rows: Vec<mysql::Row> = session.raw().query(sql)?;
    let answer = |row: mysql::Row| Answer {
        names: row
            .columns_ref()
            .iter()
            .map(|column| column.name_str().into_owned())
            .collect(),
        values: row.unwrap().into_iter().map(bytes).collect(),
    };
    Ok(rows.into_iter().map(answer).collect())
}

/// Runs a statement and returns its rows. Errors: those of the session.
pub(super) fn rows(session: &mut Session, sql: &str) -> Result<Vec<Answer>> {
    try_rows(session, sql).map_err(|e| query_error(&e, sql))
}

/// Asks for one object; `None` when it is gone. Errors: those of the session.
pub(super) fn object(session: &mut Session, sql: &str) -> Result<Option<Answer>> {
    match try_rows(session, sql) {
        Ok(rows) => Ok(rows.into_iter().next()),
        Err(mysql::Error::MySqlError(e)) if is_gone(e.code) => Ok(None),
        Err(error) => Err(query_error(&error, sql)),
    }
}

/// Returns whether a server's code means that the object is no longer there: schema, table,
/// routine, trigger, event, sequence.
fn is_gone(code: u16) -> bool {
    matches!(code, 1049 | 1146 | 1305 | 1360 | 1539 | 4091)
}

/// Returns `schema.object`, quoted.
pub(super) fn qualified(database: &str, name: &str) -> String {
    format!("{}.{}", quote_name(database), quote_name(name))
}

/// Returns the error for something that the account may see but not read.
pub(super) fn lacking(what: &str, privilege: &str, way_out: &str) -> Error {
    Error::new(
        ErrorKind::Refused,
        format!("{what} cannot be read: the account lacks {privilege}"),
    )
    .hint(format!("grant {privilege} to the account, or {way_out}"))
}

fn bytes(value: mysql::Value) -> Option<Vec<u8>> {
    match value {
        mysql::Value::NULL => None,
        mysql::Value::Bytes(bytes) => Some(bytes),
        // The text protocol has nothing else.
        other => Some(other.as_sql(true).trim_matches('\'').as_bytes().to_vec()),
    }
}
