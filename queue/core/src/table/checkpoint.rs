//! The one small file that says which files are the table. It is replaced in one step.

use crate::error::{During, Error, Result};
use crate::io::Io;
use crate::log::Name;
use std::path::Path;

pub(crate) const FILE: &str = "CHECKPOINT";
pub(crate) const NEW: &str = "CHECKPOINT.new";
const MAGIC: [u8; 8] = *b"EVKQCHK\n";
const VERSION: u32 = 1;

/// Which files are the table: the parts, then the segments from one number on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    pub(crate) table: u128,
    pub(crate) generation: u32,
    pub(crate) first_segment: u64,
    /// Parts in the order of their rows, each with its length in bytes.
    pub(crate) parts: Vec<(Name, u64)>,
}

impl Checkpoint {
    fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        out.extend(self.generation.to_le_bytes());
        out.extend(self.table.to_le_bytes());
        out.extend(self.first_segment.to_le_bytes());
        out.extend((self.parts.len() as u64).to_le_bytes());
        for (name, len) in &self.parts {
            if let Name::Part { generation, index } = name {
                out.extend(generation.to_le_bytes());
                out.extend(index.to_le_bytes());
                out.extend(len.to_le_bytes());
            }
        }
        let crc = crc32c::crc32c(&out);
        out.extend(crc.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> std::result::Result<Self, &'static str> {
        const SHORT: &str = "the file ends too early";
        let body = bytes.len().checked_sub(4).ok_or(SHORT)?;
        if bytes[body..] != crc32c::crc32c(&bytes[..body]).to_le_bytes() {
            return Err("the checksum does not match");
        }
        if bytes[..8.min(body)] != MAGIC || body < 48 {
            return Err("this is not a checkpoint of a queue");
        }
        let small = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        let large = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        if small(8) != VERSION {
            return Err("the checkpoint is of an unknown version");
        }
        if large(40) != (body as u64 - 48) / 16 {
            return Err(SHORT);
        }
        let part = |at: usize| {
            let (generation, index) = (small(at), small(at + 4));
            (Name::Part { generation, index }, large(at + 8))
        };
        Ok(Self {
            generation: small(12),
            table: u128::from_le_bytes(bytes[16..32].try_into().expect("sixteen")),
            first_segment: large(32),
            parts: (48..body).step_by(16).map(part).collect(),
        })
    }

    pub(crate) fn write(&self, io: &dyn Io, dir: &Path) -> Result<()> {
        replace(io, dir, NEW, FILE, &self.encode())?;
        prepare(io, dir);
        Ok(())
    }

    pub(crate) fn read(io: &dyn Io, dir: &Path, table: u128) -> Result<Self> {
        let path = dir.join(FILE);
        let read = Self::decode(&read(io, &path)?);
        let this = read.map_err(|what| Error::corrupt(&path, 0, what))?;
        if this.table != table {
            return Err(Error::corrupt(&path, 16, "it belongs to another table"));
        }
        Ok(this)
    }
}

/// Keeps space for the next checkpoint: it is what frees space when the disk is full. Without it the
/// next one is written all the same, if there is space.
pub(crate) fn prepare(io: &dyn Io, dir: &Path) {
    if let Ok(file) = io.create(&dir.join(NEW)) {
        let _ = file.reserve(4096);
    }
}

/// Reads a small file.
pub(crate) fn read(io: &dyn Io, path: &Path) -> Result<Vec<u8>> {
    let file = io.open(path).during("open", path)?;
    let len = file.len().during("measure", path)?;
    if len > 1 << 24 {
        return Err(Error::corrupt(path, 0, "the file is far too long"));
    }
    let mut bytes = vec![0; len as usize];
    file.read_at(&mut bytes, 0).during("read", path)?;
    Ok(bytes)
}

/// Puts a small file in the place of another, in one step that is durable when this returns.
pub(crate) fn replace(io: &dyn Io, dir: &Path, new: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let (from, to) = (dir.join(new), dir.join(name));
    let prepared = io
        .open(&from)
        .ok()
        .filter(|file| matches!(file.is_empty(), Ok(true)));
    let file = match prepared {
        Some(file) => file,
        None => {
            // One that a crash left.
            let _ = io.unlink(&from);
            io.create(&from).during("create", &from)?
        }
    };
    file.write_at(bytes, 0).during("write", &from)?;
    file.sync().during("sync", &from)?;
    io.rename(&from, &to).during("rename", &from)?;
    io.sync_dir(dir).during("sync", dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_read_back_and_every_flipped_bit_is_seen() {
        let parts = (0..3).map(|index| {
            let generation = 2;
            (Name::Part { generation, index }, 77 + u64::from(index))
        });
        let whole = Checkpoint {
            table: 5 << 90,
            generation: 3,
            first_segment: 12,
            parts: parts.collect(),
        };
        let bytes = whole.encode();
        assert_eq!(Checkpoint::decode(&bytes), Ok(whole));
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Checkpoint::decode(&bytes).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(Checkpoint::decode(&bytes[..len]).is_err(), "{len} bytes");
        }
    }
}
