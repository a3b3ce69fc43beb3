//! Seals the parts of one object.

use super::key::Key;
use super::ring::{self, Access};
use crate::format::header::{HEADER_LENGTH, Header, ObjectId};
use chacha20poly1305::aead::{AeadInPlace, KeyInit};
use chacha20poly1305::{Tag, XChaCha20Poly1305, XNonce};
use evenkeel_op::Result;

/// Bytes that sealing a part adds at its end.
pub(crate) const TAG: usize = 16;
/// What of an object's header goes into its key and into what its parts are bound to.
const BOUND: usize = HEADER_LENGTH - 4;

/// With what an object's key is derived.
pub(crate) enum Master {
    /// It has none.
    Plain,
    /// It is not at hand, with the keys that are.
    Missing(Access),
    /// With this.
    Key(Key),
}

/// How the parts of an object are read.
pub(crate) enum Seal {
    /// As they are.
    Plain,
    /// Not at all.
    Closed(Access),
    /// With its key.
    Open(Sealer),
}

impl Seal {
    /// Returns how the parts of the object with this header are read.
    pub(crate) fn of(header: &Header, master: &Master) -> Self {
        match master {
            Master::Plain => Self::Plain,
            Master::Missing(access) => Self::Closed(*access),
            Master::Key(key) => Self::Open(Sealer::new(key, &header.encode())),
        }
    }

    /// Returns what opens parts, nothing if they are not sealed; the wrong key is an error.
    pub(crate) fn sealer(&self) -> Result<Option<&Sealer>> {
        match self {
            Self::Plain => Ok(None),
            Self::Closed(Access::Locked) => Err(ring::no_key()),
            Self::Closed(_) => Err(ring::no_reader()),
            Self::Open(sealer) => Ok(Some(sealer)),
        }
    }
}

/// Begins an object: its header, and what seals its parts if there is a key.
pub(crate) fn begin(id: ObjectId, master: Option<&Key>) -> Result<(Header, Option<Sealer>)> {
    match master {
        None => Ok((Header::plain(id), None)),
        Some(key) => {
            let header = Header::sealed(id)?;
            let sealer = Sealer::new(key, &header.encode());
            Ok((header, Some(sealer)))
        }
    }
}

/// Seals and opens the parts of one object, each under its own number.
///
/// The object's key is derived from the header, in which 20 random bytes stand. So no two objects
/// ever share a key, not even an object and what was begun under its name before, and a part's
/// number in its object can be its nonce.
pub(crate) struct Sealer {
    cipher: XChaCha20Poly1305,
    header: [u8; BOUND],
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// The part does not open: another key, another place, or other bytes than were sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unopened;

impl Sealer {
    pub(crate) fn new(master: &Key, header: &[u8; HEADER_LENGTH]) -> Self {
        let mut bound = [0; BOUND];
        bound.copy_from_slice(&header[..BOUND]);
        let key = master.derive("evenkeel object key v1", &[&bound]);
        Self {
            cipher: XChaCha20Poly1305::new(key.bytes().into()),
            header: bound,
        }
    }

    fn bound_to(&self, front: &[u8]) -> Vec<u8> {
        [self.header.as_slice(), front].concat()
    }

    /// Seals `part` from `from` on and appends the tag. `front` is what stands in clear before it.
    pub(crate) fn seal(
        &self,
        number: u64,
        front: &[u8],
        part: &mut Vec<u8>,
        from: usize,
    ) -> std::result::Result<(), Unopened> {
        let tag = self.cipher.encrypt_in_place_detached(
            &nonce(number),
            &self.bound_to(front),
            &mut part[from..],
        );
        part.extend_from_slice(&tag.map_err(|_| Unopened)?);
        Ok(())
    }

    /// Opens a part and returns it without its tag.
    pub(crate) fn open(
        &self,
        number: u64,
        front: &[u8],
        sealed: &[u8],
    ) -> std::result::Result<Vec<u8>, Unopened> {
        let length = sealed.len().checked_sub(TAG).ok_or(Unopened)?;
        let mut part = sealed[..length].to_vec();
        let tag = Tag::from_slice(&sealed[length..]);
        self.cipher
            .decrypt_in_place_detached(&nonce(number), &self.bound_to(front), &mut part, tag)
            .map_err(|_| Unopened)?;
        Ok(part)
    }
}

/// A part's number in its object is enough: the key is the object's own.
fn nonce(number: u64) -> XNonce {
    let mut nonce = XNonce::default();
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_part_opens_in_its_place_and_nowhere_else(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            number in any::<u64>(),
            flip in any::<prop::sample::Index>(),
        ) {
            let key = Key::of(&[9; 32]).unwrap();
            let header = [3; HEADER_LENGTH];
            let sealer = Sealer::new(&key, &header);
            let mut sealed = b"front".to_vec();
            sealed.extend_from_slice(&bytes);
            sealer.seal(number, b"front", &mut sealed, 5).unwrap();
            let sealed = &sealed[5..];
            prop_assert_eq!(sealer.open(number, b"front", sealed), Ok(bytes.clone()));
            prop_assert!(bytes.len() < 8 || sealed[..bytes.len()] != bytes);
            prop_assert!(sealer.open(number ^ 1, b"front", sealed).is_err());
            prop_assert!(sealer.open(number, b"fronu", sealed).is_err());
            let mut other = header;
            other[40] ^= 1;
            prop_assert!(Sealer::new(&key, &other).open(number, b"front", sealed).is_err());
            let mut wrong = sealed.to_vec();
            let bit = flip.index(wrong.len() * 8);
            wrong[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(sealer.open(number, b"front", &wrong).is_err());
            prop_assert!(sealer.open(number, b"front", &sealed[..sealed.len() - 1]).is_err());
        }
    }

    #[test]
    fn a_sealer_shows_nothing() {
        let sealer = Sealer::new(&Key::of(&[9; 32]).unwrap(), &[0; HEADER_LENGTH]);
        assert_eq!(format!("{sealer:?}"), "***");
    }
}
