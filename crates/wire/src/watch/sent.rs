//! The values of an execution in binary, complete: with all types, and with those that were sent ahead.

use super::values::Type;
use crate::prepared::length;

/// The type of values that were sent ahead though theirs has a length of its own.
const BLOB: u8 = 252;

/// Writes values as an execution has them that tells their types.
pub(super) struct Sent<'a> {
    into: &'a mut Vec<u8>,
    /// Where the types begin.
    types: usize,
}

impl<'a> Sent<'a> {
    /// Begins with so many values; each of them comes once.
    pub(super) fn new(into: &'a mut Vec<u8>, count: usize) -> Self {
        into.clear();
        let nulls = count.div_ceil(8);
        if count > 0 {
            // Then a one, for the types that follow.
            into.resize(nulls + 1 + 2 * count, 0);
            into[nulls] = 1;
        }
        Self {
            into,
            types: nulls + 1,
        }
    }

    fn kind(&mut self, number: usize, kind: Type) {
        let at = self.types + 2 * number;
        self.into[at] = kind.number;
        self.into[at + 1] = u8::from(kind.is_unsigned) << 7;
    }

    pub(super) fn null(&mut self, number: usize, kind: Type) {
        self.kind(number, kind);
        self.into[number / 8] |= 1 << (number % 8);
    }

    /// Adds a value as it came.
    pub(super) fn value(&mut self, number: usize, kind: Type, value: &[u8]) {
        self.kind(number, kind);
        self.into.extend_from_slice(value);
    }

    /// Adds one that was sent ahead.
    pub(super) fn ahead(&mut self, number: usize, kind: Type, value: &[u8]) {
        let is_string = matches!(kind.number, 15 | 245 | 249..=254);
        let number_of = if is_string { kind.number } else { BLOB };
        let kind = Type {
            number: number_of,
            ..kind
        };
        self.kind(number, kind);
        length(self.into, value.len());
        self.into.extend_from_slice(value);
    }
}
