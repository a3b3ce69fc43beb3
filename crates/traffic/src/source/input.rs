//! The bytes of a file, decompressed where it is compressed, and what kind of file it is.

use super::{general_log, slow_log};
use crate::capture;
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Error, Result};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};
use std::path::Path;

/// How much of a file is looked at to say what it is.
pub(super) const LOOK: usize = 64 << 10;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Whether a file with these first bytes is compressed.
pub(super) fn is_compressed(first: &[u8]) -> bool {
    first.starts_with(&GZIP) || first.starts_with(&ZSTD)
}

/// What a file of statements is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
    /// The slow query log.
    SlowLog,
    /// The general query log.
    GeneralLog,
    /// Captured packets, in pcap or pcapng.
    Packets,
}

impl InputKind {
    /// Returns its name in answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SlowLog => "slow-log",
            Self::GeneralLog => "general-log",
            Self::Packets => "packets",
        }
    }

    /// Returns what a file is whose first bytes are these; `None` for what is none of them. A log without an entry is
    /// a slow log: both are empty then.
    #[must_use]
    pub fn of(first: &[u8]) -> Option<Self> {
        Self::of_entries(first).or_else(|| Self::of_banner(first))
    }

    /// Returns what a file is in whose first bytes packets or entries begin.
    pub(super) fn of_entries(first: &[u8]) -> Option<Self> {
        if capture::is_begun_by(first) {
            return Some(Self::Packets);
        }
        let mut lines = first.split(|byte| *byte == b'\n');
        lines.find_map(|line| match line {
            line if slow_log::begins_entry(line) => Some(Self::SlowLog),
            line if general_log::begins_entry(line) => Some(Self::GeneralLog),
            _ => None,
        })
    }

    fn of_banner(first: &[u8]) -> Option<Self> {
        let is_banner = |line: &[u8]| line.trim_ascii().is_empty() || super::is_banner(line);
        let mut lines = first.split(|byte| *byte == b'\n');
        lines.all(is_banner).then_some(Self::SlowLog)
    }
}

/// An opened file of statements.
pub struct Input {
    /// What it is called in messages.
    pub name: String,
    /// Its bytes, unpacked.
    pub bytes: Box<dyn BufRead + Send>,
    /// What it is, from its first bytes.
    pub kind: Option<InputKind>,
}

impl Input {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// `Usage` when nothing is there, or a directory; `Failed` when it cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |error| unreadable("log file", path, error);
        let file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        Self::of(path.display().to_string(), file)
    }

    /// Takes bytes that come from elsewhere.
    ///
    /// # Errors
    ///
    /// `Failed` when they cannot be read or unpacked.
    pub fn of(name: impl Into<String>, from: impl Read + Send + 'static) -> Result<Self> {
        let name = name.into();
        let failed = |error| Error::failed(format!("failed to read {name}")).because(error);
        let is_known = |first: &[u8]| first.len() >= ZSTD.len();
        let (packed, first) = ahead(from, is_known).map_err(failed)?;
        let unpacked: Box<dyn Read + Send> = if first.starts_with(&GZIP) {
            Box::new(MultiGzDecoder::new(packed))
        } else if first.starts_with(&ZSTD) {
            Box::new(zstd::Decoder::new(packed).map_err(failed)?)
        } else {
            Box::new(packed)
        };
        // What comes as it happens is not waited for once it is clear what it is.
        let is_known = |first: &[u8]| {
            let ended = memchr::memrchr(b'\n', first).unwrap_or(0);
            capture::is_begun_by(first) || InputKind::of_entries(&first[..ended]).is_some()
        };
        let (bytes, first) = ahead(unpacked, is_known).map_err(failed)?;
        Ok(Self {
            kind: InputKind::of(&first),
            bytes: Box::new(BufReader::with_capacity(LOOK, bytes)),
            name,
        })
    }
}

/// What was read ahead, then the rest.
type Again<R> = Chain<Cursor<Vec<u8>>, Resumed<R>>;

/// The rest of what was read ahead, which may begin with a failure.
struct Resumed<R> {
    failure: Option<io::Error>,
    from: R,
}

impl<R: Read> Read for Resumed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.from.read(buffer),
        }
    }
}

/// Reads the first bytes until they are enough, and returns them also as what should be read next.
fn ahead<R: Read>(
    mut from: R,
    is_enough: impl Fn(&[u8]) -> bool,
) -> io::Result<(Again<R>, Vec<u8>)> {
    let (mut first, mut length, mut failure) = (vec![0; LOOK], 0, None);
    while length < LOOK && !is_enough(&first[..length]) {
        match from.read(&mut first[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if length == 0 => return Err(error),
            // What was read until then is of use.
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    first.truncate(length);
    let rest = Resumed { failure, from };
    Ok((Cursor::new(first.clone()).chain(rest), first))
}
