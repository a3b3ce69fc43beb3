//! Training a table on somebody's own strings.

use crate::{CodeTable, Mode, dense, fast};
use evenkeel_op::{Cancel, Error, Progress, Result, Unit};

/// Longest text that is trained on, in bytes: all of it is held in memory a few dozen times over.
pub const MAX_TRAINING: usize = 256 << 20;

/// The smallest table that makes sense, in bytes.
pub const MIN_TABLE: usize = 64 << 10;

/// What to train.
#[derive(Debug, Clone, Copy)]
pub struct Training {
    /// Small or quick.
    pub mode: Mode,
    /// The most bytes that the table may have.
    pub bytes: usize,
}

/// A training under way.
pub(crate) struct Task<'a> {
    pub(crate) texts: &'a [&'a [u8]],
    pub(crate) bytes: usize,
    progress: &'a dyn Progress,
    cancel: &'a Cancel,
}

impl Task<'_> {
    pub(crate) fn check(&self) -> Result<()> {
        self.cancel.check()
    }

    pub(crate) fn advance(&self, by: u64) {
        self.progress.advance(by);
    }
}

/// Trains a table on the texts, each once for each time it is there. The same texts, in whatever
/// order, make the same table on this kind of machine.
pub fn train(
    texts: &[&[u8]],
    training: Training,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<CodeTable> {
    let total: usize = texts.iter().map(|text| text.len() + 1).sum();
    if texts.is_empty() {
        return Err(Error::usage("there is nothing to train on")
            .hint("give a file with one URL on each line, some ten thousand of them"));
    }
    if total > MAX_TRAINING {
        return Err(Error::usage(format!(
            "{total} bytes are more than the limit for training, {MAX_TRAINING}"
        ))
        .hint("use a sample, for example with 'shuf -n 1000000'"));
    }
    if training.bytes < MIN_TABLE {
        return Err(
            Error::usage(format!("a table of {} bytes is too small", training.bytes))
                .hint(format!("allow at least {MIN_TABLE} bytes")),
        );
    }
    let mut texts = texts.to_vec();
    shuffle(&mut texts);
    let steps = match training.mode {
        Mode::Dense => dense::train::STEPS,
        Mode::Fast => fast::train::STEPS,
    };
    progress.phase("training", Some(steps), Unit::Items);
    let task = Task {
        texts: &texts,
        bytes: training.bytes - 48,
        progress,
        cancel,
    };
    let table = match training.mode {
        Mode::Dense => CodeTable::dense(&dense::train::train(&task)?),
        Mode::Fast => CodeTable::fast(&fast::train::train(&task)?),
    };
    progress.end();
    table
}

/// Brings the texts into an order that depends on nothing but them, and follows no rule.
fn shuffle(texts: &mut [&[u8]]) {
    texts.sort_by_cached_key(|text| {
        let mut start = [0; 8];
        start.copy_from_slice(&blake3::hash(text).as_bytes()[..8]);
        (u64::from_le_bytes(start), text.to_vec())
    });
}

/// Parts texts by host: those of nine in ten hosts, and those of the others. A host is always on
/// the same side.
#[must_use]
pub fn by_host<'a>(texts: &[&'a [u8]]) -> (Vec<&'a [u8]>, Vec<&'a [u8]>) {
    texts
        .iter()
        .partition(|text| blake3::hash(host(text)).as_bytes()[0] >= 26)
}

/// The host of a URL: what stands between `//` and the next `/`, `?` or `#`; else the first part.
#[must_use]
pub fn host(url: &[u8]) -> &[u8] {
    let start = url
        .windows(2)
        .position(|pair| pair == b"//")
        .map_or(0, |at| at + 2);
    let rest = &url[start..];
    let end = rest.iter().position(|byte| b"/?#".contains(byte));
    &rest[..end.unwrap_or(rest.len())]
}
