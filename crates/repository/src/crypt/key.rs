//! 32 secret bytes: drawn, derived from, forgotten.

use crate::ids::Digest;
use evenkeel_op::{Context, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::io::Read;
use zeroize::{Zeroize, Zeroizing};

/// A secret key. Its memory is overwritten when it is dropped, and no message shows it.
#[derive(Clone)]
pub(crate) struct Key(Zeroizing<[u8; 32]>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Fills `bytes` from the system's random source.
pub(crate) fn random(bytes: &mut [u8]) -> Result<()> {
    std::fs::File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(bytes))
        .context(|| "failed to read random bytes")
}

impl Key {
    pub(crate) fn random() -> Result<Self> {
        let mut bytes = Zeroizing::new([0; 32]);
        random(&mut *bytes)?;
        Ok(Self(bytes))
    }

    /// Takes a key of exactly 32 bytes.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let mut key = Zeroizing::new([0; 32]);
        if bytes.len() != key.len() {
            return None;
        }
        key.copy_from_slice(bytes);
        Some(Self(key))
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the keyed hash of `parts`, the first of which says what it is for.
    fn keyed(&self, purpose: &str, parts: &[&[u8]]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        // Of a fixed length, so that no purpose and part can run into each other.
        hasher.update(blake3::hash(purpose.as_bytes()).as_bytes());
        for part in parts {
            hasher.update(part);
        }
        let hash = hasher.finalize();
        hasher.zeroize();
        hash
    }

    /// Derives the key for one purpose and place.
    pub(crate) fn derive(&self, purpose: &str, place: &[&[u8]]) -> Self {
        Self(Zeroizing::new(*self.keyed(purpose, place).as_bytes()))
    }

    /// Returns what only who has the key can make of `bytes`.
    pub(crate) fn mac(&self, purpose: &str, bytes: &[u8]) -> Digest {
        Digest(*self.keyed(purpose, &[bytes]).as_bytes())
    }

    /// Compares in a time that says nothing.
    pub(crate) fn is_mac(&self, purpose: &str, bytes: &[u8], mac: &Digest) -> bool {
        // `blake3::Hash` compares in constant time.
        self.keyed(purpose, &[bytes]) == blake3::Hash::from_bytes(mac.0)
    }
}

/// Bytes that documents hold as lower-case hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Hex(pub(crate) Vec<u8>);

impl std::fmt::Debug for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = String::with_capacity(self.0.len() * 2);
        for byte in &self.0 {
            text.push(DIGITS[usize::from(byte >> 4)].into());
            text.push(DIGITS[usize::from(byte & 15)].into());
        }
        let done = serializer.serialize_str(&text);
        text.zeroize();
        done
    }
}

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = Zeroizing::new(String::deserialize(deserializer)?);
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(serde::de::Error::custom("not hexadecimal")),
        };
        if !text.len().is_multiple_of(2) {
            return Err(serde::de::Error::custom("half a byte"));
        }
        let pairs = text.as_bytes().chunks_exact(2);
        let bytes = pairs.map(|pair| Ok(digit(pair[0])? << 4 | digit(pair[1])?));
        bytes.collect::<std::result::Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_do_not_show_and_purposes_do_not_meet() {
        let key = Key::of(&[7; 32]).unwrap();
        assert_eq!(format!("{key:?}"), "***");
        let one = key.derive("one", &[b"a"]);
        assert_ne!(one.bytes(), key.derive("two", &[b"a"]).bytes());
        assert_ne!(one.bytes(), key.derive("one", &[b"b"]).bytes());
        assert_ne!(one.bytes(), key.bytes());
        let mac = key.mac("m", b"text");
        assert!(key.is_mac("m", b"text", &mac));
        assert!(!key.is_mac("m", b"texu", &mac) && !one.is_mac("m", b"text", &mac));
        assert!(Key::of(&[7; 31]).is_none());
    }

    #[test]
    fn hex_reads_back() {
        let hex = Hex(vec![0, 0xab, 0xff]);
        let text = serde_json::to_string(&hex).unwrap();
        assert_eq!(text, "\"00abff\"");
        assert_eq!(serde_json::from_str::<Hex>(&text).unwrap(), hex);
        for wrong in ["\"0\"", "\"0G\"", "\"AB\""] {
            assert!(serde_json::from_str::<Hex>(wrong).is_err(), "{wrong}");
        }
    }
}
