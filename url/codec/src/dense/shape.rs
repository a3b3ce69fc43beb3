//! The measures of a dense table, and where in it something is.

use crate::history::PARTS;

/// The end of a string and 256 bytes, in this order.
pub(super) const LEAVES: usize = 257;
/// Steps that a count is known by.
pub(super) const LEVELS: usize = 19;
/// States of a context at a node: a step to the left, one to the right.
pub(super) const STATES: usize = LEVELS * LEVELS;
/// Contexts are summed this many at a time.
pub(super) const LANES: usize = 16;
/// As many are enough for small tables.
pub(super) const NARROW: usize = LANES / 2;
/// Longest matching order, 0 to 6.
pub(super) const MATCHES: usize = 7;
/// Last bytes that weights are told apart by: all above are as the last.
pub(super) const LASTS: usize = 128;
/// A logit of one, as an integer.
pub(super) const ONE: i32 = 256;
/// Logits stay within plus and minus this.
pub(super) const FAR: i32 = 12 * ONE;
/// A weight of one is `1 << WEIGHT_BITS`.
pub(super) const WEIGHT_BITS: u32 = 11;
/// The largest weight: sums of [`LANES`] products stay within 31 bits.
pub(super) const WEIGHT_MOST: i16 = 8_191;
/// Of 65 536, the least that a decision may get.
pub(super) const LEAST: u32 = 16;
/// When this much of 2^31 is left of a byte's probability, it is a surprise.
pub(super) const SURPRISE: u32 = 1 << 19;

pub(super) type Lanes = [i16; LANES];

pub(super) fn node_row(node: usize, part: usize) -> usize {
    node * PARTS + part
}

pub(super) fn match_row(matched: usize, last: u8) -> usize {
    matched * LASTS + usize::from(last).min(LASTS - 1)
}

/// Where the steps of counts above [`level`]'s first 256 begin, in eighths.
const COARSE: usize = 256 - 256 / 8;

/// The step of a count.
#[inline]
pub(super) fn level(count: u32) -> usize {
    // Each count up to 255, then each eighth one up to 20 000.
    const STEPS: [u8; 4_096] = {
        let mut steps = [18; 4_096];
        let mut at = 0;
        while at <= COARSE + 20_000 / 8 {
            let count = if at < 256 { at } else { (at - COARSE) * 8 };
            steps[at] = match count {
                0..=5 => count as u8,
                6..=7 => 6,
                8..=10 => 7,
                11..=14 => 8,
                15..=20 => 9,
                21..=29 => 10,
                30..=42 => 11,
                43..=63 => 12,
                64..=127 => 13,
                128..=255 => 14,
                256..=767 => 15,
                768..=2_999 => 16,
                3_000..=19_999 => 17,
                _ => 18,
            };
            at += 1;
        }
        steps
    };
    let count = count.min(20_000) as usize;
    let at = if count < 256 {
        count
    } else {
        COARSE + count / 8
    };
    usize::from(STEPS[at % STEPS.len()])
}
