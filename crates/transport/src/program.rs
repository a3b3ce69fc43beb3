//! The program as it is pushed: read, hashed and packed once for all connections of a run.

use evenkeel_op::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// It is pushed in pieces of this size.
const PIECE: usize = 64 << 10;

pub(crate) struct Program {
    bytes: Arc<Vec<u8>>,
    hash: String,
    packed: Mutex<Packed>,
}

enum Packed {
    /// While ssh is on its way.
    Packing(Option<JoinHandle<io::Result<Vec<u8>>>>),
    Done(Arc<Vec<u8>>),
}

impl Program {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).context(|| format!("failed to read {}", path.display()))?;
        let bytes = Arc::new(bytes);
        let raw = bytes.clone();
        let packing = std::thread::spawn(move || {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            gzip.write_all(&raw)?;
            gzip.finish()
        });
        let hash = Sha256::digest(bytes.as_slice());
        let hash = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self {
            bytes,
            hash,
            packed: Mutex::new(Packed::Packing(Some(packing))),
        })
    }

    /// Returns its SHA-256 in hexadecimal digits.
    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }

    /// Returns its length in bytes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Writes it, packed after a line with the packed length, or as it is. Says so after each piece.
    /// Returns how many bytes that took.
    pub(crate) fn push(
        &self,
        packed: bool,
        to: &mut impl Write,
        went_on: &dyn Fn(),
    ) -> io::Result<u64> {
        let bytes = match packed {
            true => self.packed()?,
            false => self.bytes.clone(),
        };
        if packed {
            writeln!(to, "{}", bytes.len())?;
        }
        for piece in bytes.chunks(PIECE) {
            went_on();
            to.write_all(piece)?;
        }
        to.flush()?;
        Ok(bytes.len() as u64)
    }

    fn packed(&self) -> io::Result<Arc<Vec<u8>>> {
        let mut packed = self.packed.lock().unwrap_or_else(|e| e.into_inner());
        if let Packed::Packing(thread) = &mut *packed {
            let done = thread.take().and_then(|thread| thread.join().ok());
            let bytes = done.ok_or_else(|| io::Error::other("it could not be packed"))??;
            *packed = Packed::Done(Arc::new(bytes));
        }
        match &*packed {
            Packed::Done(bytes) => Ok(bytes.clone()),
            Packed::Packing(_) => Err(io::Error::other("it could not be packed")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn what_is_packed_is_unpacked_by_gzip_any_number_of_times() {
        let bytes: Vec<u8> = (0..1_000_000_u32).map(|n| (n / 7) as u8).collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, &bytes).unwrap();
        let program = Program::read(file.path()).unwrap();
        assert_eq!(program.size(), bytes.len());
        for _ in 0..2 {
            let mut pushed = Vec::new();
            let length = program.push(true, &mut pushed, &|| ()).unwrap() as usize;
            let packed = pushed.strip_prefix(format!("{length}\n").as_bytes());
            let packed = packed.unwrap();
            assert_eq!(packed.len(), length);
            let mut gzip = Command::new("gzip")
                .arg("-dc")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut stdin = gzip.stdin.take().unwrap();
            let packed = packed.to_vec();
            let writing = std::thread::spawn(move || stdin.write_all(&packed).unwrap());
            let unpacked = gzip.wait_with_output().unwrap().stdout;
            writing.join().unwrap();
            assert!(unpacked == bytes);
        }
        let mut plain = Vec::new();
        program.push(false, &mut plain, &|| ()).unwrap();
        assert!(plain == bytes);
    }
}
