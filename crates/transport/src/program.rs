//! The program as it is pushed: read and hashed once for all connections of a run, and packed when it is asked for.

use evenkeel_op::Result;
use evenkeel_op::paths::unreadable;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// It is pushed in pieces of this size.
const PIECE: usize = 64 << 10;
/// How hard to pack it: see docs/src/tasks/ssh.md for what other levels cost and save.
const LEVEL: Compression = Compression::fast();

pub(crate) struct Program {
    bytes: Arc<Vec<u8>>,
    hash: String,
    /// Once it was asked for: most runs find it on the other host.
    packed: Mutex<Option<Arc<Vec<u8>>>>,
}

impl Program {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).map_err(|error| unreadable("program", path, error))?;
        let hash = Sha256::digest(bytes.as_slice());
        let hash = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self {
            bytes: Arc::new(bytes),
            hash,
            packed: Mutex::new(None),
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

    /// Returns the processor that it was built for, as `uname -m` says it; empty if that is not known.
    pub(crate) fn machine(&self) -> &'static str {
        machine(&self.bytes)
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
        if let Some(bytes) = &*packed {
            return Ok(bytes.clone());
        }
        let mut gzip = GzEncoder::new(Vec::new(), LEVEL);
        gzip.write_all(&self.bytes)?;
        Ok(packed.insert(Arc::new(gzip.finish()?)).clone())
    }
}

/// Returns what `uname -m` says where an ELF file runs, of the processors that servers have.
fn machine(elf: &[u8]) -> &'static str {
    match elf {
        [0x7f, b'E', b'L', b'F', 2, 1, ..] => match elf.get(18..20) {
            Some([62, 0]) => "x86_64",
            Some([183, 0]) => "aarch64",
            _ => "",
        },
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn what_is_compressed_is_decompressed_by_gzip_any_number_of_times() {
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
