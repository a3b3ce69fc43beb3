//! The range coder: strings of decisions as numbers in 0 ≤ x < 1, written as bytes.
//!
//! Whatever is coded takes a part of the interval that it begins with, lower parts for lower
//! symbols. A part may lose to rounding at its upper end, but never reaches out of the whole, so
//! that intervals nest exactly: this is what order and prefixes rest on.

/// The longest string that has a code, in bytes.
pub const MAX_LEN: usize = 1 << 20;

/// Below this, the interval is widened by a byte.
const NARROW: u32 = 1 << 24;

/// Why bytes are no code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotACode {
    /// No string has this code: it was cut, changed or made with another table.
    #[error("it is not the code of any string")]
    Nothing,
    /// It stands for more than the caller takes.
    #[error("it decompresses to more bytes than allowed")]
    TooLong,
}

/// What a model is walked with: an encoder knows each symbol, a decoder finds it.
pub(crate) trait Coder {
    /// Codes one of two: false has `below` of 65 536 parts, in 1..=65 535.
    fn flip(&mut self, below: u32, want: bool) -> bool;
}

/// An interval that coding has come to, as numbers of a few digits.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mark {
    low: u128,
    range: u32,
    digits: usize,
}

/// Digits of a number that marks are compared with.
const HEAD: usize = 16;

impl Mark {
    /// How far a code that begins with these digits lies above the interval's lower end.
    #[inline]
    fn above(&self, head: u128) -> Option<u32> {
        let number = head >> (8 * (HEAD - self.digits));
        let above = u32::try_from(number.checked_sub(self.low)?).ok()?;
        (above < self.range).then_some(above)
    }

    /// Whether the interval holds codes that begin with these digits.
    #[inline]
    pub(crate) fn holds(&self, head: u128) -> bool {
        self.above(head).is_some()
    }
}

/// Turns symbols into a code.
#[derive(Debug, Clone)]
pub(crate) struct Encoder {
    /// What `low` has shed at its upper end, as a fraction's digits.
    shed: Vec<u8>,
    low: u32,
    range: u32,
}

impl Encoder {
    pub(crate) fn new(room: usize) -> Self {
        Self {
            shed: Vec::with_capacity(room),
            low: 0,
            range: u32::MAX,
        }
    }

    /// Goes on from here, with room for so many more bytes.
    pub(crate) fn resumed(&self, room: usize) -> Self {
        let mut shed = Vec::with_capacity(self.shed.len() + room);
        shed.extend_from_slice(&self.shed);
        Self { shed, ..*self }
    }

    /// Where it is, unless it has come too far.
    pub(crate) fn mark(&self) -> Option<Mark> {
        let digits = self.shed.len() + 4;
        let shed = self.shed.iter().fold(0, |n, d| n << 8 | u128::from(*d));
        (digits <= HEAD).then_some(Mark {
            low: shed << 32 | u128::from(self.low),
            range: self.range,
            digits,
        })
    }

    /// Narrows the interval to `range` parts from `by` on.
    #[inline]
    fn narrow(&mut self, by: u32, range: u32) {
        let (low, carried) = self.low.overflowing_add(by);
        self.low = low;
        if carried {
            carry(&mut self.shed);
        }
        self.range = range;
        while self.range < NARROW {
            self.shed.push((self.low >> 24) as u8);
            self.low <<= 8;
            self.range <<= 8;
        }
    }

    /// Codes a symbol that takes `from..to` of `1 << bits` parts.
    #[inline]
    pub(crate) fn span(&mut self, from: u32, to: u32, bits: u32) {
        let (by, range) = part_of(self.range, from, to, bits);
        self.narrow(by, range);
    }

    /// Ends with the shortest number in the interval; of those the smallest.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let (digits, carried, count) = shortest(self.low, self.range);
        if carried {
            carry(&mut self.shed);
        }
        self.shed.extend_from_slice(&digits.to_be_bytes()[..count]);
        strip(&mut self.shed);
        self.shed
    }

    /// Returns the interval's ends: it holds what is at least the first and below the second.
    pub(crate) fn bounds(self) -> (Vec<u8>, Vec<u8>) {
        let mut low = self.shed.clone();
        low.extend_from_slice(&self.low.to_be_bytes());
        strip(&mut low);
        let mut high = self.shed;
        let (end, carried) = self.low.overflowing_add(self.range);
        if carried {
            carry(&mut high);
        }
        high.extend_from_slice(&end.to_be_bytes());
        strip(&mut high);
        (low, high)
    }
}

impl Coder for Encoder {
    #[inline]
    fn flip(&mut self, below: u32, want: bool) -> bool {
        let part = (self.range >> 16) * below;
        if want {
            self.narrow(part, self.range - part);
        } else {
            self.narrow(0, part);
        }
        want
    }
}

/// Returns where `from..to` of `1 << bits` parts of a range begins, and how long it is: the same for whoever
/// codes and whoever decodes.
#[inline]
fn part_of(range: u32, from: u32, to: u32, bits: u32) -> (u32, u32) {
    let unit = range >> bits;
    let by = unit * from;
    // The last symbol gets what rounding left over.
    let length = match to == 1 << bits {
        true => range - by,
        false => unit * (to - from),
    };
    (by, length)
}

/// Adds one to the digits. They stay below 1: the interval never reaches out of the first one.
fn carry(digits: &mut [u8]) {
    for digit in digits.iter_mut().rev() {
        *digit = digit.wrapping_add(1);
        if *digit != 0 {
            return;
        }
    }
}

/// Drops zeros at the end, which are implied.
fn strip(digits: &mut Vec<u8>) {
    while digits.last() == Some(&0) {
        digits.pop();
    }
}

/// Finds the number with the fewest digits in `low..low + range`: it, whether it carries, its digits.
fn shortest(low: u32, range: u32) -> (u32, bool, usize) {
    for count in 0..4_usize {
        let step = 1_u64 << (32 - 8 * count);
        let rounded = u64::from(low).div_ceil(step) * step;
        if rounded - u64::from(low) < u64::from(range) {
            return (rounded as u32, rounded >> 32 != 0, count);
        }
    }
    (low, false, 4)
}

/// Turns a code back into symbols.
#[derive(Debug)]
pub(crate) struct Decoder<'a> {
    code: &'a [u8],
    /// Digits read, zeros behind the code's end included.
    read: usize,
    /// How far the code lies above the interval's lower end.
    above: u32,
    range: u32,
    /// The digits of the code that `above` is level with.
    window: u32,
    lost: bool,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(mut code: &'a [u8]) -> Self {
        // Columns of a fixed length pad with zeros; they change nothing.
        while let Some((0, rest)) = code.split_last() {
            code = rest;
        }
        let mut decoder = Self {
            code,
            read: 0,
            above: 0,
            range: u32::MAX,
            window: 0,
            lost: false,
        };
        for _ in 0..4 {
            decoder.next_digit();
        }
        decoder.lost = decoder.above >= decoder.range;
        decoder
    }

    #[inline]
    fn next_digit(&mut self) {
        let digit = self.code.get(self.read).copied().unwrap_or(0);
        self.read += 1;
        self.above = self.above << 8 | u32::from(digit);
        self.window = self.window << 8 | u32::from(digit);
    }

    #[inline]
    fn narrow(&mut self, by: u32, range: u32) {
        self.above -= by;
        self.range = range;
        while self.range < NARROW {
            self.next_digit();
            self.range <<= 8;
        }
    }

    /// The code's first digits.
    pub(crate) fn head(&self) -> u128 {
        let mut head = [0; HEAD];
        let len = self.code.len().min(HEAD);
        head[..len].copy_from_slice(&self.code[..len]);
        u128::from_be_bytes(head)
    }

    /// Goes to a mark that holds the code, given the code's first digits.
    pub(crate) fn skip(&mut self, mark: &Mark, head: u128) {
        if let Some(above) = mark.above(head) {
            self.above = above;
            self.range = mark.range;
            self.window = (head >> (8 * (HEAD - mark.digits))) as u32;
            self.read = mark.digits;
        }
    }

    /// Says in which of `1 << bits` parts the code lies. `take` has to follow with that symbol.
    #[inline]
    pub(crate) fn part(&self, bits: u32) -> u32 {
        (self.above / (self.range >> bits)).min((1 << bits) - 1)
    }

    /// Takes the symbol that has `from..to`.
    #[inline]
    pub(crate) fn take(&mut self, from: u32, to: u32, bits: u32) {
        let (by, range) = part_of(self.range, from, to, bits);
        self.narrow(by, range);
    }

    /// Whether the code lies in no interval at all.
    pub(crate) fn lost(&self) -> bool {
        self.lost
    }

    /// Checks, behind the last symbol, that the encoder would have ended with just this code.
    pub(crate) fn finish(self) -> Result<(), NotACode> {
        let low = self.window.wrapping_sub(self.above);
        let (digits, _, _) = shortest(low, self.range);
        // The same digits at the same place and none behind: what lies before them is then the
        // same as well, because the code is less than one unit of it above `low`.
        if digits == self.window && self.code.len() <= self.read && !self.lost {
            Ok(())
        } else {
            Err(NotACode::Nothing)
        }
    }
}

impl Coder for Decoder<'_> {
    #[inline]
    fn flip(&mut self, below: u32, _want: bool) -> bool {
        let part = (self.range >> 16) * below;
        let found = self.above >= part;
        if found {
            self.narrow(part, self.range - part);
        } else {
            self.narrow(0, part);
        }
        found
    }
}

/// Appends a decoded byte, up to the limit.
#[inline]
pub(crate) fn push(out: &mut Vec<u8>, byte: u8, limit: usize) -> Result<(), NotACode> {
    if out.len() >= limit.min(MAX_LEN) {
        return Err(NotACode::TooLong);
    }
    out.push(byte);
    Ok(())
}
