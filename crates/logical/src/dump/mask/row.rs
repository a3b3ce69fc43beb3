//! Rows with their masked cells exchanged, before any format sees them.

use super::columns::TableMask;
use super::fits::How;
use super::values::{Maker, Taken};
use evenkeel_wire::{CellPart, Malformed, Row};

/// A cell that is NULL, in a packet.
const NULL: u8 = 0xFB;
/// What is in front of a length of eight bytes.
const LONG: u8 = 0xFE;

/// Masks the rows of one table.
#[derive(Debug)]
pub(in crate::dump) struct RowMask {
    /// By column.
    hows: Vec<Option<How>>,
    maker: Maker,
    /// The packet of the row as it is written.
    packet: Vec<u8>,
    /// Of a long row, the column that is next, and its value if that is masked.
    at: usize,
    taken: Option<Taken>,
}

impl RowMask {
    pub(in crate::dump) fn new(table: &TableMask) -> Self {
        let hows = table.columns.iter();
        Self {
            hows: hows
                .map(|one| one.as_ref().map(|one| one.how.clone()))
                .collect(),
            maker: Maker::new(&table.key),
            packet: Vec::new(),
            at: 0,
            taken: None,
        }
    }

    /// Returns the row with its masked cells exchanged.
    pub(in crate::dump) fn row(&mut self, row: Row<'_>) -> Result<Row<'_>, Malformed> {
        self.packet.clear();
        let mut cells = row.cells();
        for how in &self.hows {
            let cell = cells.next()?;
            match (cell, how) {
                (None, _) => self.packet.push(NULL),
                (Some(cell), None) => add(&mut self.packet, cell),
                (Some(cell), Some(how)) => {
                    let mut taken = self.maker.begin(how);
                    self.maker.add(how, &mut taken, cell)?;
                    match self.maker.end(how, taken)? {
                        None => self.packet.push(NULL),
                        Some(value) => add(&mut self.packet, &value),
                    }
                }
            }
        }
        match cells.is_empty() {
            true => Ok(Row::of(&self.packet)),
            false => Err(Malformed),
        }
    }

    /// Begins a row that comes in pieces.
    pub(in crate::dump) fn begin_long(&mut self) {
        self.at = 0;
        self.taken = None;
    }

    /// Takes a part of it, and gives what should be written.
    pub(in crate::dump) fn part(
        &mut self,
        part: CellPart<'_>,
        give: &mut dyn FnMut(CellPart<'_>) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        let how = self.hows.get(self.at).ok_or(Malformed)?;
        if matches!(part, CellPart::Null | CellPart::End) {
            self.at += 1;
        }
        let Some(how) = how else {
            return give(part);
        };
        match part {
            CellPart::Null => give(CellPart::Null)?,
            CellPart::Begin(_) => self.taken = Some(self.maker.begin(how)),
            CellPart::Bytes(bytes) => {
                let taken = self.taken.as_mut().ok_or(Malformed)?;
                self.maker.add(how, taken, bytes)?;
            }
            CellPart::End => {
                let taken = self.taken.take().ok_or(Malformed)?;
                match self.maker.end(how, taken)? {
                    None => give(CellPart::Null)?,
                    Some(value) => {
                        give(CellPart::Begin(value.len() as u64))?;
                        give(CellPart::Bytes(&value))?;
                        give(CellPart::End)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn add(packet: &mut Vec<u8>, cell: &[u8]) {
    match u8::try_from(cell.len()) {
        Ok(short) if short < NULL => packet.push(short),
        _ => {
            packet.push(LONG);
            packet.extend_from_slice(&(cell.len() as u64).to_le_bytes());
        }
    }
    packet.extend_from_slice(cell);
}
