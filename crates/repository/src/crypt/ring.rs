//! The keys that are at hand.

use super::credentials::Recipient;
use super::key::{Hex, Key};
use crate::mutex::held;
use age::secrecy::{ExposeSecret, SecretString};
use age::x25519;
use evenkeel_op::{Context, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use zeroize::Zeroizing;

/// What the keys at hand allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Lists and forgets.
    Locked,
    /// Adds generations: names, maps and hashes are open, content is not.
    Writer,
    /// Everything.
    Reader,
    /// Everything, for the repository is not encrypted.
    Plain,
}

/// The keys of a repository that are at hand. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Keyring(Option<Arc<Ring>>);

#[derive(Default)]
struct Ring {
    epochs: BTreeMap<u32, Epoch>,
    /// Data keys unwrapped so far, by what they were wrapped in: a generation has many packs.
    data: Mutex<BTreeMap<Vec<u8>, Key>>,
}

/// Keys of the time between two rotations.
#[derive(Clone)]
pub(super) struct Epoch {
    pub(super) recipient: Recipient,
    pub(super) metadata: Key,
    pub(super) reading: Option<x25519::Identity>,
}

/// The keys of a generation that is being written.
#[derive(Clone, Debug)]
pub(crate) struct RunKeys {
    pub(crate) epoch: u32,
    pub(crate) metadata: Key,
    pub(crate) data: Key,
    /// The data key, for whoever may read.
    pub(crate) wrapped: Hex,
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.access())
    }
}

/// The keys of one epoch, as they travel to the host that a run works on.
#[derive(Serialize, Deserialize)]
struct Travelling {
    epoch: u32,
    metadata: Hex,
    reading: Option<Zeroizing<String>>,
}

impl Keyring {
    /// Of a repository that is not encrypted.
    pub(crate) fn plain() -> Self {
        Self(None)
    }

    /// Of one that is, without any key.
    pub(crate) fn locked() -> Self {
        Self(Some(Arc::default()))
    }

    pub(super) fn of(epochs: BTreeMap<u32, Epoch>) -> Self {
        Self(Some(Arc::new(Ring {
            epochs,
            data: Mutex::default(),
        })))
    }

    pub(super) fn epochs(&self) -> BTreeMap<u32, Epoch> {
        self.0
            .as_ref()
            .map(|ring| ring.epochs.clone())
            .unwrap_or_default()
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn access(&self) -> Access {
        let Some(ring) = &self.0 else {
            return Access::Plain;
        };
        match ring.epochs.values().map(|one| one.reading.is_some()).min() {
            None => Access::Locked,
            Some(false) => Access::Writer,
            Some(true) => Access::Reader,
        }
    }

    fn epoch(&self, number: u32) -> Result<&Epoch> {
        let ring = self.0.as_ref();
        if self.access() == Access::Locked {
            return Err(no_key());
        }
        let found = ring.and_then(|ring| ring.epochs.get(&number));
        found.ok_or_else(|| {
            Error::new(
                ErrorKind::WrongKey,
                format!("there is no key of epoch {number} in this repository"),
            )
            .hint("the object 'keys' is an older copy: restore the newest one")
        })
    }

    /// Returns the key that opens maps, lists and manifests of an epoch.
    pub(crate) fn metadata(&self, epoch: u32) -> Result<&Key> {
        self.epoch(epoch).map(|one| &one.metadata)
    }

    /// Unwraps the data key of a generation.
    pub(crate) fn data(&self, epoch: u32, wrapped: &Hex, manifest: &str) -> Result<Key> {
        let reading = self.epoch(epoch)?.reading.as_ref().ok_or_else(no_reader)?;
        let ring = self.0.as_ref().ok_or_else(no_key)?;
        if let Some(key) = held(&ring.data).get(&wrapped.0) {
            return Ok(key.clone());
        }
        let key = age::decrypt(reading, &wrapped.0).ok().map(Zeroizing::new);
        let key = key
            .and_then(|key| Key::of(&key))
            .ok_or_else(|| crate::fault::damaged(manifest, "its data key does not open"))?;
        held(&ring.data).insert(wrapped.0.clone(), key.clone());
        Ok(key)
    }

    /// Draws the keys of a new generation; nothing without encryption.
    pub(crate) fn begin_run(&self) -> Result<Option<RunKeys>> {
        let Some(ring) = &self.0 else {
            return Ok(None);
        };
        let (&epoch, keys) = ring.epochs.last_key_value().ok_or_else(no_key)?;
        let data = Key::random()?;
        let wrapped =
            age::encrypt(&keys.recipient.0, data.bytes()).context(|| "failed to wrap a key")?;
        Ok(Some(RunKeys {
            epoch,
            metadata: keys.metadata.clone(),
            data,
            wrapped: Hex(wrapped),
        }))
    }

    /// Renders the keys for the host that a run works on; those for reading only if `reading`.
    pub(crate) fn travel(&self, reading: bool) -> Result<SecretString> {
        let all: Vec<Travelling> = self
            .epochs()
            .into_iter()
            .map(|(epoch, keys)| Travelling {
                epoch,
                metadata: Hex(keys.metadata.bytes().to_vec()),
                reading: keys
                    .reading
                    .filter(|_| reading)
                    .map(|one| Zeroizing::new(one.to_string().expose_secret().to_owned())),
            })
            .collect();
        let text = serde_json::to_string(&all).context(|| "failed to render keys")?;
        Ok(SecretString::from(text))
    }

    /// Takes what [`Keyring::travel`] rendered; `recipient` is asked for the rest, of each epoch.
    pub(super) fn arrived(
        text: &SecretString,
        recipient: impl Fn(u32) -> Result<Recipient>,
    ) -> Result<Self> {
        let wrong = || Error::new(ErrorKind::WrongKey, "the keys that were sent are not valid");
        let all: Vec<Travelling> =
            serde_json::from_str(text.expose_secret()).map_err(|_| wrong())?;
        let mut epochs = BTreeMap::new();
        for one in all {
            let reading = one.reading.map(|text| text.parse().map_err(|_| wrong()));
            let epoch = Epoch {
                recipient: recipient(one.epoch)?,
                metadata: Key::of(&Zeroizing::new(one.metadata.0)).ok_or_else(wrong)?,
                reading: reading.transpose()?,
            };
            epochs.insert(one.epoch, epoch);
        }
        Ok(Self::of(epochs))
    }
}

pub(crate) fn no_key() -> Error {
    Error::new(
        ErrorKind::WrongKey,
        "the repository is encrypted, and no key was given",
    )
    .hint("name an identity file with --identity, or a passphrase file with --passphrase-file")
}

pub(crate) fn no_reader() -> Error {
    Error::new(
        ErrorKind::WrongKey,
        "this identity can write backups, not read them",
    )
    .hint("use the identity of a reader: 'evenkeel keys list' shows readers and writers")
}
