//! The merge walk over two segment sequences.

use super::map::{ExtentLocation, Segment};
use std::io;
use std::ops::Range;

/// Returns the ranges in which two files may differ, given their segments in order without gaps,
/// and their sizes in bytes. The result is sorted, disjoint and inside the second file.
pub fn differing(
    base: impl IntoIterator<Item = io::Result<Segment>>,
    base_size: u64,
    now: impl IntoIterator<Item = io::Result<Segment>>,
    now_size: u64,
) -> io::Result<Vec<Range<u64>>> {
    differing_on(base, base_size, now, now_size, &[])
}

/// The same for two files on two states of one disk, which differ at the addresses in `overwritten`:
/// sorted, disjoint.
pub fn differing_on(
    base: impl IntoIterator<Item = io::Result<Segment>>,
    base_size: u64,
    now: impl IntoIterator<Item = io::Result<Segment>>,
    now_size: u64,
    overwritten: &[Range<u64>],
) -> io::Result<Vec<Range<u64>>> {
    let (mut base, mut now) = (base.into_iter(), now.into_iter());
    let common = base_size.min(now_size);
    let mut ranges = Vec::new();
    let mut at = 0;
    let (mut old, mut new) = (None, None);
    while at < common {
        let old_here = covering(&mut old, &mut base, at)?;
        let new_here = covering(&mut new, &mut now, at)?;
        let end = old_here.end.min(new_here.end).min(common);
        match (old_here.place_at(at), new_here.place_at(at)) {
            (ExtentLocation::Zeros, ExtentLocation::Zeros) => {}
            (ExtentLocation::Shared(old), ExtentLocation::Shared(new)) if old == new => {
                push_overwritten(&mut ranges, at..end, new, overwritten);
            }
            _ => push(&mut ranges, at..end),
        }
        at = end;
    }
    if now_size > base_size {
        push(&mut ranges, base_size..now_size);
    }
    Ok(ranges)
}

/// Returns the segment that covers byte `at`, reading on when the current one ended.
fn covering(
    current: &mut Option<Segment>,
    rest: &mut impl Iterator<Item = io::Result<Segment>>,
    at: u64,
) -> io::Result<Segment> {
    loop {
        match *current {
            Some(segment) if segment.end > at => return Ok(segment),
            _ => match rest.next() {
                Some(segment) => *current = Some(segment?),
                None => {
                    return Err(io::Error::other(
                        "the extent list ended before the file did",
                    ));
                }
            },
        }
    }
}

/// Appends what of a range of a file, stored from `address` on, lies where the disk was overwritten.
fn push_overwritten(
    ranges: &mut Vec<Range<u64>>,
    range: Range<u64>,
    address: u64,
    overwritten: &[Range<u64>],
) {
    let end = address.saturating_add(range.end - range.start);
    let first = overwritten.partition_point(|part| part.end <= address);
    for part in overwritten[first..]
        .iter()
        .take_while(|part| part.start < end)
    {
        let from = part.start.max(address) - address;
        let to = part.end.min(end) - address;
        push(ranges, range.start + from..range.start + to);
    }
}

/// Appends a range, joined to the previous one when they touch.
fn push(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Turns one place per block of 1 byte into segments, merging nothing.
    fn segments(blocks: &[ExtentLocation]) -> Vec<io::Result<Segment>> {
        let mut all: Vec<_> = blocks
            .iter()
            .enumerate()
            .map(|(i, place)| {
                Ok(Segment {
                    start: i as u64,
                    end: i as u64 + 1,
                    place: *place,
                })
            })
            .collect();
        let start = blocks.len() as u64;
        all.push(Ok(Segment {
            start,
            end: u64::MAX,
            place: ExtentLocation::Zeros,
        }));
        all
    }

    /// Merges neighbours that continue each other, so that boundaries differ between the lists.
    fn merged(blocks: &[ExtentLocation]) -> Vec<io::Result<Segment>> {
        let mut all: Vec<Segment> = Vec::new();
        for segment in segments(blocks).into_iter().map(Result::unwrap) {
            match all.last_mut() {
                Some(last) if last.place_at(segment.start) == segment.place => {
                    last.end = segment.end;
                }
                _ => all.push(segment),
            }
        }
        all.into_iter().map(Ok).collect()
    }

    fn blocks() -> impl Strategy<Value = Vec<ExtentLocation>> {
        let place = prop_oneof![
            3 => (0u64..6).prop_map(ExtentLocation::Shared),
            1 => Just(ExtentLocation::Zeros),
            1 => Just(ExtentLocation::Opaque),
        ];
        proptest::collection::vec(place, 0..24)
    }

    proptest! {
        #[test]
        fn reports_exactly_the_blocks_that_are_not_provably_equal(
            base in blocks(), now in blocks(), cut in 0u64..4,
        ) {
            let base_size = (base.len() as u64).saturating_sub(cut);
            let now_size = now.len() as u64;
            let ranges =
                differing(merged(&base), base_size, segments(&now), now_size).unwrap();
            for pair in ranges.windows(2) {
                prop_assert!(pair[0].end < pair[1].start);
            }
            for at in 0..now_size {
                let i = at as usize;
                let equal = at < base_size && base[i] == now[i] && base[i] != ExtentLocation::Opaque;
                let reported = ranges.iter().any(|range| range.contains(&at));
                prop_assert_eq!(reported, !equal, "byte {}", at);
            }
            prop_assert!(ranges.iter().all(|r| r.start < r.end && r.end <= now_size));
        }

        #[test]
        fn reports_what_lies_where_the_disk_was_overwritten(
            base in blocks(), now in blocks(), written in proptest::collection::vec(any::<bool>(), 6),
        ) {
            let overwritten: Vec<_> = (0u64..6)
                .filter(|address| written[*address as usize])
                .map(|address| address..address + 1)
                .collect();
            let (base_size, now_size) = (base.len() as u64, now.len() as u64);
            let ranges =
                differing_on(merged(&base), base_size, merged(&now), now_size, &overwritten).unwrap();
            for pair in ranges.windows(2) {
                prop_assert!(pair[0].end < pair[1].start);
            }
            for at in 0..now_size {
                let i = at as usize;
                let equal = at < base_size && base[i] == now[i] && match now[i] {
                    ExtentLocation::Shared(address) => !written[address as usize],
                    ExtentLocation::Zeros => true,
                    ExtentLocation::Opaque => false,
                };
                let reported = ranges.iter().any(|range| range.contains(&at));
                prop_assert_eq!(reported, !equal, "byte {}", at);
            }
        }
    }

    #[test]
    fn errors_in_a_list_are_passed_on() {
        let broken = vec![Err(io::Error::other("gone"))];
        assert!(differing(broken, 1, segments(&[ExtentLocation::Zeros]), 1).is_err());
        assert!(differing(Vec::new(), 1, segments(&[ExtentLocation::Zeros]), 1).is_err());
    }
}
