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

    /// Reads the next row, or the next piece of one that is longer than [`WHOLE`]; `None` after the
    /// last. So the longest row needs no more memory than others.
    ///
    /// Errors: as [`Rows::next`].
    pub fn next_part(&mut self) -> Result<Option<Part<'_>>> {
        self.connection.part(self.sql, WHOLE)
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

/// The longest row that [`Rows::next_part`] gives as one, in bytes.
pub const WHOLE: usize = 1 << 20;

/// A row, or a part of a long one.
#[derive(Debug)]
pub enum Part<'a> {
    /// A whole row.
    Row(Row<'a>),
    /// A long row begins.
    Begin,
    /// Bytes of a long row, for [`Pieces`].
    Piece(&'a [u8]),
    /// The long row ends.
    End,
}

/// What a long row's bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellPart<'a> {
    /// A cell is NULL.
    Null,
    /// A cell of so many bytes begins.
    Begin(u64),
    /// Some of its bytes.
    Bytes(&'a [u8]),
    /// It ends.
    End,
}

/// The cells of a long row, from its pieces.
#[derive(Debug, Default)]
pub struct Pieces {
    /// What is there of a cell's length.
    head: Vec<u8>,
    /// Bytes that the cell still has; `None` between cells.
    left: Option<u64>,
}

impl Pieces {
    /// Takes the next part off `piece`; `None` when it holds no more.
    ///
    /// Errors: [`Malformed`] for bytes that are no cell.
    pub fn next<'a>(&mut self, piece: &mut &'a [u8]) -> Result<Option<CellPart<'a>>, Malformed> {
        match self.left {
            Some(0) => {
                self.left = None;
                Ok(Some(CellPart::End))
            }
            Some(left) => {
                let count = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let (bytes, rest) = piece.split_at(count);
                *piece = rest;
                self.left = Some(left - count as u64);
                Ok((count > 0).then_some(CellPart::Bytes(bytes)))
            }
            None => self.begin(piece),
        }
    }

    fn begin<'a>(&mut self, piece: &mut &'a [u8]) -> Result<Option<CellPart<'a>>, Malformed> {
        while let Some((byte, rest)) = piece.split_first() {
            self.head.push(*byte);
            *piece = rest;
            let wanted = match self.head[0] {
                0xFC => 3,
                0xFD => 4,
                0xFE => 9,
                _ => 1,
            };
            if self.head.len() == wanted {
                let length = Bytes(&self.head).length()?;
                self.head.clear();
                self.left = length;
                return Ok(Some(length.map_or(CellPart::Null, CellPart::Begin)));
            }
        }
        Ok(None)
    }

    /// Returns whether no cell is in the middle: a row may end here.
    #[must_use]
    pub fn is_between(&self) -> bool {
        self.head.is_empty() && self.left.is_none()
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However a row is cut, its cells are the same.
        #[test]
        fn cells_come_back_from_pieces(
            cells in proptest::collection::vec(proptest::option::of(0usize..70_000), 0..6),
            step in 1usize..9000,
        ) {
            let mut row = Vec::new();
            let mut wanted: Vec<Option<Vec<u8>>> = Vec::new();
            for length in cells {
                match length {
                    None => row.push(0xFB),
                    Some(short @ ..=0xFA) => row.push(short as u8),
                    Some(long) => {
                        row.push(0xFD);
                        row.extend_from_slice(&(long as u32).to_le_bytes()[..3]);
                    }
                }
                let cell = length.map(|length| (0..length).map(|n| n as u8).collect::<Vec<u8>>());
                row.extend_from_slice(cell.as_deref().unwrap_or_default());
                wanted.push(cell);
            }
            let (mut pieces, mut found) = (Pieces::default(), Vec::new());
            let mut open: Option<Vec<u8>> = None;
            for mut piece in row.chunks(step) {
                while let Some(part) = pieces.next(&mut piece).unwrap() {
                    match part {
                        CellPart::Null => found.push(None),
                        CellPart::Begin(_) => open = Some(Vec::new()),
                        CellPart::Bytes(bytes) => open.as_mut().unwrap().extend_from_slice(bytes),
                        CellPart::End => found.push(open.take()),
                    }
                }
            }
            prop_assert!(pieces.is_between());
            prop_assert_eq!(found, wanted);
        }
    }
}
