//! Which ranges of a thin volume differ between two snapshots: what `thin_delta` says.
//!
//! A pool never gives away a block that a snapshot still refers to. So as long as the earlier snapshot
//! is kept, a block that both map to the same place holds the same bytes, and `thin_delta`, which
//! compares the maps, misses nothing.

use super::tool;
use evenkeel_op::{Context, Error, Result};
use std::ops::Range;

/// More ranges than this are joined with their neighbours: what is read in excess is not stored.
const RANGES_MAX: usize = 1 << 20;
/// Bytes of a sector, the unit of a pool's block size.
const SECTOR: u64 = 512;

/// Asks for the byte ranges in which two thin volumes of a pool may differ: sorted, disjoint. Reads
/// the metadata snapshot that was reserved in the pool whose metadata is on `metadata`.
pub(super) fn between(metadata: &str, base: u64, now: u64) -> Result<Vec<Range<u64>>> {
    let (base, now) = (base.to_string(), now.to_string());
    let args = ["-m", "--snap1", &base, "--snap2", &now, metadata];
    let mut delta = Delta::default();
    tool::each_line("thin_delta", &args, |line| delta.line(line))?;
    delta.finish()
}

/// What was read so far.
#[derive(Debug, Default)]
struct Delta {
    block_bytes: Option<u64>,
    ranges: Vec<Range<u64>>,
    /// Ranges closer to each other than this many bytes are joined.
    gap: u64,
    ended: bool,
}

impl Delta {
    /// Takes one line: one element, or nothing.
    fn line(&mut self, line: &str) -> Result<()> {
        let line = line.trim();
        let name = line
            .trim_start_matches('<')
            .split([' ', '>', '/'])
            .next()
            .unwrap_or_default();
        match name {
            "superblock" => {
                let sectors = attribute(line, "data_block_size")?;
                let bytes = sectors.checked_mul(SECTOR).filter(|bytes| *bytes > 0);
                self.block_bytes = Some(bytes.ok_or_else(|| not_understood(line))?);
                Ok(())
            }
            "different" | "left_only" | "right_only" => self.add(line),
            // An end tag, by its slash; an equal range; what frames them.
            "" | "same" | "diff" | "?xml" => {
                self.ended |= line.starts_with("</superblock");
                Ok(())
            }
            _ => Err(not_understood(line)),
        }
    }

    fn add(&mut self, line: &str) -> Result<()> {
        let range = self.range(line).ok_or_else(|| not_understood(line))?;
        match self.ranges.last_mut() {
            Some(last) if range.start < last.start => return Err(not_understood(line)),
            Some(last) if range.start <= last.end.saturating_add(self.gap) => {
                last.end = last.end.max(range.end);
            }
            _ => self.ranges.push(range),
        }
        if self.ranges.len() > RANGES_MAX {
            self.thin_out(RANGES_MAX);
        }
        Ok(())
    }

    fn range(&self, line: &str) -> Option<Range<u64>> {
        let block = self.block_bytes?;
        let begin = attribute(line, "begin").ok()?.checked_mul(block)?;
        let length = attribute(line, "length").ok()?.checked_mul(block)?;
        Some(begin..begin.checked_add(length)?)
    }

    /// Joins neighbours until at most half of `most` are left.
    fn thin_out(&mut self, most: usize) {
        while self.ranges.len() > most / 2 {
            self.gap = (self.gap * 2).max(self.block_bytes.unwrap_or(1));
            let gap = self.gap;
            let mut joined: Vec<Range<u64>> = Vec::new();
            for range in self.ranges.drain(..) {
                match joined.last_mut() {
                    Some(last) if range.start <= last.end.saturating_add(gap) => {
                        last.end = last.end.max(range.end);
                    }
                    _ => joined.push(range),
                }
            }
            self.ranges = joined;
        }
    }

    fn finish(self) -> Result<Vec<Range<u64>>> {
        if self.ended {
            Ok(self.ranges)
        } else {
            Err(Error::failed(
                "thin_delta ended in the middle of its answer",
            ))
        }
    }
}

fn not_understood(line: &str) -> Error {
    Error::failed(format!("thin_delta says '{line}'"))
}

/// Returns the number in an attribute of an element.
fn attribute(line: &str, name: &str) -> Result<u64> {
    let value = line
        .split([' ', '<', '>', '/'])
        .find_map(|word| word.strip_prefix(name)?.strip_prefix("=\""))
        .and_then(|rest| rest.strip_suffix('"'));
    value
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Error::failed(format!("no {name} in '{line}'")))
        .context(|| "failed to understand thin_delta")
}

/// Returns what of a volume of `size` bytes may differ from a base of `base_size`, given in which
/// ranges their pool says so.
pub(super) fn of_volume(delta: &[Range<u64>], base_size: u64, size: u64) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::with_capacity(delta.len());
    let grown = base_size.min(size)..size;
    let clipped = delta
        .iter()
        .map(|range| range.start..range.end.min(base_size.min(size)));
    for range in clipped
        .chain([grown])
        .filter(|range| range.start < range.end)
    {
        match ranges.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => ranges.push(range),
        }
    }
    ranges
}

#[cfg(test)]
// One range is what is meant, not the numbers in it.
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BLOCK: u64 = 64 << 10;

    fn read(text: &str) -> Result<Vec<Range<u64>>> {
        let mut delta = Delta::default();
        text.lines().try_for_each(|line| delta.line(line))?;
        delta.finish()
    }

    fn document(inside: &str) -> String {
        format!(
            "<superblock uuid=\"\" time=\"1\" transaction=\"2\" data_block_size=\"128\" \
             nr_data_blocks=\"0\">\n  <diff left=\"1\" right=\"2\">\n{inside}  </diff>\n\
             </superblock>\n"
        )
    }

    #[test]
    fn all_but_equal_ranges_are_reported() {
        let text = document(
            "    <same begin=\"0\" length=\"16\"/>\n    <different begin=\"16\" length=\"2\"/>\n\
             <left_only begin=\"18\" length=\"1\"/>\n<right_only begin=\"30\" length=\"1\"/>\n",
        );
        let block = |range: Range<u64>| range.start * BLOCK..range.end * BLOCK;
        assert_eq!(read(&text).unwrap(), [block(16..19), block(30..31)]);
        assert_eq!(read(&document("")).unwrap(), []);
    }

    #[test]
    fn what_is_cut_off_or_strange_is_an_error() {
        let whole = document("    <different begin=\"16\" length=\"2\"/>\n");
        let cut = whole.replace("</superblock>\n", "");
        assert!(read(&cut).is_err());
        assert!(read("").is_err());
        for strange in [
            "<other begin=\"1\" length=\"1\"/>\n",
            "<different begin=\"1\"/>\n",
            "<different begin=\"x\" length=\"1\"/>\n",
            "<different begin=\"18446744073709551615\" length=\"1\"/>\n",
        ] {
            assert!(read(&document(strange)).is_err(), "{strange}");
        }
        // No block size before the first range.
        assert!(read("<different begin=\"1\" length=\"1\"/>\n</superblock>\n").is_err());
    }

    #[test]
    fn a_volume_that_grew_has_changed_where_it_grew() {
        assert_eq!(of_volume(&[0..10, 90..110], 100, 120), [0..10, 90..120]);
        assert_eq!(of_volume(&[0..10, 90..110], 100, 95), [0..10, 90..95]);
        assert_eq!(of_volume(&[], 100, 100), []);
    }

    proptest! {
        #[test]
        fn thinned_out_ranges_cover_what_they_covered(
            steps in proptest::collection::vec((1u64..40, 1u64..9), 1..400), most in 2usize..64,
        ) {
            let (mut at, mut exact) = (0, Vec::new());
            for (gap, length) in steps {
                at += gap;
                exact.push(at..at + length);
                at += length;
            }
            let mut delta = Delta { ranges: exact.clone(), ..Delta::default() };
            delta.thin_out(most);
            prop_assert!(delta.ranges.len() <= most / 2);
            for pair in delta.ranges.windows(2) {
                prop_assert!(pair[0].end < pair[1].start);
            }
            for range in exact {
                prop_assert!(delta.ranges.iter().any(|r| r.start <= range.start && range.end <= r.end));
            }
        }

        #[test]
        fn any_text_is_read_or_refused(lines in proptest::collection::vec(".{0,60}", 0..6)) {
            let _ = read(&lines.join("\n"));
        }
    }
}
