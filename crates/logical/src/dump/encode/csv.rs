//! Comma-separated text for other programs: text is quoted and quotes in it are doubled, numbers and
//! times are bare, bytes are bare hexadecimal digits, and NULL is the bare word NULL.

use super::escapes::hexadecimal;
use crate::dump::table::DumpTable;
use crate::objects::Column;
use evenkeel_wire::{CellPart, Malformed, Row};

/// How a column's values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CsvValueKind {
    /// Bare.
    Plain,
    /// In quotes.
    Text,
    /// As hexadecimal digits.
    Hex,
}

impl CsvValueKind {
    fn of(column: &Column) -> Self {
        match &*column.data_type {
            _ if column.is_plain() || column.is_by_number() => Self::Plain,
            _ if is_hex(&column.data_type, column.charset.as_deref()) => Self::Hex,
            _ => Self::Text,
        }
    }
}

/// Returns whether values of a type are written as hexadecimal digits: bytes, BIT, spatial ones.
pub(crate) fn is_hex(full_type: &str, charset: Option<&str>) -> bool {
    let word = full_type
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let is_bare = matches!(
        &*word,
        "tinyint"
            | "smallint"
            | "mediumint"
            | "int"
            | "bigint"
            | "decimal"
            | "float"
            | "double"
            | "date"
            | "datetime"
            | "timestamp"
            | "time"
            | "year"
    );
    let is_text = matches!(&*word, "json" | "uuid" | "inet4" | "inet6") || charset.is_some();
    !is_bare && !is_text
}

/// Encodes the rows of one table.
#[derive(Debug)]
pub(in crate::dump) struct Csv {
    kinds: Vec<CsvValueKind>,
    /// The first line of each file, if there is to be one.
    header: Vec<u8>,
    /// Cells of a long row so far.
    at: usize,
}

impl Csv {
    pub(super) fn new(table: &DumpTable, header: bool) -> Self {
        let mut line = Vec::new();
        for (at, column) in table.columns.iter().enumerate().filter(|_| header) {
            if at > 0 {
                line.push(b',');
            }
            line.push(b'"');
            quoted(column.name.as_bytes(), &mut line);
            line.push(b'"');
        }
        if header {
            line.push(b'\n');
        }
        Self {
            kinds: table.columns.iter().map(CsvValueKind::of).collect(),
            header: line,
            at: 0,
        }
    }

    pub(super) fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.header);
    }

    pub(super) fn row(&self, row: Row<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let mut cells = row.cells();
        for (at, kind) in self.kinds.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            match cells.next()? {
                None => out.extend_from_slice(b"NULL"),
                Some(cell) => {
                    edge(*kind, out);
                    inside(*kind, cell, out);
                    edge(*kind, out);
                }
            }
        }
        out.push(b'\n');
        match cells.is_empty() {
            true => Ok(()),
            false => Err(Malformed),
        }
    }

    pub(super) fn begin_long(&mut self) {
        self.at = 0;
    }

    pub(super) fn part(&mut self, part: CellPart<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let kind = *self.kinds.get(self.at).ok_or(Malformed)?;
        let begins = matches!(part, CellPart::Null | CellPart::Begin(_));
        if begins && self.at > 0 {
            out.push(b',');
        }
        match part {
            CellPart::Null => out.extend_from_slice(b"NULL"),
            CellPart::Begin(_) | CellPart::End => edge(kind, out),
            CellPart::Bytes(bytes) => inside(kind, bytes, out),
        }
        if matches!(part, CellPart::Null | CellPart::End) {
            self.at += 1;
        }
        Ok(())
    }

    pub(super) fn end_long(&mut self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        out.push(b'\n');
        match self.at == self.kinds.len() {
            true => Ok(()),
            false => Err(Malformed),
        }
    }
}

fn edge(kind: CsvValueKind, out: &mut Vec<u8>) {
    if kind == CsvValueKind::Text {
        out.push(b'"');
    }
}

fn inside(kind: CsvValueKind, bytes: &[u8], out: &mut Vec<u8>) {
    match kind {
        CsvValueKind::Plain => out.extend_from_slice(bytes),
        CsvValueKind::Text => quoted(bytes, out),
        CsvValueKind::Hex => hexadecimal(bytes, out),
    }
}

fn quoted(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(at) = memchr::memchr(b'"', rest) {
        out.extend_from_slice(&rest[..=at]);
        out.push(b'"');
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::super::tests::{packet, table};
    use super::*;

    #[test]
    fn null_and_its_word_and_nothing_differ() {
        let csv = Csv::new(
            &table(&[
                ("n", "int", None),
                ("a \"t\"", "varchar", Some("latin1")),
                ("b", "blob", None),
                ("j", "json", None),
            ]),
            true,
        );
        let mut out = Vec::new();
        csv.begin(&mut out);
        let rows: [[Option<&[u8]>; 4]; 3] = [
            [
                Some(b"-1"),
                Some(b"NULL"),
                Some(b"\x00\xff"),
                Some(b"{\"k\": 1}"),
            ],
            [None, None, None, None],
            [Some(b"0"), Some(b""), Some(b""), Some(b"a,\nb\\")],
        ];
        for row in &rows {
            csv.row(Row::of(&packet(row)), &mut out).unwrap();
        }
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\"n\",\"a \"\"t\"\"\",\"b\",\"j\"\n\
             -1,\"NULL\",00FF,\"{\"\"k\"\": 1}\"\n\
             NULL,NULL,NULL,NULL\n\
             0,\"\",,\"a,\nb\\\"\n"
        );
    }
}
