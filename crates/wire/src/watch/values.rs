//! Values of prepared statements, as SQL.

use crate::decode::{Bytes, Malformed};
use evenkeel_sql::{Mode, Wide};
use std::fmt::Write as _;

/// Text that grows up to a limit; what is beyond is only counted.
#[derive(Debug)]
pub(super) struct Text<'a> {
    kept: &'a mut Vec<u8>,
    limit: usize,
    /// How long the whole text is.
    pub(super) length: u64,
}

impl<'a> Text<'a> {
    pub(super) fn new(kept: &'a mut Vec<u8>, limit: usize) -> Self {
        kept.clear();
        Self {
            kept,
            limit,
            length: 0,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = self.limit.saturating_sub(self.kept.len());
        // Once something is missing, nothing may follow it.
        let is_whole = self.kept.len() as u64 == self.length;
        if is_whole {
            self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        self.length += bytes.len() as u64;
    }

    /// Appends a string in quotes, as servers write it into their logs.
    pub(super) fn quote(&mut self, bytes: &[u8], mode: Mode) {
        self.push(b"'");
        let mut copied = 0;
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            if mode.wide.is_pair(&bytes[at..]) {
                at += 2;
                continue;
            }
            // Or what is put behind it would make a character of it.
            if mode.wide.is_first(byte) && !mode.no_backslash_escapes {
                self.push(&bytes[copied..at]);
                self.push(b"\\");
                (copied, at) = (at, at + 1);
                continue;
            }
            let escaped: &[u8] = match byte {
                b'\'' if mode.no_backslash_escapes => b"''",
                _ if mode.no_backslash_escapes => b"",
                0 => b"\\0",
                b'\n' => b"\\n",
                b'\r' => b"\\r",
                0x1a => b"\\Z",
                b'\\' => b"\\\\",
                b'\'' => b"\\'",
                b'"' => b"\\\"",
                _ => b"",
            };
            if !escaped.is_empty() {
                self.push(&bytes[copied..at]);
                self.push(escaped);
                copied = at + 1;
            }
            at += 1;
        }
        self.push(&bytes[copied..]);
        self.push(b"'");
    }

    /// Appends bytes that are not text as a hexadecimal literal.
    fn hexadecimal(&mut self, bytes: &[u8]) {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        self.push(b"x'");
        for byte in bytes {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            self.push(&[DIGITS[high], DIGITS[low]]);
        }
        self.push(b"'");
    }

    /// Appends a string, or bytes where they are no text.
    pub(super) fn bytes(&mut self, bytes: &[u8], mode: Mode) {
        let is_text = std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'));
        match is_text || mode.wide != Wide::No {
            true => self.quote(bytes, mode),
            false => self.hexadecimal(bytes),
        }
    }
}

impl std::fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

/// A parameter's type: its number, and whether it is unsigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Type {
    pub(super) number: u8,
    pub(super) is_unsigned: bool,
}

impl Type {
    pub(super) fn of(short: u16) -> Self {
        Self {
            number: short as u8,
            is_unsigned: short & 0x8000 != 0,
        }
    }
}

/// Takes a value of a type off `bytes` and appends it as SQL.
pub(super) fn render(
    bytes: &mut Bytes<'_>,
    kind: Type,
    mode: Mode,
    out: &mut Text<'_>,
) -> Result<(), Malformed> {
    match kind.number {
        1 => whole(bytes, 1, kind, out),
        2 | 13 => whole(bytes, 2, kind, out),
        3 | 9 => whole(bytes, 4, kind, out),
        8 => whole(bytes, 8, kind, out),
        244 => whole(bytes, 1, kind, out),
        4 => {
            let value = f32::from_bits(bytes.number(4)? as u32);
            real(
                f64::from(value),
                &value.to_string(),
                &format!("{value:e}"),
                out,
            );
            Ok(())
        }
        5 => {
            let value = f64::from_bits(bytes.number(8)?);
            real(value, &value.to_string(), &format!("{value:e}"), out);
            Ok(())
        }
        6 => {
            out.push(b"NULL");
            Ok(())
        }
        7 | 10 | 12 | 14 | 17 | 18 => date(bytes, kind, out),
        11 | 19 => time(bytes, out),
        0 | 246 => {
            let text = bytes.string()?.ok_or(Malformed)?;
            match text.iter().all(|byte| b"0123456789.-+eE".contains(byte)) && !text.is_empty() {
                true => out.push(text),
                false => out.quote(text, mode),
            }
            Ok(())
        }
        15 | 16 | 242 | 245 | 247..=255 => {
            let text = bytes.string()?.ok_or(Malformed)?;
            out.bytes(text, mode);
            Ok(())
        }
        _ => Err(Malformed),
    }
}

fn whole(
    bytes: &mut Bytes<'_>,
    size: usize,
    kind: Type,
    out: &mut Text<'_>,
) -> Result<(), Malformed> {
    let raw = bytes.number(size)?;
    let unused = 64 - 8 * size as u32;
    let mut digits = itoa::Buffer::new();
    out.push(match kind.is_unsigned {
        true => digits.format(raw).as_bytes(),
        // The sign is the highest bit that was sent.
        false => digits.format((raw << unused) as i64 >> unused).as_bytes(),
    });
    Ok(())
}

/// Appends the shortest text that means the same number.
fn real(value: f64, plain: &str, scientific: &str, out: &mut Text<'_>) {
    let size = value.abs();
    let text = match () {
        () if !value.is_finite() => "NULL",
        () if value == 0.0 || (1e-5..1e15).contains(&size) => plain,
        () => scientific,
    };
    out.push(text.as_bytes());
}

fn date(bytes: &mut Bytes<'_>, kind: Type, out: &mut Text<'_>) -> Result<(), Malformed> {
    let length = bytes.byte()?;
    let mut rest = Bytes(bytes.take(usize::from(length))?);
    let (mut year, mut month, mut day) = (0, 0, 0);
    if length >= 4 {
        (year, month, day) = (rest.short()?, rest.byte()?, rest.byte()?);
    }
    let _ = write!(out, "'{year:04}-{month:02}-{day:02}");
    if !matches!(kind.number, 10 | 14) {
        let (mut hour, mut minute, mut second) = (0, 0, 0);
        if length >= 7 {
            (hour, minute, second) = (rest.byte()?, rest.byte()?, rest.byte()?);
        }
        let _ = write!(out, " {hour:02}:{minute:02}:{second:02}");
        fraction(&mut rest, length >= 11, out)?;
    }
    out.push(b"'");
    Ok(())
}

fn time(bytes: &mut Bytes<'_>, out: &mut Text<'_>) -> Result<(), Malformed> {
    let length = bytes.byte()?;
    let mut rest = Bytes(bytes.take(usize::from(length))?);
    let (mut sign, mut hours, mut minute, mut second) = ("", 0, 0, 0);
    if length >= 8 {
        sign = if rest.byte()? == 0 { "" } else { "-" };
        let days = rest.number(4)?;
        hours = days * 24 + u64::from(rest.byte()?);
        (minute, second) = (rest.byte()?, rest.byte()?);
    }
    let _ = write!(out, "'{sign}{hours:02}:{minute:02}:{second:02}");
    fraction(&mut rest, length >= 12, out)?;
    out.push(b"'");
    Ok(())
}

fn fraction(rest: &mut Bytes<'_>, is_there: bool, out: &mut Text<'_>) -> Result<(), Malformed> {
    if is_there {
        let micros = rest.number(4)?;
        if micros > 0 {
            let _ = write!(out, ".{micros:06}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_sql::{Tokens, unquoted};

    fn shown(short: u16, bytes: &[u8]) -> String {
        let mut kept = Vec::new();
        let mut rest = Bytes(bytes);
        let mut text = Text::new(&mut kept, 1000);
        render(&mut rest, Type::of(short), Mode::default(), &mut text).unwrap();
        assert!(rest.0.is_empty());
        String::from_utf8(kept).unwrap()
    }

    #[test]
    fn values_of_all_types_are_sql() {
        for (kind, bytes, expected) in [
            (1, &[0xFB][..], "-5"),
            (0x8001, &[0xFB], "251"),
            (2, &[0xFE, 0xFF], "-2"),
            (3, &[1, 0, 0, 0x80], "-2147483647"),
            (8, &[0xFF; 8], "-1"),
            (0x8008, &[0xFF; 8], "18446744073709551615"),
            (13, &[0xE8, 0x07], "2024"),
            (4, &1.1_f32.to_le_bytes(), "1.1"),
            (5, &0.1_f64.to_le_bytes(), "0.1"),
            (5, &1e20_f64.to_le_bytes(), "1e20"),
            (6, &[], "NULL"),
            (10, &[4, 0xE8, 7, 2, 9], "'2024-02-09'"),
            (10, &[0], "'0000-00-00'"),
            (12, &[4, 0xE8, 7, 2, 9], "'2024-02-09 00:00:00'"),
            (12, &[7, 0xE8, 7, 2, 9, 1, 2, 3], "'2024-02-09 01:02:03'"),
            (
                7,
                &[11, 0xE8, 7, 2, 9, 1, 2, 3, 5, 0, 0, 0],
                "'2024-02-09 01:02:03.000005'",
            ),
            (11, &[0], "'00:00:00'"),
            (11, &[8, 1, 2, 0, 0, 0, 3, 4, 5], "'-51:04:05'"),
            (
                11,
                &[12, 0, 0, 0, 0, 0, 3, 4, 5, 0x3F, 0x42, 0x0F, 0],
                "'03:04:05.999999'",
            ),
            (246, b"\x0512.50", "12.50"),
            (246, b"\x03a'b", "'a\\'b'"),
            (253, b"\x04a'\n\\", "'a\\'\\n\\\\'"),
            (252, &[2, 0xFF, 0x0A], "x'FF0A'"),
            (245, b"\x02{}", "'{}'"),
        ] {
            assert_eq!(shown(kind, bytes), expected, "{kind}");
        }
    }

    #[test]
    fn half_characters_hide_no_quote() {
        let mode = Mode {
            wide: Wide::Gbk,
            ..Mode::default()
        };
        for (bytes, expected) in [
            (&b"\x81\x5c"[..], &b"'\x81\x5c'"[..]),
            (b"\x81'", b"'\\\x81\\''"),
            (b"a\x81", b"'a\\\x81'"),
        ] {
            let mut kept = Vec::new();
            Text::new(&mut kept, 100).quote(bytes, mode);
            assert_eq!(kept, expected);
            assert_eq!(unquoted(&kept, mode), bytes);
            let tokens: Vec<_> = Tokens::new(&kept, mode).collect();
            assert_eq!((tokens.len(), tokens[0].is_cut), (1, false));
        }
    }

    #[test]
    fn text_beyond_the_limit_is_counted() {
        let mut kept = Vec::new();
        let mut text = Text::new(&mut kept, 4);
        text.push(b"abc");
        text.push(b"def");
        text.push(b"g");
        assert_eq!((text.length, &kept[..]), (7, &b"abcd"[..]));
    }
}
