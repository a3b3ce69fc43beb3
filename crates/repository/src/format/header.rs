//! The 64 bytes in front of every pack, map and list: what this is and where it belongs.

use super::bytes::Cursor;
use crate::fault::damaged;
use crate::ids::RepositoryId;
use crate::sealed::{VERSION, newer};
use evenkeel_op::Result;

/// ```text
///  0 magic "evenkeel"          8
///  8 kind                      1   1 pack, 2 maps, 3 files, 4 sorted run
///  9 cipher                    1   0 none
/// 10 format version            2
/// 12 number                    4   of the pack or run, else 0
/// 16 repository id            16
/// 32 generation                4
/// 36 revision                  4   of a compacted pack, else 0
/// 40 zero                     20
/// 60 crc32c of bytes 0..60     4
/// ```
pub(crate) const HEADER_LENGTH: usize = 64;
const MAGIC: [u8; 8] = *b"evenkeel";

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ObjectKind {
    Pack = 1,
    Maps = 2,
    Files = 3,
    Run = 4,
}

/// What an object is and where it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectId {
    pub(crate) repository: RepositoryId,
    pub(crate) generation: u32,
    pub(crate) kind: ObjectKind,
    pub(crate) number: u32,
    pub(crate) revision: u32,
}

impl ObjectId {
    /// Returns the name inside the generation's folder.
    pub(crate) fn file_name(&self) -> String {
        match (self.kind, self.revision) {
            (ObjectKind::Pack, 0) => format!("pack-{:04}", self.number),
            (ObjectKind::Pack, revision) => format!("pack-{:04}.{revision}", self.number),
            (ObjectKind::Maps, _) => "maps".to_owned(),
            (ObjectKind::Files, _) => "files".to_owned(),
            (ObjectKind::Run, _) => format!("run-{:04}", self.number),
        }
    }

    /// Returns the name in the store.
    pub(crate) fn name(&self) -> String {
        format!("generations/{}/{}", self.generation, self.file_name())
    }

    /// Reads a name as [`ObjectId::file_name`] writes it.
    pub(crate) fn from_file_name(
        repository: RepositoryId,
        generation: u32,
        name: &str,
    ) -> Option<Self> {
        let make = |kind, number, revision| Self {
            repository,
            generation,
            kind,
            number,
            revision,
        };
        let id = match name {
            "maps" => make(ObjectKind::Maps, 0, 0),
            "files" => make(ObjectKind::Files, 0, 0),
            _ => {
                if let Some(rest) = name.strip_prefix("pack-") {
                    let (number, revision) = rest.split_once('.').unwrap_or((rest, "0"));
                    make(
                        ObjectKind::Pack,
                        number.parse().ok()?,
                        revision.parse().ok()?,
                    )
                } else {
                    let number = name.strip_prefix("run-")?.parse().ok()?;
                    make(ObjectKind::Run, number, 0)
                }
            }
        };
        // "pack-1" or "pack-0001.0" are nobody's names.
        (id.file_name() == name).then_some(id)
    }

    /// Returns the header's bytes.
    pub(crate) fn encode(&self) -> [u8; HEADER_LENGTH] {
        let mut bytes = [0; HEADER_LENGTH];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8] = self.kind as u8;
        bytes[10..12].copy_from_slice(&(VERSION as u16).to_le_bytes());
        bytes[12..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.repository.0);
        bytes[32..36].copy_from_slice(&self.generation.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.revision.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Fails unless `bytes` are exactly this object's header.
    pub(crate) fn check(&self, bytes: &[u8; HEADER_LENGTH]) -> Result<()> {
        if *bytes == self.encode() {
            return Ok(());
        }
        let name = self.name();
        let crc = u32::from_le_bytes([bytes[60], bytes[61], bytes[62], bytes[63]]);
        if bytes[0..8] != MAGIC || crc != crc32c::crc32c(&bytes[..60]) {
            return Err(damaged(&name, "its header is broken"));
        }
        let mut fields = Cursor::new(&bytes[9..]);
        let cipher = fields.u8().unwrap_or(u8::MAX);
        let version = u32::from(fields.u16().unwrap_or(u16::MAX));
        if version > VERSION {
            return Err(newer(&name, version));
        }
        if cipher != 0 {
            return Err(damaged(&name, format!("it has unknown cipher {cipher}")));
        }
        Err(damaged(
            &name,
            "it is another object, or one of another repository, under this name",
        ))
    }

    /// Returns the checksum that those of the object's parts continue from, so that a part
    /// that strayed from another object fails its own check.
    pub(crate) fn seed(&self) -> u32 {
        crc32c::crc32c(&self.encode()[..60])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> ObjectId {
        ObjectId {
            repository: RepositoryId([7; 16]),
            generation: 3,
            kind: ObjectKind::Pack,
            number: 12,
            revision: 0,
        }
    }

    #[test]
    fn every_bit_of_a_header_counts() {
        let bytes = id().encode();
        assert!(id().check(&bytes).is_ok());
        for bit in 0..HEADER_LENGTH * 8 {
            let mut wrong = bytes;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(id().check(&wrong).is_err(), "bit {bit}");
        }
        let mut other = id();
        other.generation = 4;
        assert!(other.check(&bytes).is_err());
    }

    #[test]
    fn a_newer_version_and_an_unknown_cipher_are_named() {
        for (at, what) in [(10, "format version 2"), (9, "cipher 2")] {
            let mut bytes = id().encode();
            bytes[at] = 2;
            let crc = crc32c::crc32c(&bytes[..60]);
            bytes[60..64].copy_from_slice(&crc.to_le_bytes());
            let error = id().check(&bytes).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
        }
    }

    #[test]
    fn names_read_back() {
        for name in [
            "pack-0000",
            "pack-0001.2",
            "pack-12345",
            "maps",
            "files",
            "run-0003",
        ] {
            let id = ObjectId::from_file_name(RepositoryId([0; 16]), 1, name).unwrap();
            assert_eq!(id.file_name(), name);
        }
        for name in [
            "pack-1",
            "pack-0001.0",
            "pack-0001.tmp",
            "manifest",
            "pending",
            "pack-+001",
        ] {
            assert!(
                ObjectId::from_file_name(RepositoryId([0; 16]), 1, name).is_none(),
                "{name}"
            );
        }
    }
}
