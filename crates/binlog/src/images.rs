//! Which columns an update changed: what rows looked like before and after, as far as the log has both.
//!
//! Source: the pages on TABLE_MAP_EVENT and ROWS_EVENT of the MySQL internals manual and of the MariaDB
//! knowledge base. Of a value only its length is read, which its column's type and metadata say.

use std::collections::BTreeSet;

/// How a table's columns lie in rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    columns: Vec<Width>,
}

/// How long a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    /// As many bytes.
    Fixed(usize),
    /// As many bytes as these first ones say.
    Counted(usize),
}

/// The kinds of updates that are read, and how many bytes stand before their columns.
const UPDATES: [(u8, usize); 2] = [(24, 8), (31, 8)];
/// That with more behind these bytes, and their own length first.
const WITH_MORE: u8 = 31;

impl Layout {
    /// Reads the body of a table map; `None` when a column's type is not known here.
    ///
    /// Body: as [`crate::change`] reads it up to the table's name, then the number of columns, a type
    /// each, and the types' metadata.
    #[must_use]
    pub fn of(body: &[u8]) -> Option<Self> {
        let mut from = Bytes(body.get(8..)?);
        for _ in 0..2 {
            let length = usize::from(from.byte()?);
            from.take(length + 1)?;
        }
        let count = from.number()?;
        let types = from.take(count)?;
        let length = from.number()?;
        let mut metadata = Bytes(from.take(length)?);
        let columns = types.iter().map(|kind| width(*kind, &mut metadata));
        Some(Self {
            columns: columns.collect::<Option<_>>()?,
        })
    }

    /// Returns how many columns there are.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Returns the columns, by place, that have another value in some row of an update, and those that the
    /// log does not have of both; `None` where that cannot be read.
    #[must_use]
    pub fn changed(&self, kind: u8, body: &[u8]) -> Option<BTreeSet<usize>> {
        let (_, skipped) = UPDATES.into_iter().find(|(one, _)| *one == kind)?;
        let mut from = Bytes(body.get(skipped..)?);
        if kind == WITH_MORE {
            let more = usize::from(u16::from_le_bytes(*from.take(2)?.first_chunk()?));
            from.take(more.checked_sub(2)?)?;
        }
        if from.number()? != self.columns.len() {
            return None;
        }
        let bitmap = self.columns.len().div_ceil(8);
        let (before, after) = (from.take(bitmap)?, from.take(bitmap)?);
        let all = 0..self.columns.len();
        let mut changed: BTreeSet<usize> = all
            .filter(|at| !(is_set(before, *at) && is_set(after, *at)))
            .collect();
        while !from.0.is_empty() {
            let left = from.0.len();
            let (old, new) = (self.row(before, &mut from)?, self.row(after, &mut from)?);
            let pairs = old.into_iter().zip(new).enumerate();
            // Rows without columns have no end.
            if from.0.len() == left {
                return None;
            }
            changed.extend(pairs.filter(|(_, (old, new))| old != new).map(|one| one.0));
        }
        Some(changed)
    }

    /// Reads a row with the columns that `there` says, and returns the value of each column: none for NULL
    /// and for those that are not there.
    pub(crate) fn row<'b>(
        &self,
        there: &[u8],
        from: &mut Bytes<'b>,
    ) -> Option<Vec<Option<&'b [u8]>>> {
        let count = (0..self.columns.len()).filter(|at| is_set(there, *at));
        let nulls = from.take(count.count().div_ceil(8))?;
        let mut nth = 0;
        let mut values = Vec::with_capacity(self.columns.len());
        for (at, width) in self.columns.iter().enumerate() {
            let is_there = is_set(there, at);
            let is_null = is_there && is_set(nulls, nth);
            nth += usize::from(is_there);
            values.push(match is_there && !is_null {
                true => Some(from.value(*width)?),
                false => None,
            });
        }
        Some(values)
    }
}

pub(crate) fn is_set(bits: &[u8], at: usize) -> bool {
    bits.get(at / 8)
        .is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

/// Returns how long the values of a type are.
fn width(kind: u8, metadata: &mut Bytes<'_>) -> Option<Width> {
    let fraction = |digits: u8| usize::from(digits).div_ceil(2);
    Some(match kind {
        // TINY, YEAR, SHORT, INT24, old DATE and TIME, LONG, old TIMESTAMP, LONGLONG, old DATETIME
        1 | 13 => Width::Fixed(1),
        2 => Width::Fixed(2),
        9 | 10 | 11 | 14 => Width::Fixed(3),
        3 | 7 => Width::Fixed(4),
        8 | 12 => Width::Fixed(8),
        // FLOAT, DOUBLE: they say their length
        4 | 5 => Width::Fixed(usize::from(metadata.byte()?)),
        // VARCHAR, VAR_STRING
        15 | 253 => Width::Counted(prefix(metadata.pair()?.into())),
        16 => {
            let [bits, bytes] = metadata.take(2)? else {
                return None;
            };
            Width::Fixed(usize::from(*bytes) + usize::from(*bits > 0))
        }
        // TIMESTAMP, DATETIME, TIME with fractions
        17 => Width::Fixed(4 + fraction(metadata.byte()?)),
        18 => Width::Fixed(5 + fraction(metadata.byte()?)),
        19 => Width::Fixed(3 + fraction(metadata.byte()?)),
        // JSON, BLOB, GEOMETRY
        245 | 252 | 255 => Width::Counted(metadata.byte()?.into()),
        246 => {
            let [digits, scale] = metadata.take(2)? else {
                return None;
            };
            let whole = digits.checked_sub(*scale)?;
            Width::Fixed(decimal(whole.into()) + decimal((*scale).into()))
        }
        254 => {
            let [real, length] = metadata.take(2)? else {
                return None;
            };
            string(*real, (*length).into())
        }
        _ => return None,
    })
}

/// CHAR, ENUM and SET share a type. Two bits of a CHAR's length, inverted, are among those of its type.
fn string(real: u8, length: usize) -> Width {
    match real {
        247 | 248 => Width::Fixed(length),
        _ => Width::Counted(prefix(length | usize::from((real & 0x30) ^ 0x30) << 4)),
    }
}

/// How many bytes say how long a text of at most so many bytes is.
fn prefix(most: usize) -> usize {
    match most {
        0..256 => 1,
        _ => 2,
    }
}

/// How many bytes so many digits of a DECIMAL take: nine in four, and what is left in fewer.
fn decimal(digits: usize) -> usize {
    digits / 9 * 4 + (digits % 9).div_ceil(2)
}

/// What is left to read.
pub(crate) struct Bytes<'b>(pub(crate) &'b [u8]);

impl<'b> Bytes<'b> {
    pub(crate) fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    pub(crate) fn pair(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(*self.take(2)?.first_chunk()?))
    }

    /// Reads a number whose first byte says how long it is.
    pub(crate) fn number(&mut self) -> Option<usize> {
        match self.byte()? {
            short @ 0..=250 => Some(short.into()),
            252 => self.pair().map(usize::from),
            _ => None,
        }
    }

    fn value(&mut self, width: Width) -> Option<&'b [u8]> {
        let length = match width {
            Width::Fixed(length) => length,
            Width::Counted(bytes) => {
                let mut number = [0; 8];
                number.get_mut(..bytes)?.copy_from_slice(self.take(bytes)?);
                usize::try_from(u64::from_le_bytes(number)).ok()?
            }
        };
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// INT, VARCHAR(300), DECIMAL(20, 5), CHAR(200) of four bytes, ENUM, BIT(13), BLOB.
    fn map() -> Vec<u8> {
        let types = [3, 15, 246, 254, 254, 16, 252];
        let metadata = [0x2c, 1, 20, 5, 0xce, 0x20, 247, 1, 5, 1, 2];
        let head = b"\x07\0\0\0\0\0\x01\0\x01d\0\x01t\0";
        [&head[..], &[7], &types, &[11], &metadata, &[0x7f]].concat()
    }

    /// A row; `note` is its last column.
    fn row(id: u8, text: &[u8], note: Option<&[u8]>) -> Vec<u8> {
        let mut row = vec![if note.is_none() { 0b100_0000 } else { 0 }, id, 0, 0, 0];
        row.extend([text.len() as u8, 0]);
        row.extend(text);
        row.extend([1; 10]);
        row.extend([3, 0, b'a', b'b', b'c', 2, 0x1f, 0xff]);
        if let Some(note) = note {
            row.extend([note.len() as u8, 0]);
            row.extend(note);
        }
        row
    }

    fn changed(kind: u8, head: &[u8], bitmaps: &[u8], rows: &[u8]) -> Option<Vec<usize>> {
        let layout = Layout::of(&map()).unwrap();
        let body = [b"\x07\0\0\0\0\0\x01\0", head, &[7], bitmaps, rows].concat();
        let changed = layout.changed(kind, &body)?;
        Some(changed.into_iter().collect())
    }

    #[test]
    fn what_differs_has_changed() {
        let rows = [
            row(1, b"same", None),
            row(1, b"same", Some(b"new")),
            row(2, b"", Some(b"x")),
            row(2, b"text", Some(b"x")),
        ]
        .concat();
        let all = [0x7f, 0x7f];
        assert_eq!(changed(24, b"", &all, &rows), Some(vec![1, 6]));
        assert_eq!(changed(31, b"\x04\0ab", &all, &rows), Some(vec![1, 6]));
        let same = row(1, b"same", None).repeat(2);
        assert_eq!(changed(24, b"", &all, &same), Some(vec![]));
        // New rows, a part of a row, more of it, another number of columns.
        assert_eq!(changed(23, b"", &all, &rows), None);
        assert_eq!(changed(24, b"", &all, &rows[..rows.len() - 1]), None);
        assert_eq!(changed(24, b"", &all, &[&rows[..], b"x"].concat()), None);
        let layout = Layout::of(&map()).unwrap();
        assert_eq!(
            layout.changed(24, b"\x07\0\0\0\0\0\x01\0\x06\x3f\x3f"),
            None
        );
    }

    #[test]
    fn what_is_not_in_both_may_have_changed() {
        let rows = [&[0, 1, 0, 0, 0][..], &[0, 1, 0, 0, 0]].concat();
        let others = Some(vec![1, 2, 3, 4, 5, 6]);
        assert_eq!(changed(24, b"", &[1, 1], &rows), others);
        let rows = [&[0, 1, 0, 0, 0][..], &[0, 1, 0, b'x']].concat();
        let all = Some(vec![0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(changed(24, b"", &[1, 2], &rows), all);
        assert_eq!(changed(24, b"", &[0, 0], &rows), None);
    }

    #[test]
    fn unknown_types_are_not_read() {
        let mut map = map();
        map[15] = 242;
        assert_eq!(Layout::of(&map), None);
        assert_eq!(Layout::of(&map[..20]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(map in proptest::collection::vec(any::<u8>(), 0..60), rows in proptest::collection::vec(any::<u8>(), 0..60)) {
            let made = Layout::of(&map);
            let sound = Layout::of(&self::map());
            for layout in [made, sound].into_iter().flatten() {
                let _ = layout.changed(24, &rows);
                let _ = layout.changed(31, &rows);
            }
        }
    }
}
