//! The end of MySQL's redo log from 8.0.30 on: a directory of files of consecutive LSNs.
//!
//! ```text
//! #ib_redoN: a header like the classic one (format 6; at 8 the LSN of the first block), checkpoints at
//! 512 and 1536 with their LSN at 8, blocks from 2048 on
//! ```

use super::header::{checkpoint_of, header_is_whole};
use super::records::{self, Step};
use super::{RedoFormat, RedoRange};
use crate::bytes::{be32, be64};
use crate::space::read_up_to;
use evenkeel_op::{Context, Error, Result};
use std::fs::File;
use std::path::PathBuf;

const FORMAT: u32 = 6;
const HEADER: usize = 2048;
const WINDOW: usize = 1 << 20;

/// Returns from where to where the log in these files has records: its newest checkpoint, and its
/// end. Reads from the one to the other.
pub(super) fn range(files: &[PathBuf]) -> Result<RedoRange> {
    let mut parts = Vec::new();
    let mut checkpoint = None;
    for path in files {
        let what = || format!("failed to read the redo log {}", path.display());
        let file = File::open(path).context(what)?;
        let mut header = vec![0; HEADER];
        let got = read_up_to(&file, &mut header, 0).context(what)?;
        if got < HEADER || be32(&header, 0) != FORMAT || !header_is_whole(&header) {
            continue;
        }
        let length = file.metadata().context(what)?.len();
        parts.push((be64(&header, 8), length, file));
        checkpoint = checkpoint.max(checkpoint_of(&header, RedoFormat::Directory));
    }
    parts.sort_by_key(|part| part.0);
    let checkpoint = checkpoint
        .ok_or_else(|| Error::failed("no file of the redo log has an intact checkpoint"))?;
    let mut end = None;
    for (first, length, file) in &parts {
        let behind = first + length.saturating_sub(HEADER as u64);
        if behind <= checkpoint {
            continue;
        }
        if end.is_some_and(|end| end != *first) {
            break;
        }
        let from = end.unwrap_or(checkpoint & !511).max(*first);
        end = Some(scan(file, *first, from, behind)?);
    }
    match end {
        Some(end) if end >= checkpoint => Ok(RedoRange { checkpoint, end }),
        _ => Err(Error::failed(
            "the redo log has no records after its newest checkpoint",
        )),
    }
}

/// Walks blocks from the LSN `from` on; `first` is that of the file's first block.
fn scan(file: &File, first: u64, from: u64, behind: u64) -> Result<u64> {
    let mut lsn = from;
    let mut buffer = vec![0; WINDOW];
    while lsn < behind {
        let at = HEADER as u64 + lsn - first;
        let got = read_up_to(file, &mut buffer, at).context(|| "failed to read the redo log")?;
        if got < 512 {
            break;
        }
        for block in buffer[..got].chunks_exact(512) {
            match records::block(block, lsn) {
                Step::Next(length) => lsn += length as u64,
                Step::Last(length) => return Ok(lsn + length as u64),
                Step::End => return Ok(lsn),
            }
        }
    }
    Ok(lsn.min(behind))
}
