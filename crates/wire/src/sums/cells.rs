//! A row in binary, written as the text protocol has it, while it passes by.

use super::kind::TokenKind;
use super::real;
use crate::decode::{Bytes, Malformed};
use std::fmt::Write as _;
use std::hash::Hasher;
use twox_hash::XxHash64;

/// What is gathered before it is hashed.
const STEP: usize = 4 << 10;
/// What stands for NULL.
const NULL: u8 = 0xFB;

/// Where a row as text goes.
#[derive(Debug, Default)]
pub(super) struct Out {
    gathered: Vec<u8>,
    /// Takes what is longer.
    hasher: Option<XxHash64>,
    seed: u64,
    is_begun: bool,
    number: String,
}

impl Out {
    /// Begins a row, unless it has begun.
    pub(super) fn begin(&mut self, seed: u64) {
        (self.seed, self.is_begun) = (seed, true);
    }

    pub(super) fn is_begun(&self) -> bool {
        self.is_begun
    }

    pub(super) fn leave(&mut self) {
        self.gathered.clear();
        (self.hasher, self.is_begun) = (None, false);
    }

    /// Takes bytes that need not be copied.
    pub(super) fn long(&mut self, bytes: &[u8]) {
        if self.gathered.len() + bytes.len() <= STEP {
            self.gathered.extend_from_slice(bytes);
            return;
        }
        let seed = self.seed;
        let hasher = self.hasher.get_or_insert_with(|| XxHash64::with_seed(seed));
        hasher.write(&self.gathered);
        hasher.write(bytes);
        self.gathered.clear();
    }

    /// Returns the hash of all.
    pub(super) fn end(&mut self, seed: u64) -> u64 {
        match &mut self.hasher {
            None => XxHash64::oneshot(seed, &self.gathered),
            Some(hasher) => {
                hasher.write(&self.gathered);
                hasher.finish()
            }
        }
    }

    fn length(&mut self, length: u64) {
        let wide = length.to_le_bytes();
        match length {
            0..=0xFA => self.long(&wide[..1]),
            0xFB..=0xFFFF => self.long(&[0xFC, wide[0], wide[1]]),
            0x1_0000..=0xFF_FFFF => self.long(&[0xFD, wide[0], wide[1], wide[2]]),
            _ => {
                self.long(&[0xFE]);
                self.long(&wide);
            }
        }
    }

    /// Takes a value that was written to `number`.
    fn number(&mut self, filled_to: u8) {
        let zeros = usize::from(filled_to).saturating_sub(self.number.len());
        let number = std::mem::take(&mut self.number);
        self.length((zeros + number.len()) as u64);
        self.long(&[b'0'; u8::MAX as usize][..zeros]);
        self.long(number.as_bytes());
        self.number = number;
    }

    fn whole(&mut self, raw: u64, size: usize, kind: TokenKind) {
        let unused = 64 - 8 * size as u32;
        // The sign is the highest bit that was sent.
        let signed = (raw << unused) as i64 >> unused;
        let is_negative = !kind.is_unsigned && signed < 0;
        let mut left = if is_negative || !kind.is_unsigned {
            signed.unsigned_abs()
        } else {
            raw
        };
        let mut digits = [0; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        let (sign, digits) = (&b"-"[..usize::from(is_negative)], &digits[at..]);
        let length = sign.len() + digits.len();
        let zeros = usize::from(kind.filled_to).saturating_sub(length);
        self.length((zeros + length) as u64);
        self.long(&[b'0'; u8::MAX as usize][..zeros]);
        self.long(sign);
        self.long(digits);
    }
}

/// Takes a row's cells as they come.
#[derive(Debug, Default)]
pub(super) struct Cells {
    nulls: Vec<u8>,
    has_nulls: bool,
    /// The next column.
    at: usize,
    /// Bytes that a string still has.
    left: u64,
    /// What came of something that is not complete.
    held: Vec<u8>,
}

impl Cells {
    /// Begins a row.
    pub(super) fn begin(&mut self) {
        (self.has_nulls, self.at, self.left) = (false, 0, 0);
        self.held.clear();
    }

    /// Returns whether all of a row came.
    pub(super) fn are_all(&self, columns: &[TokenKind]) -> bool {
        self.has_nulls && self.at == columns.len() && self.left == 0 && self.held.is_empty()
    }

    /// Takes the next bytes of a row.
    pub(super) fn take(
        &mut self,
        columns: &[TokenKind],
        mut piece: &[u8],
        out: &mut Out,
    ) -> Result<(), Malformed> {
        while !piece.is_empty() {
            if self.left > 0 {
                let count = usize::try_from(self.left).unwrap_or(usize::MAX);
                let (bytes, rest) = piece.split_at(count.min(piece.len()));
                out.long(bytes);
                self.left -= bytes.len() as u64;
                if self.left == 0 {
                    self.skip_nulls(columns, out);
                }
                piece = rest;
                continue;
            }
            if self.held.is_empty() {
                match self.next(columns, piece, out)? {
                    Some(taken) => piece = &piece[taken..],
                    None => {
                        self.held.extend_from_slice(piece);
                        return Ok(());
                    }
                }
                continue;
            }
            // Where pieces meet: byte by byte, until there is enough.
            let mut held = std::mem::take(&mut self.held);
            held.push(piece[0]);
            piece = &piece[1..];
            if self.next(columns, &held, out)?.is_some() {
                held.clear();
            }
            self.held = held;
        }
        Ok(())
    }

    /// Takes what is next off the beginning of `bytes`, and returns how long it was; `None` where it is not all there.
    fn next(
        &mut self,
        columns: &[TokenKind],
        bytes: &[u8],
        out: &mut Out,
    ) -> Result<Option<usize>, Malformed> {
        let mut rest = Bytes(bytes);
        if !self.has_nulls {
            // A zero, then a bit for each column and two that mean nothing.
            let length = 1 + (columns.len() + 2).div_ceil(8);
            let Ok(head) = rest.take(length) else {
                return Ok(None);
            };
            if head[0] != 0 {
                return Err(Malformed);
            }
            self.nulls.clear();
            self.nulls.extend_from_slice(&head[1..]);
            self.has_nulls = true;
            self.skip_nulls(columns, out);
            return Ok(Some(length));
        }
        let kind = *columns.get(self.at).ok_or(Malformed)?;
        if !self.cell(kind, &mut rest, out)? {
            return Ok(None);
        }
        self.at += 1;
        // The bytes of a string come before the next cell.
        if self.left == 0 {
            self.skip_nulls(columns, out);
        }
        Ok(Some(bytes.len() - rest.0.len()))
    }

    fn skip_nulls(&mut self, columns: &[TokenKind], out: &mut Out) {
        let is_null = |at: usize| {
            self.nulls
                .get((at + 2) / 8)
                .is_some_and(|bits| bits >> ((at + 2) % 8) & 1 == 1)
        };
        let count = (self.at..columns.len())
            .take_while(|at| is_null(*at))
            .count();
        for _ in 0..count {
            out.long(&[NULL]);
        }
        self.at += count;
    }

    /// Takes a cell, of a string only its length; returns whether it is all there.
    fn cell(
        &mut self,
        kind: TokenKind,
        rest: &mut Bytes<'_>,
        out: &mut Out,
    ) -> Result<bool, Malformed> {
        let have = rest.0.len();
        let first = *rest.0.first().ok_or(Malformed)?;
        let size = match kind.number {
            1 | 244 => 1,
            2 | 13 => 2,
            3 | 4 | 9 => 4,
            5 | 8 => 8,
            7 | 10 | 11 | 12 | 14 | 17..=19 => 1 + usize::from(first),
            0 | 15 | 16 | 242..=255 => match first {
                0xFC => 3,
                0xFD => 4,
                0xFE => 9,
                _ => 1,
            },
            _ => return Err(Malformed),
        };
        if have < size {
            return Ok(false);
        }
        match kind.number {
            1 | 2 | 3 | 8 | 9 | 13 | 244 => out.whole(rest.number(size)?, size, kind),
            4 => {
                out.number.clear();
                real::float(
                    f32::from_bits(rest.number(4)? as u32),
                    kind.decimals,
                    &mut out.number,
                );
                out.number(kind.filled_to);
            }
            5 => {
                out.number.clear();
                real::double(
                    f64::from_bits(rest.number(8)?),
                    kind.decimals,
                    &mut out.number,
                );
                out.number(kind.filled_to);
            }
            7 | 10 | 12 | 14 | 17 | 18 => {
                date(&mut Bytes(&rest.take(size)?[1..]), kind, &mut out.number)?;
                out.number(0);
            }
            11 | 19 => {
                time(&mut Bytes(&rest.take(size)?[1..]), kind, &mut out.number)?;
                out.number(0);
            }
            _ => {
                self.left = rest.length()?.ok_or(Malformed)?;
                out.length(self.left);
            }
        }
        Ok(true)
    }
}

fn date(rest: &mut Bytes<'_>, kind: TokenKind, out: &mut String) -> Result<(), Malformed> {
    out.clear();
    let (mut year, mut month, mut day) = (0, 0, 0);
    if !rest.0.is_empty() {
        (year, month, day) = (rest.short()?, rest.byte()?, rest.byte()?);
    }
    let _ = write!(out, "{year:04}-{month:02}-{day:02}");
    if !matches!(kind.number, 10 | 14) {
        let (mut hour, mut minute, mut second) = (0, 0, 0);
        if !rest.0.is_empty() {
            (hour, minute, second) = (rest.byte()?, rest.byte()?, rest.byte()?);
        }
        let _ = write!(out, " {hour:02}:{minute:02}:{second:02}");
        fraction(rest, kind, out)?;
    }
    Ok(())
}

fn time(rest: &mut Bytes<'_>, kind: TokenKind, out: &mut String) -> Result<(), Malformed> {
    out.clear();
    let (mut sign, mut hours, mut minute, mut second) = ("", 0, 0, 0);
    if !rest.0.is_empty() {
        sign = if rest.byte()? == 0 { "" } else { "-" };
        let days = rest.number(4)?;
        hours = days * 24 + u64::from(rest.byte()?);
        (minute, second) = (rest.byte()?, rest.byte()?);
    }
    let _ = write!(out, "{sign}{hours:02}:{minute:02}:{second:02}");
    fraction(rest, kind, out)
}

/// Appends the part of a second, with as many digits as the column has.
fn fraction(rest: &mut Bytes<'_>, kind: TokenKind, out: &mut String) -> Result<(), Malformed> {
    let micros = if rest.0.is_empty() {
        0
    } else {
        rest.number(4)?
    };
    let digits = match kind.decimals {
        known @ 0..=6 => usize::from(known),
        _ if micros > 0 => 6,
        _ => 0,
    };
    if digits > 0 {
        let _ = write!(out, ".{micros:06}");
        out.truncate(out.len() - 6 + digits);
    }
    Ok(())
}
