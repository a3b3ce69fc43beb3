//! Binary logs made by hand.
#![allow(dead_code)] // Each test file uses a part of it.

use evenkeel_binlog::{HEADER, Header, MAGIC, kind};

/// A file that grows event by event.
pub(crate) struct Made {
    pub(crate) bytes: Vec<u8>,
    checksums: bool,
}

impl Made {
    /// Begins a file with its format description.
    pub(crate) fn new(checksums: bool) -> Self {
        let mut made = Self {
            bytes: MAGIC.to_vec(),
            checksums,
        };
        let mut body = vec![4, 0];
        body.extend(b"10.11.99-made");
        body.resize(2 + 50, 0);
        body.extend([0; 4]);
        body.push(HEADER as u8);
        body.extend([0; 40]);
        body.push(u8::from(checksums));
        made.event(kind::FORMAT_DESCRIPTION, &body);
        made
    }

    /// Adds an event and returns the position after it.
    pub(crate) fn event(&mut self, kind: u8, body: &[u8]) -> u64 {
        let summed = self.checksums || kind == kind::FORMAT_DESCRIPTION;
        let length = HEADER + body.len() + if summed { 4 } else { 0 };
        let header = Header {
            time: 1000 + self.bytes.len() as u32,
            kind,
            server: 7,
            length: length as u32,
            next: (self.bytes.len() + length) as u32,
            flags: 0,
        };
        let event = [&header.bytes(), body].concat();
        self.bytes.extend(&event);
        if summed {
            self.bytes.extend(crc32fast::hash(&event).to_le_bytes());
        }
        self.bytes.len() as u64
    }

    /// Adds a statement.
    pub(crate) fn query(&mut self, text: &str) -> u64 {
        let body = [
            &[0; 8][..],
            &[1, 0, 0, 2, 0],
            &[9, 9],
            b"s\0",
            text.as_bytes(),
        ]
        .concat();
        self.event(kind::QUERY, &body)
    }

    /// Adds MariaDB's GTID `0-7-sequence`.
    pub(crate) fn gtid(&mut self, sequence: u64, alone: bool) -> u64 {
        let body = [
            &sequence.to_le_bytes()[..],
            &[0; 4],
            &[u8::from(alone)],
            &[0; 6],
        ]
        .concat();
        self.event(kind::MARIADB_GTID, &body)
    }
}
