//! INSERT statements of many rows, for any client: text as quoted bytes, bytes as hexadecimal.

use super::escapes::{Escapes, escaped, hexadecimal};
use crate::dump::table::DumpTable;
use crate::objects::Column;
use evenkeel_server::connect::quote_name;
use evenkeel_wire::{CellPart, Malformed, Row};

/// A statement ends when it has grown to this, in bytes: well below any max_allowed_packet.
const STATEMENT: usize = 1_000_000;

/// What a file begins with: bytes are taken as they are, a zero stays a zero in AUTO_INCREMENT
/// columns, times are in UTC, and every date that was stored is stored again.
const OPENING: &str = "\
/*!40101 SET NAMES binary */;
/*!40103 SET TIME_ZONE='+00:00' */;
/*!40101 SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES' */;
/*!40014 SET FOREIGN_KEY_CHECKS=0, UNIQUE_CHECKS=0 */;
/*M!100201 SET CHECK_CONSTRAINT_CHECKS=0 */;
";

/// What it begins with beside that when old rows are among them. A server that has old rows and does not
/// take them from others fails here.
const HISTORY: &str = "/*M!100300 SET SYSTEM_VERSIONING_INSERT_HISTORY=1 */;\n";

/// Also what a client would change on the way: it drops a carriage return, and ends at Ctrl-Z.
const ESCAPE: Escapes = {
    let mut by = [0; 256];
    by[0] = b'0';
    by[b'\n' as usize] = b'n';
    by[b'\r' as usize] = b'r';
    by[b'\\' as usize] = b'\\';
    by[b'\'' as usize] = b'\'';
    by[0x1A] = b'Z';
    Escapes {
        by,
        below: 0x1A + 1,
        also: [b'\\', b'\''],
    }
};

/// How a column's values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SqlValueKind {
    /// Bare.
    Number,
    /// Quoted, nothing to escape. Also floating point: bare, a negative zero lost its sign.
    Time,
    /// Quoted.
    Text,
    /// Quoted, with a character set: these types take text and no bytes.
    Converted,
    /// As hexadecimal.
    Bytes,
    /// As DEFAULT, which is all that a column of computed values takes.
    Computed,
    /// Quoted, or DEFAULT for what still holds.
    RowEnd,
}

impl SqlValueKind {
    fn of(column: &Column) -> Self {
        match &*column.data_type {
            _ if column.is_computed() => Self::Computed,
            "decimal" => Self::Number,
            _ if column.is_integer() || column.is_by_number() => Self::Number,
            _ if column.is_plain() => Self::Time,
            "json" | "inet4" | "inet6" | "uuid" => Self::Converted,
            _ if column.charset.is_some() => Self::Text,
            _ => Self::Bytes,
        }
    }
}

/// Encodes the rows of one table.
#[derive(Debug)]
pub(in crate::dump) struct Sql {
    kinds: Vec<SqlValueKind>,
    /// Rows say when they held.
    history: bool,
    /// `INSERT INTO … VALUES`
    insert: String,
    /// Bytes in the statement so far; 0 outside of one.
    size: usize,
    /// Cells of a long row so far.
    at: usize,
}

impl Sql {
    pub(super) fn new(table: &DumpTable) -> Self {
        let names: Vec<String> = table.columns.iter().map(|c| quote_name(&c.name)).collect();
        let kinds = table.columns.iter().enumerate();
        Self {
            kinds: kinds
                .map(|(at, column)| match Some(at) == table.row_end() {
                    true => SqlValueKind::RowEnd,
                    false => SqlValueKind::of(column),
                })
                .collect(),
            history: table.history,
            insert: format!(
                "INSERT INTO {} ({}) VALUES\n",
                quote_name(&table.name),
                names.join(", ")
            ),
            size: 0,
            at: 0,
        }
    }

    pub(super) fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(OPENING.as_bytes());
        if self.history {
            out.extend_from_slice(HISTORY.as_bytes());
        }
        self.size = 0;
    }

    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if self.size > 0 {
            out.extend_from_slice(b";\n");
            self.size = 0;
        }
    }

    pub(super) fn row(&mut self, row: Row<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        // Bytes may double as hexadecimal.
        if self.size > 0 && self.size + row.size() * 2 > STATEMENT {
            self.end(out);
        }
        let from = out.len();
        if self.size == 0 {
            out.extend_from_slice(self.insert.as_bytes());
        } else {
            out.extend_from_slice(b",\n");
        }
        out.push(b'(');
        let mut cells = row.cells();
        for (at, kind) in self.kinds.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            match cells.next()? {
                None => null(*kind, out),
                Some(cell) => value(*kind, cell, out),
            }
        }
        out.push(b')');
        self.size += out.len() - from;
        if cells.is_empty() {
            Ok(())
        } else {
            Err(Malformed)
        }
    }

    /// A long row has a statement of its own.
    pub(super) fn begin_long(&mut self, out: &mut Vec<u8>) {
        self.end(out);
        self.at = 0;
        out.extend_from_slice(self.insert.as_bytes());
        out.push(b'(');
        self.size = STATEMENT;
    }

    pub(super) fn part(&mut self, part: CellPart<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let kind = *self.kinds.get(self.at).ok_or(Malformed)?;
        let begins = matches!(part, CellPart::Null | CellPart::Begin(_));
        if begins && self.at > 0 {
            out.push(b',');
        }
        match part {
            CellPart::Null => null(kind, out),
            CellPart::Begin(length) => open(kind, length == 0, out),
            CellPart::Bytes(bytes) => inside(kind, bytes, out),
            CellPart::End => close(kind, out),
        }
        if matches!(part, CellPart::Null | CellPart::End) {
            self.at += 1;
        }
        Ok(())
    }

    pub(super) fn end_long(&mut self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        out.push(b')');
        match self.at == self.kinds.len() {
            true => Ok(()),
            false => Err(Malformed),
        }
    }
}

fn null(kind: SqlValueKind, out: &mut Vec<u8>) {
    out.extend_from_slice(match kind {
        SqlValueKind::Computed | SqlValueKind::RowEnd => &b"DEFAULT"[..],
        _ => b"NULL",
    });
}

fn value(kind: SqlValueKind, cell: &[u8], out: &mut Vec<u8>) {
    open(kind, cell.is_empty(), out);
    inside(kind, cell, out);
    close(kind, out);
}

fn open(kind: SqlValueKind, is_empty: bool, out: &mut Vec<u8>) {
    match kind {
        SqlValueKind::Number => {}
        SqlValueKind::Computed => out.extend_from_slice(b"DEFAULT"),
        // X'' would be fine too, but not for MariaDB's spatial columns, and '' is bytes here.
        SqlValueKind::Bytes if is_empty => out.extend_from_slice(b"''"),
        SqlValueKind::Bytes => out.extend_from_slice(b"0x"),
        SqlValueKind::Time | SqlValueKind::Text | SqlValueKind::RowEnd => out.push(b'\''),
        SqlValueKind::Converted => out.extend_from_slice(b"_utf8mb4'"),
    }
}

fn inside(kind: SqlValueKind, bytes: &[u8], out: &mut Vec<u8>) {
    match kind {
        SqlValueKind::Number => out.extend_from_slice(bytes),
        SqlValueKind::Computed => {}
        SqlValueKind::Bytes => hexadecimal(bytes, out),
        SqlValueKind::Time
        | SqlValueKind::Text
        | SqlValueKind::Converted
        | SqlValueKind::RowEnd => escaped(bytes, &ESCAPE, out),
    }
}

fn close(kind: SqlValueKind, out: &mut Vec<u8>) {
    if matches!(
        kind,
        SqlValueKind::Time | SqlValueKind::Text | SqlValueKind::Converted | SqlValueKind::RowEnd
    ) {
        out.push(b'\'');
    }
}

#[cfg(test)]
mod tests {
    use super::super::escapes::tests::assert_all_are_found;
    use super::super::tests::{packet, table};
    use super::*;

    #[test]
    fn all_that_is_escaped_is_found() {
        assert_all_are_found(&ESCAPE);
    }

    #[test]
    fn each_type_is_written_so_that_it_comes_back() {
        let mut sql = Sql::new(&table(&[
            ("n", "int", None),
            ("d", "datetime", None),
            ("t", "varchar", Some("latin1")),
            ("j", "json", None),
            ("b", "blob", None),
            ("e`", "blob", None),
        ]));
        let mut out = Vec::new();
        let cells: [Option<&[u8]>; 6] = [
            Some(b"-1"),
            Some(b"2026-01-01"),
            Some(b"it's\r\n\x1a\\\0"),
            Some(b"{}"),
            Some(b"\x00\xff"),
            Some(b""),
        ];
        let bytes = packet(&cells);
        sql.row(Row::of(&bytes), &mut out).unwrap();
        let bytes = packet(&[None; 6]);
        sql.row(Row::of(&bytes), &mut out).unwrap();
        sql.end(&mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "INSERT INTO `t` (`n`, `d`, `t`, `j`, `b`, `e```) VALUES\n\
             (-1,'2026-01-01','it\\'s\\r\\n\\Z\\\\\\0',_utf8mb4'{}',0x00FF,''),\n\
             (NULL,NULL,NULL,NULL,NULL,NULL);\n"
        );
    }

    #[test]
    fn statements_stay_short() {
        let mut sql = Sql::new(&table(&[("b", "blob", None)]));
        let mut out = Vec::new();
        let cell = vec![7; 100_000];
        let bytes = packet(&[Some(&cell)]);
        for _ in 0..30 {
            sql.row(Row::of(&bytes), &mut out).unwrap();
        }
        sql.end(&mut out);
        let statements = String::from_utf8(out).unwrap();
        let lengths: Vec<usize> = statements.split(";\n").map(str::len).collect();
        assert!(lengths.len() > 5);
        assert!(
            lengths.iter().all(|length| *length <= STATEMENT + 300),
            "{lengths:?}"
        );
    }
}
