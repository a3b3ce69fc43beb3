//! Small identities: of a repository, of a block's content, of an object's content.

use evenkeel_op::{Context, Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::io::Read;

/// Sixteen random bytes that every object of a repository carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RepositoryId(pub [u8; 16]);

impl RepositoryId {
    /// Draws a new identity from the system's random source.
    pub(crate) fn random() -> Result<Self> {
        let mut bytes = [0; 16];
        std::fs::File::open("/dev/urandom")
            .and_then(|mut source| source.read_exact(&mut bytes))
            .context(|| "failed to read random bytes")?;
        Ok(Self(bytes))
    }
}

/// Blake3 of a block's bytes, cut to 16: tells whether a block changed and whether it was
/// restored right.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockHash(pub [u8; 16]);

impl BlockHash {
    /// Returns the hash of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut short = [0; 16];
        short.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
        Self(short)
    }
}

/// Blake3 of an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Returns the digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    // Only lower case: one value has one spelling, so every changed byte shows.
    let digits = |b: &u8| b.is_ascii_digit() || (b'a'..=b'f').contains(b);
    if text.len() != N * 2 || !text.as_bytes().iter().all(digits) {
        return None;
    }
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[i * 2..i * 2 + 2], 16).ok()?;
    }
    Some(bytes)
}

macro_rules! hexadecimal {
    ($name:ident, $len:literal) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                hex(&self.0, f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                hex(&self.0, f)
            }
        }
        impl std::str::FromStr for $name {
            type Err = Error;
            fn from_str(text: &str) -> Result<Self> {
                unhex::<$len>(text).map(Self).ok_or_else(|| {
                    Error::failed(format!("'{text}' is not {} hex digits", $len * 2))
                })
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(
                &self,
                serializer: S,
            ) -> std::result::Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(
                deserializer: D,
            ) -> std::result::Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse()
                    .map_err(|error: Error| serde::de::Error::custom(error.to_string()))
            }
        }
    };
}

hexadecimal!(RepositoryId, 16);
hexadecimal!(BlockHash, 16);
hexadecimal!(Digest, 32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_reads_back_and_has_one_spelling() {
        let hash = BlockHash::of(b"x");
        assert_eq!(hash.to_string().parse::<BlockHash>().unwrap(), hash);
        assert!(
            hash.to_string()
                .to_uppercase()
                .parse::<BlockHash>()
                .is_err()
        );
        assert!("00".parse::<Digest>().is_err());
    }
}
