//! Bytes that stand for others.

/// What is escaped with a backslash.
#[derive(Debug)]
pub(super) struct Escapes {
    /// What follows the backslash in place of each byte; 0 for those that stay.
    pub(super) by: [u8; 256],
    /// Whatever is escaped is less than this, or one of `also`.
    pub(super) below: u8,
    pub(super) also: [u8; 2],
}

impl Escapes {
    /// Returns where the first byte is that does not stay.
    #[inline]
    fn first(&self, cell: &[u8]) -> Option<usize> {
        let changes = |byte: &u8| self.by[usize::from(*byte)] != 0;
        let (words, rest) = cell.as_chunks::<8>();
        for (at, word) in words.iter().enumerate() {
            // Most text has nothing of the kind in most of its words.
            if self.is_suspicious(u64::from_le_bytes(*word))
                && let Some(found) = word.iter().position(changes)
            {
                return Some(at * 8 + found);
            }
        }
        let found = rest.iter().position(changes);
        found.map(|found| words.len() * 8 + found)
    }

    /// Returns whether one of eight bytes is less than `below` or in `also`, without a look at each.
    #[inline]
    fn is_suspicious(&self, word: u64) -> bool {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = 0x8080_8080_8080_8080;
        let less = word.wrapping_sub(ONES * u64::from(self.below)) & !word;
        let equal = |byte: u8| {
            let zero = word ^ (ONES * u64::from(byte));
            zero.wrapping_sub(ONES) & !zero
        };
        (less | equal(self.also[0]) | equal(self.also[1])) & HIGH != 0
    }
}

/// Copies `cell`, with a backslash and something else in place of each byte that is escaped.
#[inline]
pub(super) fn escaped(cell: &[u8], escapes: &Escapes, out: &mut Vec<u8>) {
    let mut rest = cell;
    while let Some(at) = escapes.first(rest) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(&[b'\\', escapes.by[usize::from(rest[at])]]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// Adds bytes as hexadecimal digits.
pub(super) fn hexadecimal(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in bytes {
        let pair = [
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ];
        out.extend_from_slice(&pair);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::Escapes;

    /// Byte by byte, wherever in a word one is, each is found that is in the table.
    pub(in crate::dump::encode) fn assert_all_are_found(escapes: &Escapes) {
        for byte in 0..=255 {
            let is_escaped = escapes.by[usize::from(byte)] != 0;
            for at in 0..19 {
                for around in [b'x', 0x7F, 0x80, 0xFF] {
                    let mut cell = [around; 19];
                    cell[at] = byte;
                    assert_eq!(
                        escapes.first(&cell),
                        is_escaped.then_some(at),
                        "{byte} {at}"
                    );
                }
            }
        }
    }
}
