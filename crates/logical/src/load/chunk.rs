//! A file of rows, unpacked and hashed on its way to the server.

use super::csv::Lines;
use super::source::{Chunk, Packing, Shape};
use evenkeel_op::{Error, Result};
use flate2::read::MultiGzDecoder;
use std::io::{self, Read};

/// Reads a chunk. What cannot be read is an early end, which [`ChunkReader::verdict`] tells: the
/// server takes what came, and the transaction is rolled back in good order.
pub(super) struct ChunkReader<'a> {
    chunk: &'a Chunk,
    from: Rows<'a>,
    ended: bool,
    failure: Option<io::Error>,
}

/// The file's own bytes, unpacked.
struct Raw {
    from: Box<dyn Read>,
    hasher: blake3::Hasher,
    bytes: u64,
}

/// Tab-separated lines, or statements.
enum Rows<'a> {
    Raw(Raw),
    Csv(Lines<'a, Raw>),
}

impl<'a> ChunkReader<'a> {
    /// Opens the file.
    pub(super) fn open(chunk: &'a Chunk) -> Result<Self> {
        let unpacked = |file: Box<dyn Read>| -> io::Result<Box<dyn Read>> {
            Ok(match chunk.packing {
                Packing::None => Box::new(file),
                Packing::Gzip => Box::new(MultiGzDecoder::new(file)),
                Packing::Zstd => Box::new(zstd::Decoder::new(file)?),
            })
        };
        let place = &chunk.place;
        let from = place
            .open(&chunk.path)
            .and_then(unpacked)
            .map_err(|error| damaged(chunk, "it cannot be read").because(error))?;
        let raw = Raw {
            from,
            hasher: blake3::Hasher::new(),
            bytes: 0,
        };
        Ok(Self {
            chunk,
            from: match &chunk.shape {
                Shape::Csv(csv) => Rows::Csv(Lines::new(raw, csv)),
                _ => Rows::Raw(raw),
            },
            ended: false,
            failure: None,
        })
    }

    /// Returns whether all was read that there is, so that there is a verdict.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Says whether what was read is what was written, and returns the hash of it.
    ///
    /// Errors: `Failed`, with the file's name.
    pub(super) fn verdict(self) -> Result<String> {
        let chunk = self.chunk;
        if let Some(error) = self.failure {
            return Err(damaged(chunk, "it cannot be read").because(error));
        }
        let raw = match self.from {
            Rows::Raw(raw) => raw,
            Rows::Csv(lines) => lines.into_inner(),
        };
        if let Some(bytes) = chunk.bytes.filter(|bytes| *bytes != raw.bytes) {
            let text = format!("it holds {} bytes instead of {bytes}", raw.bytes);
            return Err(damaged(chunk, &text));
        }
        let hash = raw.hasher.finalize().to_hex().to_string();
        match &chunk.blake3 {
            Some(written) if *written != hash => {
                Err(damaged(chunk, "its bytes are not those that were dumped"))
            }
            _ => Ok(hash),
        }
    }
}

/// Reads a chunk to its end, says whether it is what was written, and returns the hash of it.
pub(super) fn check(chunk: &Chunk) -> Result<String> {
    let mut reader = ChunkReader::open(chunk)?;
    let _ = io::copy(&mut reader, &mut io::sink());
    reader.verdict()
}

fn damaged(chunk: &Chunk, how: &str) -> Error {
    Error::failed(format!("{} is damaged: {how}", chunk.path.display())).hint(
        "nothing of this file was loaded: restore the file from a copy and run the same \
         command again, which resumes here",
    )
}

impl Read for Raw {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        self.hasher.update(&into[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

impl Read for ChunkReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.ended {
            return Ok(0);
        }
        loop {
            let read = match &mut self.from {
                Rows::Raw(raw) => raw.read(into),
                Rows::Csv(lines) => lines.read(into),
            };
            match read {
                Ok(0) => {
                    self.ended = true;
                    return Ok(0);
                }
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failure = Some(error);
                    self.ended = true;
                    return Ok(0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_testkit::Scratch;
    use std::path::Path;

    fn chunk(path: &Path, bytes: &[u8]) -> Chunk {
        Chunk {
            number: 1,
            path: path.to_owned(),
            place: path.into(),
            rows: Some(1),
            bytes: Some(bytes.len() as u64),
            bytes_stored: 0,
            blake3: Some(blake3::hash(bytes).to_hex().to_string()),
            packing: Packing::Zstd,
            shape: Shape::Tab,
        }
    }

    #[test]
    fn what_is_not_what_was_written_is_reported() {
        let scratch = Scratch::new();
        let rows = b"1\tx\n".repeat(50_000);
        let packed = zstd::encode_all(&rows[..], 1).unwrap();
        let path = scratch.join("c.tsv.zst");
        let one = chunk(&path, &rows);
        std::fs::write(&path, &packed).unwrap();
        check(&one).unwrap();
        let mut flipped = packed.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 1;
        let mut other = rows.clone();
        other[7] ^= 1;
        let wrong = [
            flipped,
            packed[..packed.len() - 9].to_vec(),
            zstd::encode_all(&other[..], 1).unwrap(),
            zstd::encode_all(&rows[4..], 1).unwrap(),
            b"no zstd".to_vec(),
        ];
        for (number, bytes) in wrong.iter().enumerate() {
            std::fs::write(&path, bytes).unwrap();
            let error = check(&one).unwrap_err();
            assert!(error.to_string().contains("c.tsv.zst"), "{number}: {error}");
        }
    }
}
