//! What a history needs of what it is kept in.

use evenkeel_op::Result;

/// A value in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Null,
    Integer(i64),
    Text(String),
}

/// Tables in a file or in a server. Both read the same statements, with `?` for each value.
pub(super) trait Store {
    /// Begins a transaction.
    ///
    /// Errors: those of the file or server.
    fn begin(&mut self) -> Result<()>;

    /// Ends it; from then on what it did survives a power failure.
    ///
    /// Errors: those of the file or server.
    fn commit(&mut self) -> Result<()>;

    /// Undoes what the transaction did, as far as that is not done already.
    fn roll_back(&mut self);

    /// Runs a statement whose result is not wanted.
    ///
    /// Errors: those of the file or server.
    fn run(&mut self, sql: &str, values: &[Value]) -> Result<()>;

    /// Returns all rows of a statement.
    ///
    /// Errors: those of the file or server.
    fn rows(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Vec<Value>>>;
}

/// Returns a number as both kinds of tables can have it.
pub(super) fn integer(number: u64) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Returns the number in a row.
pub(super) fn number(value: &Value) -> u64 {
    match value {
        Value::Integer(number) => u64::try_from(*number).unwrap_or(0),
        _ => 0,
    }
}

/// Returns the text in a row.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        _ => String::new(),
    }
}

/// What makes the tables, for SQLite as for a server.
pub(super) const TABLES: [&str; 3] = [
    "CREATE TABLE IF NOT EXISTS digest_history (
        id BIGINT NOT NULL PRIMARY KEY, version BIGINT NOT NULL, next_number BIGINT NOT NULL,
        writes BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS digest_period (
        number BIGINT NOT NULL PRIMARY KEY, name VARCHAR(512) NOT NULL, from_ns BIGINT NOT NULL,
        to_ns BIGINT NOT NULL, rules VARCHAR(32) NOT NULL, entries BIGINT NOT NULL,
        unreadable BIGINT NOT NULL, files LONGTEXT NOT NULL, statements BIGINT NOT NULL,
        sum_ns BIGINT NOT NULL, content VARCHAR(64) NOT NULL, series_from_ns BIGINT NOT NULL,
        series_width_ns BIGINT NOT NULL, folded BIGINT NOT NULL, left_out BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS digest_class (
        period BIGINT NOT NULL, part VARCHAR(8) NOT NULL, id VARCHAR(64) NOT NULL,
        fingerprint LONGTEXT NOT NULL, count BIGINT NOT NULL, prepares BIGINT NOT NULL,
        timed BIGINT NOT NULL, sum_ns BIGINT NOT NULL, min_ns BIGINT NOT NULL, max_ns BIGINT NOT NULL,
        lock_ns BIGINT NOT NULL, rows_sent BIGINT, rows_examined BIGINT, rows_affected BIGINT,
        bytes_in BIGINT NOT NULL, bytes_out BIGINT NOT NULL, errors BIGINT NOT NULL,
        warnings BIGINT NOT NULL, first_ns BIGINT NOT NULL, last_ns BIGINT NOT NULL,
        sample_sql LONGTEXT, sample_bytes BIGINT, sample_ns BIGINT, sample_at_ns BIGINT,
        sample_session BIGINT, sample_schema LONGTEXT, latency_us LONGTEXT NOT NULL, series LONGTEXT NOT NULL,
        users LONGTEXT NOT NULL, hosts LONGTEXT NOT NULL, `schemas` LONGTEXT NOT NULL,
        PRIMARY KEY (period, part, id))",
];
