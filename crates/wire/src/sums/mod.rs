//! A checksum of what a statement returned: the same whether its rows came as text or in binary.
//!
//! What is summed up is each row as the text protocol has it; rows in binary are written so first. Names and types of
//! columns are left out: they may differ between versions. Rows pass by in pieces, and nothing is kept of them.

mod cells;
mod kind;
mod real;

use cells::{Cells, Out};
pub(crate) use kind::TokenKind;
use twox_hash::XxHash64;

/// What a statement returned, in numbers that are the same if the rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checksum {
    /// Of the rows in their order.
    pub in_order: u64,
    /// Of the rows in any order.
    pub any_order: u64,
}

/// An odd number with its bits all over: that of the golden ratio.
const MIX: u64 = 0x9E37_79B9_7F4A_7C15;

/// Sums up what a statement returns, result by result and row by row.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    sum: Checksum,
    /// How many results have begun.
    results: u64,
    /// Something was not understood, or not seen.
    is_unknown: bool,
    is_binary: bool,
    /// Of a result in binary: its columns so far.
    columns: Vec<TokenKind>,
    cells: Cells,
    out: Out,
}

impl Sums {
    /// Begins another statement's.
    pub(crate) fn begin(&mut self) {
        (self.sum, self.results) = (Checksum::default(), 0);
        self.is_unknown = false;
        self.columns.clear();
        self.leave_row();
    }

    /// A result begins.
    pub(crate) fn result(&mut self, is_binary: bool) {
        self.results += 1;
        self.is_binary = is_binary;
        self.columns.clear();
        self.leave_row();
    }

    /// Takes the definition of the next column.
    pub(crate) fn column(&mut self, definition: &[u8]) {
        if !self.is_binary {
            return;
        }
        match TokenKind::of(definition) {
            Some(kind) => self.columns.push(kind),
            None => self.is_unknown = true,
        }
    }

    /// Takes columns that are known from before, so many as there should be.
    pub(crate) fn columns_as_before(&mut self, known: &[TokenKind], count: u64) {
        if self.is_binary {
            self.is_unknown |= known.len() as u64 != count;
            self.columns.extend_from_slice(known);
        }
    }

    /// Returns the columns of the first result, if it is the last that began and is in binary.
    pub(crate) fn first_columns(&self) -> Option<&[TokenKind]> {
        (self.results == 1 && self.is_binary).then_some(&self.columns)
    }

    /// Says that rows come that nobody sees, or sees without their columns.
    pub(crate) fn give_up(&mut self) {
        self.is_unknown = true;
    }

    /// Takes a row, or what is left of it.
    pub(crate) fn row(&mut self, bytes: &[u8]) {
        if self.is_unknown {
            return;
        }
        let seed = self.results;
        let hash = match self.is_binary || self.out.is_begun() {
            // The usual case.
            false => XxHash64::oneshot(seed, bytes),
            true => {
                self.piece(bytes);
                self.is_unknown |= self.is_binary && !self.cells.are_all(&self.columns);
                self.out.end(seed)
            }
        };
        self.leave_row();
        let Checksum {
            in_order,
            any_order,
        } = &mut self.sum;
        *in_order = (*in_order ^ hash).wrapping_mul(MIX).rotate_left(31);
        *any_order = any_order.wrapping_add(hash);
    }

    /// Takes a part of a row; more of it follows.
    pub(crate) fn piece(&mut self, bytes: &[u8]) {
        if self.is_unknown {
            return;
        }
        self.out.begin(self.results);
        match self.is_binary {
            true => {
                let taken = self.cells.take(&self.columns, bytes, &mut self.out);
                self.is_unknown |= taken.is_err();
            }
            false => self.out.long(bytes),
        }
    }

    /// What came of a row was none.
    pub(crate) fn leave_row(&mut self) {
        self.cells.begin();
        self.out.leave();
    }

    /// Returns the checksum; `None` where there was no result, or not all of it was understood.
    pub(crate) fn checksum(&self) -> Option<Checksum> {
        (self.results > 0 && !self.is_unknown).then_some(self.sum)
    }
}

#[cfg(test)]
mod tests;
