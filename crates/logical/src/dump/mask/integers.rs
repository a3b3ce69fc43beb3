//! A whole number as another one with as many digits and the same sign, so that no two become the same.
//!
//! Numbers of one length and sign that their type can hold are a range; within it, a Feistel network
//! over as many bits as it takes is walked until it ends in the range again, which makes it a
//! permutation of the range.

/// Rounds of the network.
const ROUNDS: u8 = 10;

/// The largest amounts that a type holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) below_zero: u64,
    pub(super) above: u64,
}

/// Adds the number that takes the place of `cell` to `out`; `None` when that is none of the type.
pub(super) fn mask(
    cell: &[u8],
    span: Span,
    with: &mut blake3::Hasher,
    out: &mut Vec<u8>,
) -> Option<()> {
    let (is_negative, digits) = match cell {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let value: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    let most = if is_negative {
        span.below_zero
    } else {
        span.above
    };
    // Without the zeros of ZEROFILL.
    let length = value.checked_ilog10().unwrap_or(0);
    let first = match 10u64.checked_pow(length)? {
        1 if !is_negative => 0,
        first => first,
    };
    let last = 10u64
        .checked_pow(length + 1)
        .map_or(most, |next| (next - 1).min(most));
    if value < first || value > last {
        return None;
    }
    let count = (last - first).checked_add(1)?;
    let other = first + permuted(value - first, count, (is_negative, first), with);
    let width = digits.len();
    if is_negative {
        out.push(b'-');
    }
    out.extend_from_slice(format!("{other:0width$}").as_bytes());
    Some(())
}

/// Returns which of `count` numbers from 0 takes the place of `value`.
fn permuted(value: u64, count: u64, of: (bool, u64), with: &mut blake3::Hasher) -> u64 {
    let bits = (64 - (count - 1).leading_zeros()).max(2);
    let half = bits.div_ceil(2);
    let mask = (1u64 << half) - 1;
    let mut whole = value;
    loop {
        let (mut left, mut right) = (whole >> half, whole & mask);
        for round in 0..ROUNDS {
            let f = hashed(right, round, count, of, with);
            (left, right) = (right, left ^ (f & mask));
        }
        whole = left << half | right;
        if whole < count {
            return whole;
        }
    }
}

fn hashed(
    half: u64,
    round: u8,
    count: u64,
    (is_negative, first): (bool, u64),
    with: &mut blake3::Hasher,
) -> u64 {
    let mut input = [0; 26];
    input[..8].copy_from_slice(&half.to_le_bytes());
    input[8..16].copy_from_slice(&count.to_le_bytes());
    input[16..24].copy_from_slice(&first.to_le_bytes());
    input[24..].copy_from_slice(&[round, u8::from(is_negative)]);
    with.reset();
    with.update(&input);
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&with.finalize().as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const TINY: Span = Span {
        below_zero: 128,
        above: 127,
    };

    fn masked(cell: &str, span: Span) -> Option<String> {
        let mut with = blake3::Hasher::new_keyed(&[7; 32]);
        let mut out = Vec::new();
        mask(cell.as_bytes(), span, &mut with, &mut out)?;
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn all_numbers_of_a_type_change_places() {
        let all: BTreeSet<String> = (-128..128).map(|n: i32| n.to_string()).collect();
        let images: BTreeSet<String> = all.iter().map(|n| masked(n, TINY).unwrap()).collect();
        assert_eq!(images, all);
        let changed = all.iter().filter(|n| masked(n, TINY).as_ref() != Some(n));
        assert!(changed.count() > 200);
    }

    #[test]
    fn what_is_no_number_of_the_type_is_none() {
        for cell in [
            "",
            "-",
            "128",
            "-129",
            "1.5",
            "99999999999999999999",
            "x",
            "+",
        ] {
            assert_eq!(masked(cell, TINY), None, "{cell}");
        }
    }

    proptest! {
        #[test]
        fn the_largest_numbers_stay_in_their_type(value in any::<i64>(), large in any::<u64>()) {
            let signed = Span { below_zero: 1 << 63, above: i64::MAX as u64 };
            let text = value.to_string();
            let out = masked(&text, signed).unwrap();
            prop_assert!(out.parse::<i64>().is_ok() && out.len() == text.len(), "{} {}", text, out);
            let unsigned = Span { below_zero: 0, above: u64::MAX };
            let text = format!("{large:022}");
            let out = masked(&text, unsigned).unwrap();
            prop_assert!(out.parse::<u64>().is_ok() && out.len() == text.len(), "{} {}", text, out);
        }
    }
}
