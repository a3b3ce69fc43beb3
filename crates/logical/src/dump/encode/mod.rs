//! A row's cells as text that a server reads back to the same bytes.

pub(crate) mod csv;
mod escapes;
mod sql;
mod tab;

use super::mask::RowMask;
use super::table::DumpTable;
use evenkeel_wire::{CellPart, Malformed, Pieces, Row};
use serde::{Deserialize, Serialize};

/// What rows look like in files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Tab-separated, as LOAD DATA reads it by default.
    #[default]
    Tab,
    /// INSERT statements of many rows.
    Sql,
    /// Comma-separated, for other programs.
    Csv,
    /// The same, with the columns' names in the first line of each file.
    CsvHeader,
}

impl Format {
    /// Returns how files of it end.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Tab => "tsv",
            Self::Sql => "sql",
            Self::Csv | Self::CsvHeader => "csv",
        }
    }
}

/// Turns the rows of one table into bytes.
#[derive(Debug)]
pub(super) struct Encoder {
    how: How,
    mask: Option<RowMask>,
    /// The cells of a long row.
    pieces: Pieces,
}

#[derive(Debug)]
enum How {
    Tab(tab::Tab),
    Sql(sql::Sql),
    Csv(csv::Csv),
}

impl Encoder {
    pub(super) fn new(format: Format, table: &DumpTable) -> Self {
        Self {
            how: match format {
                Format::Tab => How::Tab(tab::Tab::new(table)),
                Format::Sql => How::Sql(sql::Sql::new(table)),
                Format::Csv => How::Csv(csv::Csv::new(table, false)),
                Format::CsvHeader => How::Csv(csv::Csv::new(table, true)),
            },
            mask: table.mask.as_ref().map(RowMask::new),
            pieces: Pieces::default(),
        }
    }

    /// Adds what a file begins with.
    pub(super) fn begin(&mut self, out: &mut Vec<u8>) {
        match &mut self.how {
            How::Tab(_) => {}
            How::Sql(sql) => sql.begin(out),
            How::Csv(csv) => csv.begin(out),
        }
    }

    /// Adds a row.
    #[inline]
    pub(super) fn row(&mut self, row: Row<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let row = match &mut self.mask {
            Some(mask) => mask.row(row)?,
            None => row,
        };
        match &mut self.how {
            How::Tab(tab) => tab.row(row, out),
            How::Sql(sql) => sql.row(row, out),
            How::Csv(csv) => csv.row(row, out),
        }
    }

    /// Begins a row that comes in pieces.
    pub(super) fn begin_long(&mut self, out: &mut Vec<u8>) {
        if let Some(mask) = &mut self.mask {
            mask.begin_long();
        }
        match &mut self.how {
            How::Tab(tab) => tab.begin_long(),
            How::Sql(sql) => sql.begin_long(out),
            How::Csv(csv) => csv.begin_long(),
        }
    }

    /// Adds a piece of a row.
    pub(super) fn piece(&mut self, mut piece: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
        while let Some(part) = self.pieces.next(&mut piece)? {
            match &mut self.mask {
                Some(mask) => mask.part(part, &mut |part| self.how.part(part, out))?,
                None => self.how.part(part, out)?,
            }
        }
        Ok(())
    }

    /// Ends a row that came in pieces.
    pub(super) fn end_long(&mut self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        if !std::mem::take(&mut self.pieces).is_between() {
            return Err(Malformed);
        }
        match &mut self.how {
            How::Tab(tab) => tab.end_long(out),
            How::Sql(sql) => sql.end_long(out),
            How::Csv(csv) => csv.end_long(out),
        }
    }

    /// Adds what a file ends with.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if let How::Sql(sql) = &mut self.how {
            sql.end(out);
        }
    }
}

impl How {
    fn part(&mut self, part: CellPart<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        match self {
            Self::Tab(tab) => tab.part(part, out),
            Self::Sql(sql) => sql.part(part, out),
            Self::Csv(csv) => csv.part(part, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Column;

    /// A table with columns of these types.
    pub(super) fn table(columns: &[(&str, &str, Option<&str>)]) -> DumpTable {
        let columns = columns
            .iter()
            .map(|(name, data_type, charset)| Column::for_tests(name, data_type, *charset));
        DumpTable::for_tests("s", "t", columns.collect())
    }

    /// However a row is cut into pieces, it comes out as when it is whole.
    #[test]
    fn pieces_make_the_same_row() {
        let columns = [
            ("n", "int", None),
            ("t", "varchar", Some("latin1")),
            ("b", "blob", None),
            ("j", "json", None),
            ("x", "blob", None),
        ];
        let rows: [[Option<&[u8]>; 5]; 2] = [
            [
                Some(b"-1"),
                Some(b"a\tb'\\"),
                Some(b"\0\xFF"),
                Some(b"{}"),
                None,
            ],
            [None, Some(b""), Some(b""), None, Some(b"xyz")],
        ];
        for format in [Format::Tab, Format::Sql, Format::Csv] {
            for step in 1..12 {
                let (mut whole, mut cut) = (Vec::new(), Vec::new());
                for cells in &rows {
                    let bytes = packet(cells);
                    let mut encoder = Encoder::new(format, &table(&columns));
                    encoder.row(Row::of(&bytes), &mut whole).unwrap();
                    encoder.end(&mut whole);
                    let mut encoder = Encoder::new(format, &table(&columns));
                    encoder.begin_long(&mut cut);
                    for piece in bytes.chunks(step) {
                        encoder.piece(piece, &mut cut).unwrap();
                    }
                    encoder.end_long(&mut cut).unwrap();
                    encoder.end(&mut cut);
                }
                assert!(cut == whole, "{format:?} {step}");
            }
            let mut encoder = Encoder::new(format, &table(&columns));
            encoder.begin_long(&mut Vec::new());
            encoder.piece(&[0xFB; 4], &mut Vec::new()).unwrap();
            assert_eq!(encoder.end_long(&mut Vec::new()), Err(Malformed));
            let mut encoder = Encoder::new(format, &table(&columns));
            encoder.begin_long(&mut Vec::new());
            assert_eq!(encoder.piece(&[0xFB; 6], &mut Vec::new()), Err(Malformed));
        }
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
