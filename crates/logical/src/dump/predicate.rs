//! A key's columns in conditions.

use super::table::{DumpTable, Key};
use crate::objects::Column;
use evenkeel_server::connect::quote_name;
pub(super) use evenkeel_server::key_range::{Bound, after, before};
use std::fmt::Write;

/// Returns a cell of a key as a literal that compares as the column does.
pub(super) fn literal(column: &Column, cell: &[u8]) -> String {
    match &column.charset {
        // Numbers as they are.
        _ if column.is_integer() || column.data_type == "decimal" => {
            String::from_utf8_lossy(cell).into_owned()
        }
        _ if column.is_plain() => format!("'{}'", String::from_utf8_lossy(cell)),
        // The introducer gives the column's own character set: then the column's collation wins.
        Some(charset) => format!("_{charset} X'{}'", hex(cell)),
        None => format!("X'{}'", hex(cell)),
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02X}");
    }
    text
}

/// Returns the names of the key's columns.
pub(super) fn names(table: &DumpTable, key: &Key) -> Vec<String> {
    key.columns
        .iter()
        .map(|at| quote_name(&table.columns[*at].name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(data_type: &str, charset: Option<&str>) -> Column {
        Column::for_tests("c", data_type, charset)
    }

    #[test]
    fn literals_compare_as_their_columns() {
        for (column, cell, text) in [
            (column("bigint", None), "-5", "-5"),
            (column("decimal", None), "1.50", "1.50"),
            (column("datetime", None), "2026-01-02", "'2026-01-02'"),
            (
                column("varchar", Some("latin1")),
                "a'b",
                "_latin1 X'612762'",
            ),
            (column("varbinary", None), "a", "X'61'"),
            (column("varchar", Some("utf8mb4")), "", "_utf8mb4 X''"),
        ] {
            assert_eq!(literal(&column, cell.as_bytes()), text);
        }
    }
}
