//! What every session can be asked, whoever carries the statements.

use super::{Row, Session, quote};
use evenkeel_op::Result;

/// A session with a server.
pub trait Ask {
    /// Runs a statement and hands over the rows of its first result.
    ///
    /// Errors: those of [`Session::run`].
    fn each(&mut self, sql: &str, take: &mut dyn FnMut(Row)) -> Result<()>;

    /// Returns where it is connected to, for messages: a socket path or `host:port`.
    fn place(&self) -> &str;

    /// Runs a statement whose result is not wanted. Errors as [`Ask::each`].
    fn run(&mut self, sql: &str) -> Result<()> {
        self.each(sql, &mut drop)
    }

    /// Runs a statement and returns all its rows. Errors as [`Ask::each`].
    fn rows(&mut self, sql: &str) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        self.each(sql, &mut |row| rows.push(row))?;
        Ok(rows)
    }

    /// Runs a statement and returns its first row. Errors as [`Ask::each`].
    fn one(&mut self, sql: &str) -> Result<Option<Row>> {
        let mut first = None;
        self.each(sql, &mut |row| {
            first.get_or_insert(row);
        })?;
        Ok(first)
    }

    /// Runs a statement and returns the first column of its first row; `None` for no row and for SQL NULL. Errors as
    /// [`Ask::each`].
    fn value(&mut self, sql: &str) -> Result<Option<String>> {
        Ok(self.one(sql)?.and_then(|row| row.at(0).map(str::to_owned)))
    }

    /// Returns a global variable, `None` when this server has none of that name. Errors as [`Ask::each`].
    fn variable(&mut self, name: &str) -> Result<Option<String>> {
        // LIKE's pattern: an underscore would match any character.
        let pattern = name.replace('\\', "\\\\").replace('_', "\\_");
        let pattern = quote(&pattern.replace('%', "\\%"));
        let row = self.one(&format!("SHOW GLOBAL VARIABLES LIKE {pattern}"))?;
        Ok(row.and_then(|row| row.at(1).map(str::to_owned)))
    }
}

impl Ask for Session {
    fn each(&mut self, sql: &str, take: &mut dyn FnMut(Row)) -> Result<()> {
        Session::rows(self, sql)?.into_iter().for_each(take);
        Ok(())
    }

    fn place(&self) -> &str {
        Session::place(self)
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        Session::run(self, sql)
    }

    fn one(&mut self, sql: &str) -> Result<Option<Row>> {
        Session::one(self, sql)
    }
}
