//! URLs and other short strings as shorter ones that sort alike.
//!
//! A [`CodeTable`] is trained once and then never changes. Its codes compare, byte by byte, as the
//! strings do that they stand for, and a prefix of strings is a range of codes. Integers only at
//! run time: the same table makes the same codes everywhere.
//!
//! | file | what |
//! |---|---|
//! | `coder` | intervals and their codes |
//! | `history` | contexts: what the past of a string says about its next byte |
//! | `dense/` | many contexts mixed: few bytes, some ten thousand URLs in a second |
//! | `fast/` | one context at a time, looked up: a million URLs in a second |
//! | `format` | a table as a file |
//! | `train` | from strings to a table |
//! | `lines` | codes as lines of text, ratios |

mod coder;
mod dense;
mod fast;
mod format;
mod history;
pub mod lines;
mod train;

pub use coder::{MAX_LEN, NotACode};
pub use format::Mode;
pub use train::{MAX_TRAINING, MIN_TABLE, Training, by_host, host, train};

use evenkeel_op::Result;

/// The most bytes that the code of a string of `len` bytes has, whatever the string and the table.
#[must_use]
pub const fn longest_code(len: usize) -> usize {
    7 * len + 8
}

/// Trained on public lists of links; tables/README.md says how.
const SHIPPED: &[u8] = include_bytes!("../tables/public.urltable");

#[derive(Debug)]
enum Model {
    Dense(Box<dense::Dense>),
    Fast(fast::Fast),
}

/// A table: strings to codes and back.
#[derive(Debug)]
pub struct CodeTable {
    model: Model,
    id: [u8; 8],
    file: Vec<u8>,
}

impl CodeTable {
    /// Reads a table from the bytes of its file, and refuses what is damaged or none.
    pub fn read(file: Vec<u8>) -> Result<Self> {
        let (mode, id, payload) = format::opened(&file)?;
        let model = match mode {
            Mode::Dense => dense::Dense::read(payload).map(|model| Model::Dense(Box::new(model))),
            Mode::Fast => fast::Fast::read(payload).map(Model::Fast),
        };
        let model = model.map_err(format::senseless)?;
        Ok(Self { model, id, file })
    }

    /// Reads the table that comes with the program.
    pub fn shipped() -> Result<Self> {
        Self::read(SHIPPED.to_vec())
    }

    fn dense(model: &dense::Parts) -> Result<Self> {
        Self::read(format::sealed(Mode::Dense, &model.payload()))
    }

    fn fast(model: &fast::Fast) -> Result<Self> {
        Self::read(format::sealed(Mode::Fast, &model.payload()))
    }

    /// The bytes of the table's file.
    #[must_use]
    pub fn file(&self) -> &[u8] {
        &self.file
    }

    /// What the table is called: 16 digits that follow from its content.
    #[must_use]
    pub fn id(&self) -> String {
        self.id.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// How it codes.
    #[must_use]
    pub fn mode(&self) -> Mode {
        match self.model {
            Model::Dense(_) => Mode::Dense,
            Model::Fast(_) => Mode::Fast,
        }
    }

    /// Returns the code of a string of at most [`MAX_LEN`] bytes, `None` for a longer one.
    #[must_use]
    pub fn compress(&self, text: &[u8]) -> Option<Vec<u8>> {
        (text.len() <= MAX_LEN).then(|| match &self.model {
            Model::Dense(model) => model.compress(text),
            Model::Fast(model) => model.compress(text),
        })
    }

    /// Returns the string that has this code, if it has at most `limit` bytes (and [`MAX_LEN`]).
    /// Zeros at a code's end mean nothing.
    pub fn decompress(&self, code: &[u8], limit: usize) -> Result<Vec<u8>, NotACode> {
        match &self.model {
            Model::Dense(model) => model.decompress(code, limit),
            Model::Fast(model) => model.decompress(code, limit),
        }
    }

    /// Returns `low` and `high`: a string begins with `prefix` if and only if its code is at least
    /// `low` and below `high`.
    #[must_use]
    pub fn prefix(&self, prefix: &[u8]) -> (Vec<u8>, Vec<u8>) {
        match &self.model {
            Model::Dense(model) => model.bounds(prefix),
            Model::Fast(model) => model.bounds(prefix),
        }
    }
}
