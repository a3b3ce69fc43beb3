//! A second look at a page that a running server may just be writing.
//!
//! A server writes a page in one go, but not atomically against a reader. Where it writes through the
//! page cache, that is the truth, and the next read sees the whole page. Where it writes past it
//! (`O_DIRECT`), the kernel drops what the cache has of the range; a read between may have put half a page
//! back, and there it would stay. So before each look the cache is told to forget the range: that drops
//! what is clean and keeps what waits to be written, which is right in both cases.

use super::judge::Measure;
use super::source::OpenFile;
use super::tally::{Raw, Tally};
use std::path::Path;
use std::time::Duration;

/// How often a page is looked at again, each time after twice the pause.
const LOOKS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(1);
/// After so many pages that stayed bad, fewer looks must do: this is no chance any more.
const FULL_LOOKS_FOR: u32 = 64;
const LOOKS_THEN: u32 = 2;

/// How many pages stayed bad.
#[derive(Debug, Default)]
pub(super) struct Rereads {
    stayed_bad: u32,
}

/// Returns what is still wrong with the page, if anything; a good one is counted. What is wrong with a
/// file that was dropped meanwhile is nothing.
pub(super) fn look(
    file: &OpenFile,
    path: &Path,
    measure: &Measure<'_>,
    raw: Raw,
    rereads: &mut Rereads,
    tally: &mut Tally,
) -> Option<Raw> {
    let size = measure.format.physical_size();
    let mut page = vec![0; size];
    let mut last = raw;
    let looks = match rereads.stayed_bad {
        0..FULL_LOOKS_FOR => LOOKS,
        _ => LOOKS_THEN,
    };
    for look in 0..looks {
        std::thread::sleep(PAUSE * 2_u32.pow(look));
        file.forget(last.offset, size as u64);
        let Ok(got) = file.read(last.offset, &mut page) else {
            continue;
        };
        if got == 0 {
            // Cut off by the server: the page is no more.
            return None;
        }
        let number = last.page.unwrap_or_default();
        match measure.judge(&page[..got], number, last.offset, tally) {
            Some(still) if still.severity == last.severity => last = still,
            other => {
                tally.read_again += 1;
                return other;
            }
        }
    }
    if !file.is_at(path) {
        return None;
    }
    rereads.stayed_bad += 1;
    Some(last)
}
