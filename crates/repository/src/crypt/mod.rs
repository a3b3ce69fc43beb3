//! Encryption: which key seals what, how keys are wrapped, who may open them.
//!
//! ```text
//! recipients (age, X25519)      readers                     readers and writers
//!                                  │ wrap                      │ wrap
//! per epoch, in `keys`          reading identity            metadata key
//!                                  │ unwraps                   │ seals
//! per generation                data key                    maps, files, manifest
//!                                  │ seals
//!                               packs
//! ```
//! Drawn byte by byte in `docs/src/formats/repository.md`, argued in
//! `docs/src/design/encryption.md`.

mod change;
mod credentials;
mod document;
mod key;
mod ring;
mod seal;
mod whole;

pub use change::{KeyChange, KeyPlan};
pub(crate) use credentials::wish;
pub use credentials::{Credentials, Encrypt, NewIdentity, Recipient};
pub use document::{KeyHolder, Role};
pub use ring::Access;
pub use whole::{decrypted, encrypted, is_begun_by_age};

pub(crate) use document::{Copies, KeysDocument, bring, check_copies, read, repair, store_new};
pub(crate) use key::{Hex, Key, random};
pub(crate) use ring::{Keyring, RunKeys, no_key, no_reader};
pub(crate) use seal::{Master, Seal, Sealer, TAG, Unopened, begin};
