//! One file of rows: hashed as it comes, packed, counted.

use super::manifest::ChunkEntry;
use super::output::Output;
use super::place::Sink;
use evenkeel_op::{Context, Error, Result};
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::io::{self, Read, Write};
use std::str::FromStr;

/// The level of zstd when none is given: the fastest that still packs well.
const ZSTD_LEVEL: i32 = 1;
/// The level of gzip when none is given.
const GZIP_LEVEL: u32 = 6;

/// How files are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// Gzip at a level from 1 to 9.
    Gzip(u32),
    /// Zstandard at a level from 1 to 19.
    Zstd(i32),
}

impl Default for Compression {
    fn default() -> Self {
        Self::Zstd(ZSTD_LEVEL)
    }
}

impl Compression {
    /// Returns the name that the manifest gives it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip(_) => "gzip",
            Self::Zstd(_) => "zstd",
        }
    }

    /// Returns how files' names end.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip(_) => ".gz",
            Self::Zstd(_) => ".zst",
        }
    }
}

impl Compression {
    /// Unpacks a file.
    pub(super) fn reader(self, file: impl Read + 'static) -> io::Result<Box<dyn Read>> {
        Ok(match self {
            Self::None => Box::new(file),
            Self::Gzip(_) => Box::new(MultiGzDecoder::new(file)),
            Self::Zstd(_) => Box::new(zstd::Decoder::new(file)?),
        })
    }
}

impl FromStr for Compression {
    type Err = Error;

    /// Reads `none`, `gzip`, `zstd`, `gzip:9`, `zstd:3`.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!("'{text}' is not a compression"))
                .hint("use none, gzip or zstd, with a level if you like: zstd:3")
        };
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level.parse::<u32>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        match (name, level) {
            ("none", None) => Ok(Self::None),
            ("gzip", None) => Ok(Self::Gzip(GZIP_LEVEL)),
            ("gzip", Some(level @ 1..=9)) => Ok(Self::Gzip(level)),
            ("zstd", None) => Ok(Self::Zstd(ZSTD_LEVEL)),
            ("zstd", Some(level @ 1..=19)) => Ok(Self::Zstd(level as i32)),
            _ => Err(wrong()),
        }
    }
}

/// What packs.
enum Packer {
    None(Sink),
    Gzip(GzEncoder<Sink>),
    Zstd(zstd::Encoder<'static, Sink>),
}

impl Packer {
    fn new(file: Sink, compression: Compression) -> io::Result<Self> {
        Ok(match compression {
            Compression::None => Self::None(file),
            Compression::Gzip(level) => {
                Self::Gzip(GzEncoder::new(file, flate2::Compression::new(level)))
            }
            Compression::Zstd(level) => {
                let mut encoder = zstd::Encoder::new(file, level)?;
                encoder.include_checksum(true)?;
                Self::Zstd(encoder)
            }
        })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::None(file) => file.write_all(bytes),
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
        }
    }

    fn finish(self) -> io::Result<Sink> {
        match self {
            Self::None(file) => Ok(file),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

/// A file of rows that is being written.
pub(super) struct ChunkFile {
    name: String,
    /// The same for people.
    shown: String,
    packer: Packer,
    hasher: blake3::Hasher,
    bytes: u64,
    pub(super) rows: u64,
}

impl ChunkFile {
    /// Begins the file `name` of a dump.
    pub(super) fn create(output: &Output, name: String, compression: Compression) -> Result<Self> {
        let packer = output
            .create(&name)
            .and_then(|sink| Packer::new(sink, compression))
            .context(|| format!("failed to write {}", output.shown(&name)))?;
        Ok(Self {
            shown: output.shown(&name),
            name,
            packer,
            hasher: blake3::Hasher::new(),
            bytes: 0,
            rows: 0,
        })
    }

    /// Adds bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        self.packer
            .write(bytes)
            .context(|| format!("failed to write {}", self.shown))
    }

    /// Returns how many bytes were added.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Ends the file.
    pub(super) fn finish(self, range: Option<String>) -> Result<ChunkEntry> {
        let failed = || format!("failed to write {}", self.shown);
        let sink = self.packer.finish().context(failed)?;
        let bytes_stored = sink.finish().context(failed)?;
        Ok(ChunkEntry {
            file: self.name,
            rows: self.rows,
            bytes: self.bytes,
            bytes_stored,
            blake3: self.hasher.finalize().to_hex().to_string(),
            range,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_testkit::Scratch;

    #[test]
    fn compressions_are_read() {
        for (text, compression) in [
            ("none", Compression::None),
            ("gzip", Compression::Gzip(6)),
            ("gzip:9", Compression::Gzip(9)),
            ("zstd", Compression::Zstd(1)),
            ("zstd:19", Compression::Zstd(19)),
        ] {
            assert_eq!(text.parse::<Compression>().unwrap(), compression);
        }
        for text in ["", "lz4", "none:1", "gzip:10", "zstd:0", "zstd:x"] {
            assert!(text.parse::<Compression>().is_err(), "{text}");
        }
    }

    #[test]
    fn files_hold_what_was_written() {
        let scratch = Scratch::new();
        let place = scratch.join("d").into();
        let output = Output::begin(&place, crate::dump::Leftover::Refuse).unwrap();
        let text: Vec<u8> = (0..300_000u32).map(|n| (n / 7) as u8).collect();
        for compression in [
            Compression::None,
            Compression::Gzip(1),
            Compression::Zstd(3),
        ] {
            let name = format!("t{}", compression.suffix());
            let mut file = ChunkFile::create(&output, name.clone(), compression).unwrap();
            for piece in text.chunks(70_000) {
                file.write(piece).unwrap();
            }
            let entry = file.finish(None).unwrap();
            let stored = std::fs::read(scratch.join("d").join(&name)).unwrap();
            assert_eq!(entry.bytes_stored, stored.len() as u64);
            assert_eq!(entry.bytes, text.len() as u64);
            assert_eq!(entry.blake3, blake3::hash(&text).to_hex().to_string());
            let mut back = Vec::new();
            match compression {
                Compression::None => back = stored,
                Compression::Gzip(_) => {
                    let mut decoder = flate2::read::GzDecoder::new(&stored[..]);
                    decoder.read_to_end(&mut back).unwrap();
                }
                Compression::Zstd(_) => back = zstd::decode_all(&stored[..]).unwrap(),
            }
            assert!(back == text, "{compression:?}");
        }
    }
}
