//! Comma-separated rows of `dump` as the tab-separated ones that everything else here reads.

use std::io::{self, Read};

/// How much is read at a time, in bytes.
const READ: usize = 1 << 17;

/// What a file of comma-separated rows is like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Csv {
    /// For each column, whether it is written as hexadecimal digits.
    pub(super) hex: Vec<bool>,
    /// Whether the first line has the columns' names.
    pub(super) header: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellState {
    /// At the beginning of a cell.
    Begin,
    Bare,
    Quoted,
    /// Behind a quote in a quoted cell: its end, or one half of a quote.
    Quote,
}

/// Reads such a file.
pub(super) struct Lines<'a, R> {
    from: R,
    csv: &'a Csv,
    place: CellState,
    column: usize,
    in_header: bool,
    /// The bare cell so far.
    bare: Vec<u8>,
    read: Vec<u8>,
    out: Vec<u8>,
    /// Of `out`.
    taken: usize,
}

impl<'a, R: Read> Lines<'a, R> {
    pub(super) fn new(from: R, csv: &'a Csv) -> Self {
        Self {
            from,
            csv,
            place: CellState::Begin,
            column: 0,
            in_header: csv.header,
            bare: Vec::new(),
            read: vec![0; READ],
            out: Vec::new(),
            taken: 0,
        }
    }

    /// Returns what it reads from.
    pub(super) fn into_inner(self) -> R {
        self.from
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes {
            match (self.place, *byte) {
                (CellState::Begin, b'"') | (CellState::Quote, b'"') => {
                    if self.place == CellState::Quote {
                        self.out.push(b'"');
                    }
                    self.place = CellState::Quoted;
                }
                (CellState::Quoted, b'"') => self.place = CellState::Quote,
                (CellState::Quoted, other) => escaped(other, &mut self.out),
                (_, end @ (b',' | b'\n')) => self.end_cell(end)?,
                (CellState::Begin | CellState::Bare, other) => {
                    self.place = CellState::Bare;
                    self.bare.push(other);
                }
                (CellState::Quote, _) => return Err(wrong("a quote in a cell is not doubled")),
            }
        }
        Ok(())
    }

    fn end_cell(&mut self, end: u8) -> io::Result<()> {
        if self.place != CellState::Quote {
            let is_hex = self.csv.hex.get(self.column).copied().unwrap_or_default();
            let bare = std::mem::take(&mut self.bare);
            match &bare[..] {
                b"NULL" => self.out.extend_from_slice(b"\\N"),
                digits if is_hex => {
                    for pair in digits.chunks(2) {
                        escaped(byte(pair)?, &mut self.out);
                    }
                }
                plain => plain.iter().for_each(|one| escaped(*one, &mut self.out)),
            }
        }
        self.place = CellState::Begin;
        if end == b',' {
            self.out.push(b'\t');
            self.column += 1;
            return Ok(());
        }
        self.column = 0;
        match std::mem::take(&mut self.in_header) {
            true => self.out.clear(),
            false => self.out.push(b'\n'),
        }
        Ok(())
    }
}

impl<R: Read> Read for Lines<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.out.len() || self.in_header {
            if !self.in_header {
                self.out.clear();
                self.taken = 0;
            }
            let mut buffer = std::mem::take(&mut self.read);
            let read = self.from.read(&mut buffer);
            let done = match read {
                Ok(0) if self.place != CellState::Begin || self.column > 0 => {
                    Err(wrong("the file ends within a row"))
                }
                Ok(0) => return Ok(0),
                Ok(read) => self.take(&buffer[..read]),
                Err(error) => Err(error),
            };
            self.read = buffer;
            done?;
        }
        let rest = &self.out[self.taken..];
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        self.taken += length;
        Ok(length)
    }
}

fn escaped(byte: u8, out: &mut Vec<u8>) {
    match byte {
        0 => out.extend_from_slice(b"\\0"),
        b'\t' => out.extend_from_slice(b"\\t"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\\' => out.extend_from_slice(b"\\\\"),
        other => out.push(other),
    }
}

fn byte(pair: &[u8]) -> io::Result<u8> {
    let digits = std::str::from_utf8(pair).ok().filter(|two| two.len() == 2);
    let value = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
    value.ok_or_else(|| wrong("bytes are not written as hexadecimal digits"))
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out a byte at a time.
    struct Drops<'a>(&'a [u8]);

    impl Read for Drops<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let length = self.0.len().min(into.len()).min(1);
            into[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    fn lines(text: &[u8], header: bool) -> io::Result<String> {
        let csv = Csv {
            hex: vec![false, false, true],
            header,
        };
        let (mut whole, mut dropped) = (Vec::new(), Vec::new());
        let read = Lines::new(text, &csv).read_to_end(&mut whole);
        let by_drops = Lines::new(Drops(text), &csv).read_to_end(&mut dropped);
        assert_eq!(read.is_ok(), by_drops.is_ok());
        read?;
        assert_eq!(whole, dropped);
        Ok(String::from_utf8(whole).unwrap())
    }

    #[test]
    fn cells_come_back() {
        let text = b"\"n\",\"a\nb\",\"c\"\n-1,\"NULL\",610A\nNULL,NULL,NULL\n0,\"\",\n1,\"a,\"\"\n\t\\\",00\n";
        let want = "-1\tNULL\ta\\n\n\\N\t\\N\t\\N\n0\t\t\n1\ta,\"\\n\\t\\\\\t\\0\n";
        assert_eq!(lines(text, true).unwrap(), want);
        assert_eq!(lines(b"", false).unwrap(), "");
    }

    #[test]
    fn what_is_cut_or_malformed_is_reported() {
        for text in [
            &b"1,\"a"[..],
            b"1,\"a\"",
            b"1",
            b"1,\"a\"b,00\n",
            b"1,\"a\",0\n",
            b"1,\"a\",xy\n",
        ] {
            assert!(
                lines(text, false).is_err(),
                "{}",
                String::from_utf8_lossy(text)
            );
        }
    }
}
