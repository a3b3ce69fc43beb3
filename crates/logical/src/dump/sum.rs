//! A table's rows as a number and a sum that no order changes: a dump's files and a server are
//! compared by it, byte for byte.

use super::encode::{Encoder, Format};
use super::filter::Filter;
use super::manifest::ColumnEntry;
use super::table::DumpTable;
use crate::objects;
use evenkeel_op::Result;
use evenkeel_wire::Connection;

/// Bytes of rows are the columns' own, and times in UTC, as when they are dumped.
const AS_DUMPED: [&str; 2] = [
    "SET NAMES utf8mb4",
    "SET SESSION character_set_results = NULL, time_zone = '+00:00', sql_mode = '', \
     sql_select_limit = 18446744073709551615",
];

/// Rows, and the sum of the hashes of their lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) rows: u64,
    hashes: u128,
}

impl Sum {
    /// Adds a row: its line of tab-separated text, with the newline.
    pub(crate) fn add(&mut self, line: &[u8]) {
        let hash = blake3::hash(line);
        let mut half = [0; 16];
        half.copy_from_slice(&hash.as_bytes()[..16]);
        self.rows += 1;
        self.hashes = self.hashes.wrapping_add(u128::from_le_bytes(half));
    }

    /// Adds all rows of another.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            hashes: self.hashes.wrapping_add(other.hashes),
        }
    }

    /// Reads the rows that a server has of a table that was dumped, as its files have them: `files` are
    /// the columns there. The connection is left with other settings.
    pub(crate) fn of_server(
        connection: &mut Connection,
        schema: &str,
        table: &objects::TableObject,
        files: &[ColumnEntry],
    ) -> Result<Self> {
        for sql in AS_DUMPED {
            connection.run(sql)?;
        }
        let history = files.iter().any(|entry| entry.row_time.is_some());
        let table = DumpTable::of(schema, table, &Filter::default().with_history(history));
        let columns = table.selected(|one| {
            let entry = files.iter().find(|entry| entry.name == one.name);
            entry.is_some_and(|entry| entry.by_number)
        });
        let sql = format!("SELECT {columns} FROM {}", table.from());
        let mut encoder = Encoder::new(Format::Tab, &table);
        let (mut sum, mut line) = (Self::default(), Vec::new());
        let mut rows = connection.query(&sql)?;
        while let Some(row) = rows.next()? {
            line.clear();
            if let Err(error) = encoder.row(row, &mut line) {
                return Err(rows.malformed(error));
            }
            sum.add(&line);
        }
        Ok(sum)
    }
}

/// Counts the rows that a server has of a table, given as it stands behind FROM.
pub(crate) fn count(connection: &mut Connection, from: &str) -> Result<u64> {
    let sql = format!("SELECT COUNT(*) FROM {from}");
    let mut rows = connection.query(&sql)?;
    let mut number = 0;
    while let Some(row) = rows.next()? {
        let cell = row.cells().next().ok().flatten().unwrap_or_default();
        number = String::from_utf8_lossy(cell).parse().unwrap_or(0);
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(lines: &[&[u8]]) -> Sum {
        let mut sum = Sum::default();
        lines.iter().for_each(|line| sum.add(line));
        sum
    }

    #[test]
    fn the_order_does_not_count_and_everything_else_does() {
        let two = sum(&[b"1\ta\n", b"2\tb\n"]);
        assert_eq!(two, sum(&[b"2\tb\n", b"1\ta\n"]));
        assert_eq!(two, sum(&[b"2\tb\n"]).and(sum(&[b"1\ta\n"])));
        assert_ne!(two, sum(&[b"1\tb\n", b"2\ta\n"]));
        assert_ne!(sum(&[b"1\n", b"1\n"]), sum(&[b"1\n"]));
    }
}
