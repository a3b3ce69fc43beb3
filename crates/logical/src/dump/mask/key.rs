//! The key that masked values are made with: who has it can try values, who has not cannot.

use evenkeel_op::{Context, Result};
use std::fmt;
use std::io::Read;
use zeroize::Zeroizing;

/// What keys are made from; bytes of a file make another key for another program.
const CONTEXT: &str = "evenkeel 2026-11-28 dump --mask key";

/// A key. Its memory is overwritten when it is dropped, and no message shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct MaskKey {
    bytes: Zeroizing<[u8; 32]>,
    lasts: bool,
}

impl fmt::Debug for MaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl MaskKey {
    /// Makes a key of the bytes that somebody keeps: another run has it too.
    #[must_use]
    pub fn of(kept: &[u8]) -> Self {
        Self {
            bytes: Zeroizing::new(blake3::derive_key(CONTEXT, kept)),
            lasts: true,
        }
    }

    /// Draws a key that nobody has after this run.
    ///
    /// Errors: `Failed` where the system gives no random bytes.
    pub fn random() -> Result<Self> {
        let mut bytes = Zeroizing::new([0; 32]);
        std::fs::File::open("/dev/urandom")
            .and_then(|mut source| source.read_exact(&mut *bytes))
            .context(|| "failed to read random bytes")?;
        Ok(Self {
            bytes,
            lasts: false,
        })
    }

    /// Returns whether another run may have it.
    #[must_use]
    pub fn lasts(&self) -> bool {
        self.lasts
    }

    /// Returns what hashes for one purpose; those of another purpose are unlike them.
    pub(super) fn hasher(&self, purpose: &str) -> blake3::Hasher {
        let mut own = Zeroizing::new([0; 32]);
        let mut whole = blake3::Hasher::new_keyed(&self.bytes);
        whole.update(purpose.as_bytes());
        own.copy_from_slice(whole.finalize().as_bytes());
        blake3::Hasher::new_keyed(&own)
    }

    /// Returns what is the same for the same key, and leads to no other hash of it.
    pub(super) fn mark(&self) -> String {
        self.hasher("mark").finalize().to_hex().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_same_bytes_are_the_same_and_none_is_shown() {
        let one = MaskKey::of(b"secret");
        assert_eq!(one, MaskKey::of(b"secret"));
        assert_ne!(one.mark(), MaskKey::of(b"Secret").mark());
        assert_ne!(
            MaskKey::random().unwrap().mark(),
            MaskKey::random().unwrap().mark()
        );
        let purposes = ["hash", "email"].map(|one_of| one.hasher(one_of).finalize());
        assert_ne!(purposes[0], purposes[1]);
        assert_eq!(format!("{one:?}"), "***");
    }
}
