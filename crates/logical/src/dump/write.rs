//! One file of rows: hashed as it comes, packed, counted.

use super::compression::Compression;
use super::location::Sink;
use super::manifest::ChunkEntry;
use super::output::Output;
use evenkeel_op::{Context, Result};
use flate2::write::GzEncoder;
use std::io::{self, Write};

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
    use std::io::Read;

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
