//! The columns of stored rows, as the handler that packs them describes them when it makes a table.
//!
//! The description is the number of bytes with bits of NULL that a row begins with, other words (see [`head`](crate::head)),
//! and a zero; then for each column its kind (a letter), its size in bytes, where its bit of NULL is (byte and mask; a mask
//! of 0 for none), its name, and a zero. A row has those bytes, then each column that is not NULL:
//!
//! | kind | what | size |
//! |---|---|---|
//! | `i`, `u` | integer, little-endian, with and without sign | its bytes |
//! | `y` | year since 1900, 0 for 0000 | 1 |
//! | `d` | date: 5 bits of day, 4 of month, then years, little-endian | 3 |
//! | `D`, `T`, `S` | date with time, time, seconds of Unix, as the server packs them; fractions behind | its bytes |
//! | `n` | DECIMAL as the server has it; behind the letter stands `20.5`: digits, and those behind the point | its bytes |
//! | `r` | floating point, little-endian | 4 or 8 |
//! | `b` | bits, big-endian | their bytes |
//! | `s` | text, or bytes, behind its length | bytes of the length |
//! | `z` | BINARY behind its length, without the zeros at its end; behind the letter stands how many bytes it has | as `s` |
//! | `v`, `f` | what cannot be compared: behind its length, or of one size | as above |

use crate::head::words;
use evenkeel_queue_condition::{DIGITS, Decimal, Value};
use std::borrow::Cow;

/// The columns of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    null_bytes: usize,
    columns: Vec<Column>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    kind: u8,
    /// Of a DECIMAL: its digits, and how many of them are behind the point.
    digits: (u32, u32),
    /// Of a BINARY: its bytes.
    width: usize,
    size: usize,
    null: Option<(usize, u8)>,
    name: Vec<u8>,
}

impl Columns {
    /// Reads a description; `None` where it is none.
    #[must_use]
    pub fn read(layout: &[u8]) -> Option<Self> {
        let mut parts = layout.strip_suffix(&[0])?.split(|byte| *byte == 0);
        let null_bytes = number(words(parts.next()?).0)?;
        let columns: Option<Vec<Column>> = parts.map(Column::read).collect();
        Some(Self {
            null_bytes,
            columns: columns?,
        })
    }

    /// Which column has this name and may be compared.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<usize> {
        let is_it = |column: &Column| column.name.eq_ignore_ascii_case(name.as_bytes());
        let at = self.columns.iter().position(is_it)?;
        self.columns[at].may_be_compared().then_some(at)
    }

    /// What a column of a row holds. NULL, too, for what is no row of this table.
    #[must_use]
    pub fn value<'r>(&self, row: &'r [u8], at: usize) -> Value<'r> {
        self.cell(row, at).unwrap_or(Value::Null)
    }

    fn cell<'r>(&self, row: &'r [u8], at: usize) -> Option<Value<'r>> {
        let mut rest = row.get(self.null_bytes..)?;
        for (number, column) in self.columns.iter().enumerate() {
            if column.is_null(row) {
                if number == at {
                    return None;
                }
                continue;
            }
            let length = match column.kind {
                b's' | b'z' | b'v' => {
                    let (prefix, behind) = rest.split_at_checked(column.size)?;
                    rest = behind;
                    usize::try_from(little(prefix)).ok()?
                }
                _ => column.size,
            };
            let (cell, behind) = rest.split_at_checked(length)?;
            if number == at {
                return column.value(cell);
            }
            rest = behind;
        }
        None
    }
}

impl Column {
    fn read(text: &[u8]) -> Option<Self> {
        let mut parts = text.splitn(5, |byte| *byte == b' ');
        let (kind, detail) = parts.next()?.split_first()?;
        let kind = *kind;
        let digits = match kind {
            b'n' => digits(detail)?,
            _ => (0, 0),
        };
        let width = match kind {
            b'z' => number(detail).filter(|width| *width < 256)?,
            _ => 0,
        };
        let size = number(parts.next()?)?;
        let byte = number(parts.next()?)?;
        let mask = u8::try_from(number(parts.next()?)?).ok()?;
        let name = parts.next()?.to_vec();
        let is_known = b"iuydDTSnrbszvf".contains(&kind);
        let is_small = size <= 16 || matches!(kind, b'n' | b'f');
        (is_known && is_small).then_some(Self {
            kind,
            digits,
            width,
            size,
            null: (mask != 0).then_some((byte, mask)),
            name,
        })
    }

    fn may_be_compared(&self) -> bool {
        match self.kind {
            b'v' | b'f' => false,
            b'n' => self.digits.0 <= DIGITS,
            _ => true,
        }
    }

    fn is_null(&self, row: &[u8]) -> bool {
        let bits = |byte: usize| row.get(byte).copied().unwrap_or(0);
        self.null.is_some_and(|(byte, mask)| bits(byte) & mask != 0)
    }

    fn value<'r>(&self, cell: &'r [u8]) -> Option<Value<'r>> {
        let number = match self.kind {
            b's' => return Some(Value::Text(Cow::Borrowed(cell))),
            b'z' if cell.len() < self.width => {
                let mut whole = cell.to_vec();
                whole.resize(self.width, 0);
                return Some(Value::Text(Cow::Owned(whole)));
            }
            b'z' => return Some(Value::Text(Cow::Borrowed(cell))),
            b'n' => return decimal(cell, self.digits).map(Value::Decimal),
            b'r' => return real(cell).map(Value::Real),
            b'b' => big(cell),
            b'u' => little(cell),
            b'i' => {
                let unused = 128 - 8 * u32::try_from(cell.len()).ok()?;
                (little(cell) << unused) >> unused
            }
            b'y' => match little(cell) {
                0 => 0,
                year => 1900 + year,
            },
            b'd' => {
                let packed = little(cell);
                (packed >> 9) * 10_000 + (packed >> 5 & 15) * 100 + (packed & 31)
            }
            b'D' => date_time(big(cell.get(..5)?) - (1 << 39)),
            b'T' => time(big(cell.get(..3)?) - (1 << 23)),
            b'S' => big(cell.get(..4)?),
            _ => return None,
        };
        Some(Value::Number(number))
    }
}

/// 20261122010203, from 17 bits of year and month (13 to the year), 5 of day, 5 of hour, 6 and 6.
fn date_time(packed: i128) -> i128 {
    let months = packed >> 22;
    let date = months / 13 * 10_000 + months % 13 * 100 + (packed >> 17 & 31);
    date * 1_000_000 + (packed >> 12 & 31) * 10_000 + (packed >> 6 & 63) * 100 + (packed & 63)
}

/// 123456 for 12:34:56, from 10 bits of hours, 6 and 6; below zero likewise.
fn time(packed: i128) -> i128 {
    let size = packed.abs();
    let digits = (size >> 12) * 10_000 + (size >> 6 & 63) * 100 + (size & 63);
    digits * packed.signum()
}

/// Groups of 9 digits in 4 bytes, big-endian, on both sides of the point; those furthest from it may be
/// fewer, in fewer bytes. The first bit is set for what is not below zero; for what is, all are turned.
fn decimal(cell: &[u8], (digits, behind): (u32, u32)) -> Option<Decimal> {
    const BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
    let is_negative = cell.first()? & 0x80 == 0;
    let turned = if is_negative { 0xff } else { 0 };
    let mut bytes = cell.iter().map(|byte| byte ^ turned);
    let mut first = 0x80;
    let mut take = |digits: u32| {
        let taken = bytes.by_ref().take(BYTES[digits as usize]);
        taken.fold(0, |number, byte| {
            number << 8 | i128::from(byte ^ std::mem::take(&mut first))
        })
    };
    let whole = digits.checked_sub(behind)?;
    let groups = |count: u32| std::iter::repeat_n(9, count as usize / 9);
    let sizes = [whole % 9].into_iter().chain(groups(whole));
    let sizes = sizes.chain(groups(behind)).chain([behind % 9]);
    let mut number: i128 = 0;
    for size in sizes {
        number = number
            .checked_mul(10_i128.pow(size))?
            .checked_add(take(size))?;
    }
    Decimal::new(if is_negative { -number } else { number }, behind)
}

fn real(cell: &[u8]) -> Option<f64> {
    match cell.len() {
        4 => Some(f32::from_le_bytes(cell.try_into().ok()?).into()),
        _ => Some(f64::from_le_bytes(cell.try_into().ok()?)),
    }
}

/// `20.5`
fn digits(text: &[u8]) -> Option<(u32, u32)> {
    let (all, behind) = std::str::from_utf8(text).ok()?.split_once('.')?;
    let (all, behind) = (all.parse().ok()?, behind.parse().ok()?);
    (behind <= all && all <= 65).then_some((all, behind))
}

fn little(bytes: &[u8]) -> i128 {
    let fold = |number, byte: &u8| number << 8 | i128::from(*byte);
    bytes.iter().rev().take(15).fold(0, fold)
}

fn big(bytes: &[u8]) -> i128 {
    let fold = |number, byte: &u8| number << 8 | i128::from(*byte);
    bytes.iter().fold(0, fold)
}

fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: &[u8] =
        b"1\0i 4 0 0 id\0u 2 0 1 kind\0s 1 0 2 what\0v 2 0 0 body\0d 3 0 0 day\0D 5 0 0 at\0T 3 0 0 t\0y 1 0 0 y\0";

    fn row(nulls: u8, cells: &[&[u8]]) -> Vec<u8> {
        [&[nulls][..], &cells.concat()].concat()
    }

    #[test]
    fn cells_are_found_behind_others() {
        let columns = Columns::read(LAYOUT).unwrap();
        let day = (2026_u32 * 16 + 11) * 32 + 22;
        let at = ((2026_u64 * 13 + 11) << 22 | 22 << 17 | 1 << 12 | 2 << 6 | 3) | 1 << 39;
        let t = (1_u32 << 23) - (12 << 12 | 34 << 6 | 56);
        let id = (-7_i32).to_le_bytes();
        let tail = [
            &[2, 0, 9, 9][..],
            &day.to_le_bytes()[..3],
            &at.to_be_bytes()[3..],
            &t.to_be_bytes()[1..],
            &[99],
        ];
        let whole = row(
            0,
            &[&[&id[..], &[1, 2], b"\x03abc"][..], &tail[..]].concat(),
        );
        let value = |row: &[u8], name: &str| {
            let found = columns.value(row, columns.place(name).unwrap());
            format!("{found:?}")
        };
        assert_eq!(value(&whole, "ID"), "Number(-7)");
        assert_eq!(value(&whole, "kind"), "Number(513)");
        assert_eq!(value(&whole, "what"), "Text([97, 98, 99])");
        assert_eq!(value(&whole, "day"), "Number(20261122)");
        assert_eq!(value(&whole, "at"), "Number(20261122010203)");
        assert_eq!(value(&whole, "t"), "Number(-123456)");
        assert_eq!(value(&whole, "y"), "Number(1999)");
        assert_eq!(columns.place("body"), None, "it cannot be compared");
        // NULLs take no room.
        let short = row(3, &[&[&id[..]][..], &tail[..]].concat());
        assert_eq!(value(&short, "what"), "Null");
        assert_eq!(value(&short, "day"), "Number(20261122)");
        for cut in 0..whole.len() {
            for at in 0..8 {
                let _ = columns.value(&whole[..cut], at);
            }
        }
    }

    #[test]
    fn the_zeros_at_the_end_of_a_binary_are_not_stored() {
        let columns = Columns::read(b"0\0z4 1 0 0 b\0i 1 0 0 a\0").unwrap();
        for (row, whole) in [
            (&b"\x01a\x05"[..], *b"a\0\0\0"),
            (b"\x04abcd\x05", *b"abcd"),
            (b"\0\x05", [0; 4]),
        ] {
            assert_eq!(columns.value(row, 0), Value::Text(Cow::Borrowed(&whole)));
            assert_eq!(columns.value(row, 1), Value::Number(5));
        }
        assert_eq!(Columns::read(b"0\0z 1 0 0 b\0"), None);
    }

    #[test]
    fn decimals_are_read_as_the_server_writes_them() {
        // 1234567890.1234 and its opposite, as in the description of the server's format.
        let cell = [0x81, 0x0D, 0xFB, 0x38, 0xD2, 0x04, 0xD2];
        let turned = cell.map(|byte| byte ^ 0xff);
        let shown = |cell: &[u8], digits| decimal(cell, digits).unwrap().to_string();
        assert_eq!(shown(&cell, (14, 4)), "1234567890.1234");
        assert_eq!(shown(&turned, (14, 4)), "-1234567890.1234");
        assert_eq!(shown(&[0x80], (2, 2)), "0.00");
        assert_eq!(shown(&[0x7f, 0xfe], (4, 0)), "-1");
        let columns =
            Columns::read(b"0\0n14.4 7 0 0 price\0n65.0 30 0 0 vast\0r 8 0 0 x\0b 2 0 0 flags\0");
        let columns = columns.unwrap();
        let vast = [0x80; 30];
        let x = (-2.5_f64).to_le_bytes();
        let row = [&cell[..], &vast, &x, &[4, 1]].concat();
        let value = |name: &str| columns.value(&row, columns.place(name).unwrap());
        let price = Decimal::read("1234567890.1234").unwrap();
        assert_eq!(value("price"), Value::Decimal(price));
        assert_eq!(value("x"), Value::Real(-2.5));
        assert_eq!(value("flags"), Value::Number(1025));
        assert_eq!(columns.place("vast"), None, "too many digits");
        assert_eq!(Columns::read(b"0\0n5.6 3 0 0 price\0"), None);
    }

    #[test]
    fn nonsense_is_no_description() {
        for nonsense in [
            &b""[..],
            b"1",
            b"x\0",
            b"1\0i\0",
            b"1\0q 4 0 0 id\0",
            b"1\0i 40 0 0 id\0",
        ] {
            assert_eq!(Columns::read(nonsense), None);
        }
        assert!(Columns::read(b"0\0").is_some());
    }
}
