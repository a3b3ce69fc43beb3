//! The fast model: an automaton whose states are contexts, each with a whole distribution.
//!
//! Bytes that are rare in URLs share a symbol and are told apart behind it, in their order; so a
//! state is small and there can be many.

pub(crate) mod train;

use crate::coder::{Decoder, Encoder, NotACode, push};
use crate::format::{Bad, Reader};

/// The end, bytes below 32, each of 32..128, bytes from 128 on: in this order.
const SYMBOLS: usize = 99;
const LOW: usize = 1;
const HIGH: usize = SYMBOLS - 1;
/// Bits that tell the bytes of [`LOW`] and [`HIGH`] apart.
const LOW_BITS: u32 = 5;
const HIGH_BITS: u32 = 7;
/// Parts of a distribution: `1 << BITS`.
const BITS: u32 = 15;
/// Symbols that have a following state: all but the end.
const FOLLOWED: usize = SYMBOLS - 1;

/// Where each symbol begins, the whole behind them.
#[derive(Debug, Clone, Copy)]
struct Row([u16; SYMBOLS + 1]);

/// For every [`STRIDE`] parts, the symbol that holds the first: where a search begins.
type Guide = [u8; (1 << BITS) / STRIDE];
const STRIDE: usize = 256;

/// A table in memory; state 0 is a string's beginning.
#[derive(Debug)]
pub(crate) struct Fast {
    rows: Vec<Row>,
    guides: Vec<Guide>,
    next: Vec<[u16; FOLLOWED]>,
}

#[inline]
fn symbol(byte: u8) -> usize {
    match byte {
        0..32 => LOW,
        32..128 => usize::from(byte) - 30,
        128.. => HIGH,
    }
}

impl Row {
    fn of(starts: &[u16; SYMBOLS]) -> Self {
        let mut row = [1 << BITS; SYMBOLS + 1];
        row[..SYMBOLS].copy_from_slice(starts);
        Self(row)
    }

    #[inline]
    fn span(&self, symbol: usize) -> (u32, u32) {
        (u32::from(self.0[symbol]), u32::from(self.0[symbol + 1]))
    }

    fn guide(&self) -> Guide {
        std::array::from_fn(|at| {
            let part = (at * STRIDE) as u16;
            (self.0.partition_point(|start| *start <= part) - 1) as u8
        })
    }

    /// The symbol that holds a part.
    #[inline]
    fn find(&self, guide: &Guide, part: u32) -> usize {
        let mut symbol = usize::from(guide[part as usize / STRIDE]);
        while symbol < HIGH && u32::from(self.0[symbol + 1]) <= part {
            symbol += 1;
        }
        symbol
    }
}

impl Fast {
    fn of(rows: Vec<Row>, next: Vec<[u16; FOLLOWED]>) -> Self {
        let guides = rows.iter().map(Row::guide).collect();
        Self { rows, guides, next }
    }

    fn walk(&self, coder: &mut Encoder, text: &[u8]) -> usize {
        let mut state = 0_usize;
        for &byte in text {
            let symbol = symbol(byte);
            let (from, to) = self.rows[state].span(symbol);
            coder.span(from, to, BITS);
            match symbol {
                LOW => coder.span(u32::from(byte), u32::from(byte) + 1, LOW_BITS),
                HIGH => coder.span(u32::from(byte) - 128, u32::from(byte) - 127, HIGH_BITS),
                _ => {}
            }
            state = usize::from(self.next[state][symbol - 1]);
        }
        state
    }

    pub(crate) fn compress(&self, text: &[u8]) -> Vec<u8> {
        let mut coder = Encoder::new(text.len() / 2 + 16);
        let state = self.walk(&mut coder, text);
        let (from, to) = self.rows[state].span(0);
        coder.span(from, to, BITS);
        coder.finish()
    }

    pub(crate) fn bounds(&self, prefix: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let mut coder = Encoder::new(prefix.len() / 2 + 16);
        self.walk(&mut coder, prefix);
        coder.bounds()
    }

    pub(crate) fn decompress(&self, code: &[u8], limit: usize) -> Result<Vec<u8>, NotACode> {
        let mut coder = Decoder::new(code);
        if coder.lost() {
            return Err(NotACode::Nothing);
        }
        let mut out = Vec::with_capacity(code.len().saturating_mul(6).min(limit).min(1 << 16));
        let mut state = 0_usize;
        loop {
            let row = &self.rows[state];
            let symbol = row.find(&self.guides[state], coder.part(BITS));
            let (from, to) = row.span(symbol);
            coder.take(from, to, BITS);
            let byte = match symbol {
                0 => break,
                LOW => rest(&mut coder, LOW_BITS),
                HIGH => 128 + rest(&mut coder, HIGH_BITS),
                _ => symbol as u8 + 30,
            };
            push(&mut out, byte, limit)?;
            state = usize::from(self.next[state][symbol - 1]);
        }
        coder.finish()?;
        Ok(out)
    }

    pub(crate) fn payload(&self) -> Vec<u8> {
        let mut out = (self.rows.len() as u32).to_le_bytes().to_vec();
        for (row, next) in self.rows.iter().zip(&self.next) {
            for start in &row.0[1..SYMBOLS] {
                out.extend_from_slice(&start.to_le_bytes());
            }
            for state in next {
                out.extend_from_slice(&state.to_le_bytes());
            }
        }
        out
    }

    pub(crate) fn read(payload: &[u8]) -> Result<Self, Bad> {
        let mut from = Reader::new(payload);
        let states = from.u32()? as usize;
        if states == 0 || states > 1 << 16 || payload.len() != 4 + states * STATE_BYTES {
            return Err(Bad);
        }
        let (mut rows, mut next) = (Vec::new(), Vec::new());
        for _ in 0..states {
            let mut starts = [0_u16; SYMBOLS];
            for start in &mut starts[1..] {
                *start = from.u16()?;
            }
            let rising = starts.windows(2).all(|pair| pair[0] < pair[1]);
            if !rising || starts[HIGH] >= 1 << BITS {
                return Err(Bad);
            }
            rows.push(Row::of(&starts));
            let mut following = [0_u16; FOLLOWED];
            for state in &mut following {
                *state = from.u16()?;
                if usize::from(*state) >= states {
                    return Err(Bad);
                }
            }
            next.push(following);
        }
        from.end()?;
        Ok(Self::of(rows, next))
    }
}

/// Bytes that a state takes in a file.
const STATE_BYTES: usize = 4 * FOLLOWED;

/// Finds which of the bytes of one symbol it is.
fn rest(coder: &mut Decoder<'_>, bits: u32) -> u8 {
    let part = coder.part(bits);
    coder.take(part, part + 1, bits);
    part as u8
}
