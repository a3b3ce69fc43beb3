//! Codes as lines of text, and what a table makes of strings.

use crate::{CodeTable, MAX_LEN};
use evenkeel_op::{Error, Result};

/// Appends a code as digits, two for each byte, and a line's end. Lines sort as codes do.
pub fn write(code: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in code {
        out.push(DIGITS[usize::from(byte >> 4)]);
        out.push(DIGITS[usize::from(byte & 15)]);
    }
    out.push(b'\n');
}

/// Reads a line's code, without the line's end. `None` if it is none.
#[must_use]
pub fn read(line: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let (pairs, rest) = line.as_chunks::<2>();
    let code = pairs
        .iter()
        .map(|[upper, lower]| Some(digit(*upper)? << 4 | digit(*lower)?));
    rest.is_empty().then(|| code.collect())?
}

/// What a table makes of strings.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measure {
    /// How many strings.
    pub urls: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// The bytes of their codes.
    pub bytes_out: u64,
    ratios: f64,
}

impl Measure {
    /// Adds one string, and checks that it comes back. Empty ones have no ratio and are left out.
    pub fn add(&mut self, table: &CodeTable, text: &[u8]) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let code = table.compress(text).ok_or_else(|| too_long(text.len()))?;
        if table.decompress(&code, text.len()).as_deref() != Ok(text) {
            return Err(Error::failed("a string changed when it was decompressed")
                .hint("this is a defect of the program; please report it with the table"));
        }
        self.urls += 1;
        self.bytes_in += text.len() as u64;
        self.bytes_out += code.len() as u64;
        self.ratios += code.len() as f64 / text.len() as f64;
        Ok(())
    }

    /// All codes' bytes by all strings' bytes.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.bytes_out as f64 / self.bytes_in.max(1) as f64
    }

    /// The mean of each string's ratio.
    #[must_use]
    pub fn ratio_mean(&self) -> f64 {
        self.ratios / self.urls.max(1) as f64
    }
}

/// What a string is refused with that has no code.
#[must_use]
pub fn too_long(len: usize) -> Error {
    Error::usage(format!(
        "a string of {len} bytes is longer than can be compressed, {MAX_LEN}"
    ))
    .hint("remove it, or shorten it")
}
