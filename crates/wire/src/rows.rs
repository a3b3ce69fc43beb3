//! A result, row by row.

use crate::connection::Connection;
use crate::decode::{Bytes, Column, Ending, Malformed};
use evenkeel_op::Result;

/// A result that is being read. Dropped before its end, the rest is read when the connection is
/// used again.
#[derive(Debug)]
pub struct Rows<'c> {
    connection: &'c mut Connection,
    sql: &'c str,
    columns: Vec<Column>,
}

impl<'c> Rows<'c> {
    pub(crate) fn begin(connection: &'c mut Connection, count: u64, sql: &'c str) -> Result<Self> {
        let columns = read_columns(connection, count, sql)?;
        connection.rows_follow();
        Ok(Self {
            connection,
            sql,
            columns,
        })
    }

    /// Returns the columns in order.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Reads the next row; `None` after the last.
    ///
    /// Errors: what stopped the server in the middle; `Unreachable` when the connection was lost.
    #[allow(clippy::should_implement_trait)] // An iterator could not lend its buffer.
    pub fn next(&mut self) -> Result<Option<Row<'_>>> {
        let row = self.connection.row(self.sql)?;
        Ok(row.map(|bytes| Row { bytes }))
    }

    /// Reads to the end and returns how many warnings there are.
    pub(crate) fn drop_all(mut self) -> Result<u16> {
        while self.next()?.is_some() {}
        Ok(self.connection.warnings())
    }

    /// Returns an error that says the server sent a row that makes no sense, and gives the
    /// connection up.
    pub fn malformed(&mut self, error: Malformed) -> evenkeel_op::Error {
        self.connection.malformed(error, self.sql)
    }
}

/// Reads the definitions of `count` columns.
pub(crate) fn read_columns(
    connection: &mut Connection,
    count: u64,
    sql: &str,
) -> Result<Vec<Column>> {
    // More than any server has, and little enough to believe.
    if count == 0 || count > 0xFFFF {
        return Err(connection.malformed(Malformed, sql));
    }
    let mut columns = Vec::new();
    for _ in 0..count {
        let column = Column::of(connection.packet(sql)?);
        columns.push(column.map_err(|error| connection.malformed(error, sql))?);
    }
    if connection.has_eof() {
        let ending = Ending::of_eof(connection.packet(sql)?);
        ending.map_err(|error| connection.malformed(error, sql))?;
    }
    Ok(columns)
}

/// One row: a slice of the connection's buffer.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    bytes: &'a [u8],
}

impl<'a> Row<'a> {
    /// Makes a row of a packet's bytes.
    #[must_use]
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Returns the row's cells from the first.
    #[must_use]
    pub fn cells(&self) -> Cells<'a> {
        Cells(Bytes(self.bytes))
    }

    /// Returns the size of the row's packet in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// The cells of a row, in order.
#[derive(Debug, Clone, Copy)]
pub struct Cells<'a>(Bytes<'a>);

impl<'a> Cells<'a> {
    /// Takes the next cell; `None` is SQL's NULL.
    ///
    /// Errors: [`Malformed`] past the last cell, and for bytes that are no cell.
    #[inline]
    #[allow(clippy::should_implement_trait)] // An iterator's end would be one more thing to check.
    pub fn next(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        self.0.string()
    }

    /// Returns whether there are no more cells.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.0.is_empty()
    }
}
