//! Rows that go into a part: what compaction and salvage keep.

use super::frame::{self, FrameKind, HEADER, Header, Origin};
use super::times::{self, PAIR};

/// The bytes that stand at `start` of a part: when the rows came, where that has to be said, then the rows. These are
/// the first id, how many, and a body. Returns also where in the file that body starts.
pub(crate) fn encode(
    (origin, start): (Origin, u64),
    pairs: &[(u64, u64)],
    ((first, count), body): ((u64, u32), &[u8]),
) -> (Vec<u8>, u64) {
    let mut out = Vec::with_capacity(body.len() + pairs.len() * PAIR + 4 * HEADER);
    let header = |kind, first, count| Header {
        kind,
        len: 0,
        first,
        count,
        durable: start as u32,
    };
    if !pairs.is_empty() {
        let header = header(FrameKind::Times, 0, pairs.len() as u32);
        frame::encode(&mut out, (origin, start), header, |out| {
            times::put(out, pairs);
        });
    }
    let at = start + out.len() as u64;
    let header = header(FrameKind::Kept, first, count);
    frame::encode(&mut out, (origin, at), header, |out| out.extend(body));
    (out, at + HEADER as u64)
}
