//! A row's cells as text that a server reads back to the same bytes.

mod sql;
mod tab;

use super::catalog::Table;
use evenkeel_wire::{Malformed, Row};
use serde::{Deserialize, Serialize};

/// What rows look like in files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Tab-separated, as LOAD DATA reads it by default.
    #[default]
    Tab,
    /// INSERT statements of many rows.
    Sql,
}

impl Format {
    /// Returns how files of it end.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Tab => "tsv",
            Self::Sql => "sql",
        }
    }
}

/// Turns the rows of one table into bytes.
#[derive(Debug)]
pub(super) enum Encoder {
    Tab(tab::Tab),
    Sql(sql::Sql),
}

impl Encoder {
    pub(super) fn new(format: Format, table: &Table) -> Self {
        match format {
            Format::Tab => Self::Tab(tab::Tab::new(table)),
            Format::Sql => Self::Sql(sql::Sql::new(table)),
        }
    }

    /// Adds what a file begins with.
    pub(super) fn begin(&mut self, out: &mut Vec<u8>) {
        if let Self::Sql(sql) = self {
            sql.begin(out);
        }
    }

    /// Adds a row.
    #[inline]
    pub(super) fn row(&mut self, row: Row<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        match self {
            Self::Tab(tab) => tab.row(row, out),
            Self::Sql(sql) => sql.row(row, out),
        }
    }

    /// Adds what a file ends with.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if let Self::Sql(sql) = self {
            sql.end(out);
        }
    }
}

/// Copies `cell`, with `escape[byte]` after a backslash in place of each byte that has one.
#[inline]
fn escaped(cell: &[u8], escape: &[u8; 256], out: &mut Vec<u8>) {
    let mut rest = cell;
    while let Some(at) = rest.iter().position(|byte| escape[usize::from(*byte)] != 0) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(&[b'\\', escape[usize::from(rest[at])]]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Column;

    /// A table with columns of these types.
    pub(super) fn table(columns: &[(&str, &str, Option<&str>)]) -> Table {
        let columns = columns
            .iter()
            .map(|(name, data_type, charset)| Column::for_tests(name, data_type, *charset));
        Table::for_tests("s", "t", columns.collect())
    }

    /// A row's packet.
    pub(super) fn packet(cells: &[Option<&[u8]>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for cell in cells {
            match cell {
                None => bytes.push(0xFB),
                Some(cell) => {
                    bytes.push(0xFD);
                    bytes.extend_from_slice(&(cell.len() as u32).to_le_bytes()[..3]);
                    bytes.extend_from_slice(cell);
                }
            }
        }
        bytes
    }
}
