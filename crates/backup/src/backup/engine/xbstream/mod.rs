//! Reads xbstream, the format in which mariadb-backup and xtrabackup send many files through one
//! pipe. All numbers are little-endian:
//!
//! ```text
//!  0 magic "XBSTCK01"          8
//!  8 flags                     1   1: a reader that does not know the type may pass over it
//!  9 type                      1   P bytes, S see below, E the file ends
//! 10 path length               4
//! 14 path
//!    of xtrabackup's S: entries of its map  4
//!    of P and xtrabackup's S:
//!    payload length            8
//!    offset in the file        8
//!    crc32                     4   as zlib's; of the map and the payload
//!    of xtrabackup's S: per entry: bytes of hole 4, bytes of payload after it 4
//!    payload
//!    of mariadb-backup's S: offset in the file at which it continues  8
//! ```
//!
//! S means bytes with holes to the one, and a step back to the other: when Aria begins a new log while the
//! tool copies, it writes into the header of the one before.
//!
//! Chunks of different files take turns. Nothing marks the end of a stream, so that it is whole
//! shows only from every file's E; and since nothing here is worth guessing, everything unusual is
//! an error.

use evenkeel_op::{Context, Error, Result};
use evenkeel_server::abilities::HotCopyTool;
use std::collections::{HashMap, HashSet};
use std::io::{ErrorKind, Read};

const MAGIC: &[u8; 8] = b"XBSTCK01";
/// Magic, flags, type, path length.
const HEAD: usize = 14;
/// The longest path that the tools write is 512 bytes.
const PATH_MAX: u32 = 4096;
/// Entries of a hole map: the tools send at most 10 MiB in one chunk, of pages of at least 1 KiB.
const MAP_MAX: u32 = 1 << 16;
/// The longest hole: what is not needed of one page, which has at most 64 KiB.
const HOLE_MAX: u64 = 1 << 20;
/// Payload is handed on in pieces of at most so many bytes.
pub(super) const PIECE: usize = 256 << 10;
/// Files that are open at once. The tools have as many as they have threads, and their logs.
const OPEN_MAX: usize = 1024;

/// The longest change to what was sent already. Seven bytes are what there is of it.
const CHANGE_MAX: u64 = 4096;

/// Takes the files of a stream. After an error nothing more is given.
pub(super) trait Sink {
    /// More bytes of a file follow the ones before; its first call begins the file.
    fn data(&mut self, path: &str, bytes: &[u8]) -> Result<()>;
    /// So many bytes of a file are not allocated.
    fn hole(&mut self, path: &str, bytes: u64) -> Result<()>;
    /// Bytes of a file that were given before are these, from `offset` on.
    fn change(&mut self, path: &str, offset: u64, bytes: &[u8]) -> Result<()>;
    /// A file is whole, and so many bytes long.
    fn end(&mut self, path: &str, size: u64) -> Result<()>;
    /// Called before each piece is read: a place to wait.
    fn turn(&mut self) -> Result<()>;
}

/// What a stream consisted of.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) files: u64,
    pub(super) payload_bytes: u64,
}

/// Reads a stream to its end and hands everything on. An error if it is damaged or ends early; what
/// was handed on before is then worth nothing.
pub(super) fn read(input: impl Read, maker: HotCopyTool, sink: &mut impl Sink) -> Result<Totals> {
    let mut reader = Reader {
        input,
        maker,
        at: 0,
        open: HashMap::new(),
        ended: HashSet::new(),
        piece: Vec::new(),
        totals: Totals::default(),
    };
    while reader.chunk(sink)? {}
    match reader.open.keys().min() {
        None => Ok(reader.totals),
        Some(path) => Err(Error::failed(format!(
            "the stream ends before '{path}' is complete; {} files are incomplete in total",
            reader.open.len()
        ))),
    }
}

struct Reader<R> {
    input: R,
    maker: HotCopyTool,
    /// Bytes read so far.
    at: u64,
    /// Of each unfinished file.
    open: HashMap<String, FileProgress>,
    ended: HashSet<String>,
    piece: Vec<u8>,
    totals: Totals,
}

/// How far a file is.
#[derive(Debug, Clone, Copy, Default)]
struct FileProgress {
    /// Where its next byte belongs.
    next: u64,
    /// How long it is.
    end: u64,
}

/// One entry of a hole map.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    hole: u64,
    data: u64,
}

impl<R: Read> Reader<R> {
    /// Reads one chunk; false at the end of the stream.
    fn chunk<S: Sink>(&mut self, sink: &mut S) -> Result<bool> {
        let mut head = [0; HEAD];
        sink.turn()?;
        if !self.fill_or_end(&mut head)? {
            return Ok(false);
        }
        if head[..8] != *MAGIC {
            return Err(self.damaged("there is no chunk where one should begin"));
        }
        let kind = head[9];
        let path = self.path(u32_at(&head, 10))?;
        if self.ended.contains(&path) {
            return Err(self.damaged(&format!("'{path}' continues after its end")));
        }
        match kind {
            b'S' if self.maker == HotCopyTool::MariaDbBackup => self.step(path)?,
            b'P' | b'S' => self.payload(kind == b'S', path, sink)?,
            b'E' => {
                let place = self.open.remove(&path).unwrap_or_default();
                sink.end(&path, place.end)?;
                self.totals.files += 1;
                self.ended.insert(path);
            }
            other => {
                let shown = char::from(other).escape_default();
                return Err(self.damaged(&format!("there is no chunk type '{shown}'")));
            }
        }
        Ok(true)
    }

    fn path(&mut self, length: u32) -> Result<String> {
        if length == 0 || length > PATH_MAX {
            return Err(self.damaged(&format!("a path is {length} bytes long")));
        }
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes)?;
        // Servers write names outside of ASCII as @0024.
        let path = String::from_utf8(bytes);
        let path = path.map_err(|_| self.damaged("a path is not text"))?;
        let path = path.strip_prefix("./").unwrap_or(&path).to_owned();
        let leads_out = |part: &str| matches!(part, "" | "." | "..") || part.contains('\0');
        if path.split('/').any(leads_out) {
            return Err(self.damaged(&format!("'{path}' is not a path below a data directory")));
        }
        Ok(path)
    }

    fn payload<S: Sink>(&mut self, sparse: bool, path: String, sink: &mut S) -> Result<()> {
        let entries = match sparse {
            true => self.number::<4>()?,
            false => 0,
        };
        let length = self.number::<8>()?;
        let offset = self.number::<8>()?;
        let wanted_crc = self.number::<4>()?;
        if entries > u64::from(MAP_MAX) {
            return Err(self.damaged(&format!("a map has {entries} entries")));
        }
        let mut crc = crc32fast::Hasher::new();
        let map = match sparse {
            true => self.map(entries, &mut crc)?,
            false => vec![Stretch {
                hole: 0,
                data: length,
            }],
        };
        let mapped: u64 = map.iter().map(|stretch| stretch.data).sum();
        let holes: u64 = map.iter().map(|stretch| stretch.hole).sum();
        if mapped != length {
            return Err(self.damaged(&format!(
                "the map of '{path}' covers {mapped} bytes, but its payload has {length}"
            )));
        }
        if let Some(stretch) = map.iter().find(|stretch| stretch.hole > HOLE_MAX) {
            let hole = stretch.hole;
            return Err(self.damaged(&format!("'{path}' has a hole of {hole} bytes")));
        }
        let FileProgress { next, end } = self.open.get(&path).copied().unwrap_or_default();
        if offset != next {
            return Err(self.damaged(&format!(
                "'{path}' continues at byte {offset}, but ended at byte {next}"
            )));
        }
        if next < end {
            let place = FileProgress { next, end };
            return self.change(path, place, length, wanted_crc, sink);
        }
        let end = offset
            .checked_add(length)
            .and_then(|end| end.checked_add(holes))
            .ok_or_else(|| self.damaged(&format!("'{path}' is too long")))?;
        for stretch in map {
            if stretch.hole > 0 {
                sink.hole(&path, stretch.hole)?;
            }
            self.hand_on(&path, stretch.data, &mut crc, sink)?;
        }
        if u64::from(crc.finalize()) != wanted_crc {
            return Err(self.damaged(&format!("a checksum of '{path}' is wrong")));
        }
        self.totals.payload_bytes += length;
        self.keep(path, FileProgress { next: end, end })
    }

    fn keep(&mut self, path: String, place: FileProgress) -> Result<()> {
        if self.open.insert(path, place).is_none() && self.open.len() > OPEN_MAX {
            return Err(self.damaged(&format!("{OPEN_MAX} files are open at once")));
        }
        Ok(())
    }

    /// Reads where a file continues: within what was given of it.
    fn step(&mut self, path: String) -> Result<()> {
        let next = self.number::<8>()?;
        let end = self.open.get(&path).copied().unwrap_or_default().end;
        if next > end {
            return Err(self.damaged(&format!(
                "'{path}' continues at byte {next}, but its last byte was {end}"
            )));
        }
        self.keep(path, FileProgress { next, end })
    }

    /// Reads bytes that take the place of others.
    fn change<S: Sink>(
        &mut self,
        path: String,
        FileProgress { next, end }: FileProgress,
        length: u64,
        wanted_crc: u64,
        sink: &mut S,
    ) -> Result<()> {
        if length > CHANGE_MAX || next + length > end {
            return Err(self.damaged(&format!(
                "{length} bytes of '{path}' are repeated, from byte {next} of {end}"
            )));
        }
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes)?;
        if u64::from(crc32fast::hash(&bytes)) != wanted_crc {
            return Err(self.damaged(&format!("a checksum of '{path}' is wrong")));
        }
        sink.change(&path, next, &bytes)?;
        self.totals.payload_bytes += length;
        let next = next + length;
        self.keep(path, FileProgress { next, end })
    }

    fn map(&mut self, entries: u64, crc: &mut crc32fast::Hasher) -> Result<Vec<Stretch>> {
        let mut bytes = vec![0; entries as usize * 8];
        self.fill(&mut bytes)?;
        crc.update(&bytes);
        let entry = |bytes: &[u8]| Stretch {
            hole: u64::from(u32_at(bytes, 0)),
            data: u64::from(u32_at(bytes, 4)),
        };
        Ok(bytes.chunks_exact(8).map(entry).collect())
    }

    fn hand_on<S: Sink>(
        &mut self,
        path: &str,
        mut left: u64,
        crc: &mut crc32fast::Hasher,
        sink: &mut S,
    ) -> Result<()> {
        let mut piece = std::mem::take(&mut self.piece);
        let wanted = left.min(PIECE as u64) as usize;
        if piece.len() < wanted {
            piece.resize(wanted, 0);
        }
        let mut result = Ok(());
        while left > 0 && result.is_ok() {
            let part = &mut piece[..left.min(PIECE as u64) as usize];
            left -= part.len() as u64;
            result = sink.turn().and_then(|()| self.fill(part)).and_then(|()| {
                crc.update(part);
                sink.data(path, part)
            });
        }
        self.piece = piece;
        result
    }

    /// Reads a number of N bytes.
    fn number<const N: usize>(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes[..N])?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<()> {
        if self.fill_or_end(buffer)? || buffer.is_empty() {
            return Ok(());
        }
        Err(self.damaged("it ends in the middle of a chunk"))
    }

    /// Fills the buffer; false when the stream ends before its first byte.
    fn fill_or_end(&mut self, buffer: &mut [u8]) -> Result<bool> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.input.read(&mut buffer[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => return Err(self.damaged("it ends in the middle of a chunk")),
                Ok(n) => {
                    filled += n;
                    self.at += n as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context(|| "failed to read the stream"),
            }
        }
        Ok(filled > 0)
    }

    fn damaged(&self, what: &str) -> Error {
        Error::failed(format!(
            "the stream is damaged before byte {}: {what}",
            self.at
        ))
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests;
