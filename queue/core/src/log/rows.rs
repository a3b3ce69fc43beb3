//! What bodies hold: rows, ranges of row ids, the state of the table.

use crate::error::{Error, Result};

/// Bytes before a row: its length and its checksum, which starts from its id.
pub(crate) const ROW_HEADER: usize = 8;

/// Bytes of the id before a row that has one.
pub(crate) const ROW_ID: usize = 8;

/// Slots for sources, whose repeated rows are dropped.
pub(crate) const SLOTS: usize = 64;

/// Bytes before the rows of a source: slot and id.
pub(crate) const SOURCE: usize = 16;

/// The longest row, in bytes.
pub(crate) const ROW_MAX: u64 = 512 << 20;

fn checksum(id: u64, row: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&id.to_le_bytes()), row)
}

/// Writes a row.
pub(crate) fn put(out: &mut Vec<u8>, id: u64, row: &[u8]) {
    let len = u32::try_from(row.len()).expect("callers keep to ROW_MAX");
    out.extend(len.to_le_bytes());
    out.extend(checksum(id, row).to_le_bytes());
    out.extend(row);
}

/// Splits a row's header.
pub(crate) fn header(bytes: [u8; ROW_HEADER]) -> (u32, u32) {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    (word(0), word(4))
}

/// Whether these are the bytes that were written as that row.
pub(crate) fn is_whole(id: u64, crc: u32, row: &[u8]) -> bool {
    checksum(id, row) == crc
}

/// Where rows start in a body, with their ids; `at` is where the body starts in the file.
pub(crate) fn places(
    body: &[u8],
    at: u64,
    (first, count): (u64, u32),
    with_ids: bool,
    mut each: impl FnMut(u64, u32),
) -> std::result::Result<(), &'static str> {
    const SHORT: &str = "a frame holds fewer rows than it says";
    let mut here = 0;
    for number in 0..u64::from(count) {
        let mut id = first + number;
        if with_ids {
            let bytes = body.get(here..here + 8).ok_or(SHORT)?;
            id = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
            here += 8;
        }
        let head = body.get(here..here + ROW_HEADER).ok_or(SHORT)?;
        let (len, _) = header(head.try_into().expect("eight bytes"));
        let offset = u32::try_from(at + here as u64).map_err(|_| "a file is longer than 4 GiB")?;
        here += ROW_HEADER + len as usize;
        if here > body.len() {
            return Err(SHORT);
        }
        each(id, offset);
    }
    if here == body.len() {
        Ok(())
    } else {
        Err("a frame holds more than its rows")
    }
}

/// Row ids as ranges: (first, how many). The ids are sorted here.
pub(crate) fn ranges(ids: &mut Vec<u64>) -> Vec<(u64, u64)> {
    ids.sort_unstable();
    ids.dedup();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for id in ids {
        match ranges.last_mut() {
            Some((first, count)) if *first + *count == *id => *count += 1,
            _ => ranges.push((*id, 1)),
        }
    }
    ranges
}

/// Writes ranges.
pub(crate) fn put_ranges(out: &mut Vec<u8>, ranges: &[(u64, u64)]) {
    for (first, count) in ranges {
        out.extend(first.to_le_bytes());
        out.extend(count.to_le_bytes());
    }
}

/// Writes numbers of eight bytes.
pub(crate) fn put_numbers(out: &mut Vec<u8>, numbers: &[u64]) {
    numbers
        .iter()
        .for_each(|number| out.extend(number.to_le_bytes()));
}

/// Reads numbers of eight bytes.
pub(crate) fn numbers(body: &[u8]) -> impl Iterator<Item = u64> {
    body.chunks_exact(8)
        .map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
}

/// Bytes of a state.
pub(crate) const STATE: usize = 8 + SLOTS * 8;

/// What is known besides the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableState {
    pub(crate) next: u64,
    pub(crate) sources: [u64; SLOTS],
}

impl TableState {
    pub(crate) fn new() -> Self {
        Self {
            next: 1,
            sources: [0; SLOTS],
        }
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.next.to_le_bytes());
        for source in self.sources {
            out.extend(source.to_le_bytes());
        }
    }

    pub(crate) fn read(body: &[u8]) -> std::result::Result<Self, &'static str> {
        if body.len() != STATE {
            return Err("the state has another length");
        }
        let mut numbers = numbers(body);
        let next = numbers.next().unwrap_or_default();
        let mut sources = [0; SLOTS];
        for (source, number) in sources.iter_mut().zip(numbers) {
            *source = number;
        }
        Ok(Self { next, sources })
    }
}

/// Bytes that rows take in a body.
///
/// # Errors
///
/// A row or all of them are longer than fits.
pub(crate) fn size<'r>(rows: impl IntoIterator<Item = &'r Vec<u8>>) -> Result<u64> {
    let mut sum = SOURCE as u64;
    for row in rows {
        let bytes = row.len() as u64;
        if bytes > ROW_MAX {
            let most = ROW_MAX;
            return Err(Error::TooLarge { bytes, most });
        }
        sum += bytes + ROW_HEADER as u64;
    }
    let most = super::frame::BODY_MAX;
    if sum > most {
        return Err(Error::TooLarge { bytes: sum, most });
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_ranges() {
        let mut ids = vec![9, 3, 4, 5, 7, 4];
        assert_eq!(ranges(&mut ids), [(3, 3), (7, 1), (9, 1)]);
    }

    #[test]
    fn a_row_under_another_id_is_not_whole() {
        let mut out = Vec::new();
        put(&mut out, 5, b"abc");
        let (len, crc) = header(out[..8].try_into().unwrap());
        assert_eq!(len, 3);
        assert!(is_whole(5, crc, b"abc"));
        assert!(!is_whole(6, crc, b"abc"));
        assert!(!is_whole(5, crc, b"abd"));
    }

    #[test]
    fn places_are_where_rows_start_and_nothing_is_left_over() {
        let mut out = Vec::new();
        put(&mut out, 5, b"abc");
        put(&mut out, 6, b"");
        let mut seen = Vec::new();
        places(&out, 100, (5, 2), false, |id, at| seen.push((id, at))).unwrap();
        assert_eq!(seen, [(5, 100), (6, 111)]);
        assert!(places(&out, 100, (5, 1), false, |_, _| {}).is_err());
        assert!(places(&out, 100, (5, 3), false, |_, _| {}).is_err());
    }
}
