//! The 64 bytes in front of every pack, map and list: what this is and where it belongs.

use super::bytes::Cursor;
use crate::fault::damaged;
use crate::ids::RepositoryId;
use crate::sealed::{VERSION, VERSION_PLAIN, newer};
use evenkeel_op::Result;

/// ```text
///  0 magic "evenkeel"          8
///  8 kind                      1   1 pack, 2 maps, 3 files, 4 sorted run
///  9 cipher                    1   0 none, 1 XChaCha20-Poly1305
/// 10 format version            2   1; with a cipher 2
/// 12 number                    4   of the pack or run, else 0
/// 16 repository id            16
/// 32 generation                4
/// 36 revision                  4   of a compacted pack, else 0
/// 40 salt                     20   random; without a cipher zero
/// 60 crc32c of bytes 0..60     4
/// ```
pub(crate) const HEADER_LENGTH: usize = 64;
/// The cipher of objects and of their parts: none.
pub(crate) const CIPHER_NONE: u8 = 0;
/// XChaCha20-Poly1305.
pub(crate) const CIPHER_XCHACHA: u8 = 1;
const SALT: usize = 20;
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
}

/// An object's first 64 bytes: what it is, and the salt of its key if it is sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) id: ObjectId,
    salt: Option<[u8; SALT]>,
}

impl Header {
    /// Makes the header of an object that is not sealed.
    pub(crate) fn plain(id: ObjectId) -> Self {
        Self { id, salt: None }
    }

    /// Makes the header of a new object that is.
    pub(crate) fn sealed(id: ObjectId) -> Result<Self> {
        let mut salt = [0; SALT];
        crate::crypt::random(&mut salt)?;
        Ok(Self {
            id,
            salt: Some(salt),
        })
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.salt.is_some()
    }

    /// Returns the header's bytes.
    pub(crate) fn encode(&self) -> [u8; HEADER_LENGTH] {
        let (cipher, version, salt) = match self.salt {
            None => (CIPHER_NONE, VERSION_PLAIN, [0; SALT]),
            Some(salt) => (CIPHER_XCHACHA, VERSION, salt),
        };
        let mut bytes = [0; HEADER_LENGTH];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8] = self.id.kind as u8;
        bytes[9] = cipher;
        bytes[10..12].copy_from_slice(&(version as u16).to_le_bytes());
        bytes[12..16].copy_from_slice(&self.id.number.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.id.repository.0);
        bytes[32..36].copy_from_slice(&self.id.generation.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.id.revision.to_le_bytes());
        bytes[40..60].copy_from_slice(&salt);
        let crc = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the header of the object `id`; fails unless `bytes` are exactly that, sealed or not
    /// as it has to be.
    pub(crate) fn read(id: ObjectId, sealed: bool, bytes: &[u8; HEADER_LENGTH]) -> Result<Self> {
        let mut salt = [0; SALT];
        salt.copy_from_slice(&bytes[40..60]);
        let expected = Self {
            id,
            salt: sealed.then_some(salt),
        };
        if *bytes == expected.encode() {
            return Ok(expected);
        }
        let name = id.name();
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
        if cipher > CIPHER_XCHACHA {
            return Err(damaged(&name, format!("it has unknown cipher {cipher}")));
        }
        if (cipher == CIPHER_XCHACHA) != sealed {
            let what = if sealed { "not encrypted" } else { "encrypted" };
            return Err(damaged(
                &name,
                format!("it is {what}, unlike the repository"),
            ));
        }
        Err(damaged(
            &name,
            "it is a different object, or one of another repository, under this name",
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
        for header in [Header::plain(id()), Header::sealed(id()).unwrap()] {
            let sealed = header.is_sealed();
            let bytes = header.encode();
            assert_eq!(Header::read(id(), sealed, &bytes).unwrap(), header);
            for bit in 0..HEADER_LENGTH * 8 {
                let mut wrong = bytes;
                wrong[bit / 8] ^= 1 << (bit % 8);
                assert!(Header::read(id(), sealed, &wrong).is_err(), "bit {bit}");
            }
            let mut other = id();
            other.generation = 4;
            assert!(Header::read(other, sealed, &bytes).is_err());
            let error = Header::read(id(), !sealed, &bytes).unwrap_err();
            assert!(error.chain().contains("unlike the repository"), "{error}");
        }
        let salts = [0; 2].map(|_| Header::sealed(id()).unwrap().encode());
        assert_ne!(salts[0], salts[1]);
    }

    #[test]
    fn a_newer_version_and_an_unknown_cipher_are_named() {
        for (at, what) in [(10, "format version 3"), (9, "cipher 3")] {
            let mut bytes = Header::plain(id()).encode();
            bytes[at] = 3;
            let crc = crc32c::crc32c(&bytes[..60]);
            bytes[60..64].copy_from_slice(&crc.to_le_bytes());
            let error = Header::read(id(), false, &bytes).unwrap_err();
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
