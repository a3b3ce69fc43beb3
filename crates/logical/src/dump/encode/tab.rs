//! Tab-separated text: `\N` is NULL, and a backslash escapes itself, tab, newline and zero. That is
//! what LOAD DATA reads by default; the bytes are the columns' own, so it must be told `CHARACTER
//! SET binary`.

use super::escapes::{Escapes, escaped};
use crate::dump::table::DumpTable;
use evenkeel_wire::{CellPart, Malformed, Row};

const ESCAPE: Escapes = {
    let mut by = [0; 256];
    by[0] = b'0';
    by[b'\t' as usize] = b't';
    by[b'\n' as usize] = b'n';
    by[b'\\' as usize] = b'\\';
    Escapes {
        by,
        below: b'\n' + 1,
        also: [b'\\'; 2],
    }
};

/// Encodes the rows of one table.
#[derive(Debug)]
pub(in crate::dump) struct Tab {
    /// For each column, whether nothing in it is ever escaped.
    plain: Vec<bool>,
    /// Cells of a long row so far.
    at: usize,
}

impl Tab {
    pub(super) fn new(table: &DumpTable) -> Self {
        let plain = table.columns.iter().map(|column| column.is_plain());
        Self {
            plain: plain.collect(),
            at: 0,
        }
    }

    #[inline]
    pub(super) fn row(&self, row: Row<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let mut cells = row.cells();
        for (at, plain) in self.plain.iter().enumerate() {
            if at > 0 {
                out.push(b'\t');
            }
            match cells.next()? {
                None => out.extend_from_slice(b"\\N"),
                Some(cell) if *plain => out.extend_from_slice(cell),
                Some(cell) => escaped(cell, &ESCAPE, out),
            }
        }
        out.push(b'\n');
        if cells.is_empty() {
            Ok(())
        } else {
            Err(Malformed)
        }
    }

    pub(super) fn begin_long(&mut self) {
        self.at = 0;
    }

    pub(super) fn part(&mut self, part: CellPart<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        let plain = *self.plain.get(self.at).ok_or(Malformed)?;
        let begins = matches!(part, CellPart::Null | CellPart::Begin(_));
        if begins && self.at > 0 {
            out.push(b'\t');
        }
        match part {
            CellPart::Null => out.extend_from_slice(b"\\N"),
            CellPart::Begin(_) => {}
            CellPart::Bytes(bytes) if plain => out.extend_from_slice(bytes),
            CellPart::Bytes(bytes) => escaped(bytes, &ESCAPE, out),
            CellPart::End => {}
        }
        if matches!(part, CellPart::Null | CellPart::End) {
            self.at += 1;
        }
        Ok(())
    }

    pub(super) fn end_long(&mut self, out: &mut Vec<u8>) -> Result<(), Malformed> {
        out.push(b'\n');
        match self.at == self.plain.len() {
            true => Ok(()),
            false => Err(Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::escapes::tests::assert_all_are_found;
    use super::super::tests::{packet, table};
    use super::*;
    use proptest::prelude::*;

    fn encoded(cells: &[Option<&[u8]>]) -> Vec<u8> {
        let columns = vec![("c", "varchar", Some("latin1")); cells.len()];
        let mut out = Vec::new();
        let bytes = packet(cells);
        Tab::new(&table(&columns))
            .row(Row::of(&bytes), &mut out)
            .unwrap();
        out
    }

    /// Reads a line as the manual of LOAD DATA says.
    fn decoded(line: &[u8]) -> Vec<Option<Vec<u8>>> {
        let (mut cells, mut cell, mut null) = (Vec::new(), Vec::new(), false);
        let mut bytes = line.iter();
        loop {
            match bytes.next().expect("a line ends in a newline") {
                end @ (b'\t' | b'\n') => {
                    cells.push(Some(std::mem::take(&mut cell)).filter(|_| !null));
                    null = false;
                    if *end == b'\n' {
                        assert!(bytes.next().is_none());
                        return cells;
                    }
                }
                b'\\' => match bytes.next().unwrap() {
                    b'N' => null = true,
                    b'0' => cell.push(0),
                    b't' => cell.push(b'\t'),
                    b'n' => cell.push(b'\n'),
                    other => cell.push(*other),
                },
                other => cell.push(*other),
            }
        }
    }

    #[test]
    fn all_that_is_escaped_is_found() {
        assert_all_are_found(&ESCAPE);
    }

    #[test]
    fn null_and_empty_and_backslash_n_differ() {
        assert_eq!(encoded(&[None, Some(b""), Some(b"\\N")]), b"\\N\t\t\\\\N\n");
        assert_eq!(encoded(&[Some(b"a\tb\nc\\d\0")]), b"a\\tb\\nc\\\\d\\0\n");
    }

    #[test]
    fn a_row_of_another_width_is_malformed() {
        let bytes = packet(&[Some(b"1"), Some(b"2")]);
        let one = Tab::new(&table(&[("a", "int", None)]));
        assert_eq!(one.row(Row::of(&bytes), &mut Vec::new()), Err(Malformed));
        let three = Tab::new(&table(&[("a", "int", None); 3]));
        assert_eq!(three.row(Row::of(&bytes), &mut Vec::new()), Err(Malformed));
    }

    proptest! {
        #[test]
        fn lines_read_back(cells in proptest::collection::vec(proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40)), 1..6)) {
            let slices: Vec<Option<&[u8]>> = cells.iter().map(|c| c.as_deref()).collect();
            prop_assert_eq!(decoded(&encoded(&slices)), cells);
        }
    }
}
