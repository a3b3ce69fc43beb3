//! The object `keys`: who may open the repository, and the keys wrapped for them.
//!
//! It is small and everything hangs on it, so it is kept twice: `keys`, and `keys.copy` which is
//! written after it.

use super::credentials::{Credentials, Encrypt, Recipient};
use super::key::{Hex, Key};
use super::ring::{Epoch, Keyring};
use crate::fault::damaged;
use crate::ids::{Digest, RepositoryId};
use crate::names;
use crate::sealed;
use crate::store::{Existing, Store};
use age::secrecy::{ExposeSecret, SecretString};
use age::{scrypt, x25519};
use evenkeel_op::{Context, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use zeroize::Zeroizing;

const TITLE: &str = "keys";
const PROOF: &str = "evenkeel keys proof v1";
/// Cost of trying a passphrase: scrypt with N = 2^17, 128 MiB and a few tenths of a second.
const PASSPHRASE_WORK: u8 = 17;
/// A document that asks for more is not worth the memory.
const PASSPHRASE_WORK_MAX: u8 = 20;

/// What someone may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything.
    Reader,
    /// What a backup needs: names, maps and hashes, but no content.
    Writer,
}

/// Someone who may open the repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyHolder {
    /// Whom keys are wrapped for, `age1…`.
    pub recipient: String,
    /// What for.
    pub role: Role,
    /// Whether the identity is kept in the repository, sealed with a passphrase.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passphrase: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Sealed {
    recipient: String,
    identity: Hex,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct EpochRecord {
    epoch: u32,
    created: jiff::Timestamp,
    recipient: String,
    metadata: Hex,
    reading: Hex,
    /// What only who has this epoch's metadata key can make of the document.
    proof: Option<Digest>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KeysDocument {
    repository: RepositoryId,
    pub(super) sequence: u64,
    pub(super) holders: Vec<KeyHolder>,
    passphrases: Vec<Sealed>,
    epochs: Vec<EpochRecord>,
}

fn wrap(recipients: &[Recipient], secret: &[u8]) -> Result<Hex> {
    let all = recipients.iter().map(|one| &one.0 as &dyn age::Recipient);
    let mut out = Vec::new();
    let wrapped = age::Encryptor::with_recipients(all)
        .map_err(|error| error.to_string())
        .and_then(|encryptor| {
            let mut writer = encryptor
                .wrap_output(&mut out)
                .map_err(|error| error.to_string())?;
            std::io::Write::write_all(&mut writer, secret).map_err(|error| error.to_string())?;
            writer.finish().map_err(|error| error.to_string())
        });
    wrapped.map_err(|why| Error::failed(format!("failed to wrap a key: {why}")))?;
    Ok(Hex(out))
}

fn unwrap(identities: &[x25519::Identity], wrapped: &Hex) -> Option<Zeroizing<Vec<u8>>> {
    let mut all = identities.iter();
    all.find_map(|one| age::decrypt(one, &wrapped.0).ok())
        .map(Zeroizing::new)
}

fn seal_with_passphrase(passphrase: &SecretString) -> Result<(Recipient, Sealed)> {
    let identity = x25519::Identity::generate();
    let recipient = Recipient(identity.to_public());
    let mut lock = scrypt::Recipient::new(passphrase.clone());
    lock.set_work_factor(PASSPHRASE_WORK);
    let text = identity.to_string();
    let sealed = age::encrypt(&lock, text.expose_secret().as_bytes())
        .context(|| "failed to seal an identity with the passphrase")?;
    let sealed = Sealed {
        recipient: recipient.to_string(),
        identity: Hex(sealed),
    };
    Ok((recipient, sealed))
}

impl Sealed {
    fn open(&self, passphrase: &SecretString) -> Option<x25519::Identity> {
        let mut lock = scrypt::Identity::new(passphrase.clone());
        lock.set_max_work_factor(PASSPHRASE_WORK_MAX);
        let text = Zeroizing::new(age::decrypt(&lock, &self.identity.0).ok()?);
        std::str::from_utf8(&text).ok()?.parse().ok()
    }
}

impl KeysDocument {
    /// Makes the keys of a new repository; the ring can write.
    pub(crate) fn create(repository: RepositoryId, how: &Encrypt) -> Result<(Self, Keyring)> {
        let mut document = Self {
            repository,
            sequence: 0,
            holders: Vec::new(),
            passphrases: Vec::new(),
            epochs: Vec::new(),
        };
        for (all, role) in [(&how.readers, Role::Reader), (&how.writers, Role::Writer)] {
            for recipient in all {
                document.hold(recipient, role)?;
            }
        }
        if let Some(passphrase) = &how.passphrase {
            document.hold_passphrase(passphrase)?;
        }
        if !document.holders.iter().any(|one| one.role == Role::Reader) {
            return Err(Error::usage("no key could read this repository")
                .hint("name a reader with --encrypt-to, or a passphrase"));
        }
        let mut epochs = BTreeMap::new();
        document.rotate(&mut epochs)?;
        document.wrap_all(&epochs)?;
        for epoch in epochs.values_mut() {
            epoch.reading = None;
        }
        Ok((document, Keyring::of(epochs)))
    }

    /// Adds someone; `false` when they are there in that role already.
    pub(super) fn hold(&mut self, recipient: &Recipient, role: Role) -> Result<bool> {
        let text = recipient.to_string();
        if let Some(known) = self.holders.iter().find(|one| one.recipient == text) {
            if known.role == role {
                return Ok(false);
            }
            let other = if role == Role::Reader {
                "writer"
            } else {
                "reader"
            };
            return Err(Error::usage(format!("{text} is a {other} already"))
                .hint("remove it first: 'evenkeel keys remove'"));
        }
        self.holders.push(KeyHolder {
            recipient: text,
            role,
            passphrase: false,
        });
        Ok(true)
    }

    pub(super) fn hold_passphrase(&mut self, passphrase: &SecretString) -> Result<()> {
        let (recipient, sealed) = seal_with_passphrase(passphrase)?;
        self.holders.push(KeyHolder {
            recipient: recipient.to_string(),
            role: Role::Reader,
            passphrase: true,
        });
        self.passphrases.push(sealed);
        Ok(())
    }

    /// Takes someone off; they are no longer wrapped for.
    pub(super) fn let_go(&mut self, recipient: &str) -> Result<()> {
        let before = self.holders.len();
        self.holders.retain(|one| one.recipient != recipient);
        self.passphrases.retain(|one| one.recipient != recipient);
        if self.holders.len() == before {
            return Err(
                Error::usage(format!("{recipient} cannot open this repository anyway"))
                    .hint("'evenkeel keys list' lists who can"),
            );
        }
        if !self.holders.iter().any(|one| one.role == Role::Reader) {
            return Err(Error::usage("no key could read this repository any more")
                .hint("add another reader first: 'evenkeel keys add'"));
        }
        Ok(())
    }

    /// Begins a new epoch: what is written from now on has other keys.
    pub(super) fn rotate(&mut self, epochs: &mut BTreeMap<u32, Epoch>) -> Result<()> {
        let number = self.epochs.iter().map(|one| one.epoch).max().unwrap_or(0) + 1;
        let reading = x25519::Identity::generate();
        let epoch = Epoch {
            recipient: Recipient(reading.to_public()),
            metadata: Key::random()?,
            reading: Some(reading),
        };
        self.epochs.push(EpochRecord {
            epoch: number,
            created: jiff::Timestamp::now(),
            recipient: epoch.recipient.to_string(),
            metadata: Hex::default(),
            reading: Hex::default(),
            proof: None,
        });
        epochs.insert(number, epoch);
        Ok(())
    }

    fn recipients(&self, readers_only: bool) -> Result<Vec<Recipient>> {
        let all = self.holders.iter();
        all.filter(|one| !readers_only || one.role == Role::Reader)
            .map(|one| one.recipient.parse())
            .collect()
    }

    /// Wraps the keys of all epochs for everyone who holds keys now.
    pub(super) fn wrap_all(&mut self, epochs: &BTreeMap<u32, Epoch>) -> Result<()> {
        let (everyone, readers) = (self.recipients(false)?, self.recipients(true)?);
        self.sequence = self.sequence.saturating_add(1);
        for record in &mut self.epochs {
            let keys = epochs.get(&record.epoch);
            let keys = keys.and_then(|keys| Some((&keys.metadata, keys.reading.as_ref()?)));
            let (metadata, reading) = keys.ok_or_else(super::ring::no_reader)?;
            record.metadata = wrap(&everyone, metadata.bytes())?;
            record.reading = wrap(&readers, reading.to_string().expose_secret().as_bytes())?;
            record.proof = None;
        }
        let body = self.proven_body()?;
        for record in &mut self.epochs {
            if let Some(keys) = epochs.get(&record.epoch) {
                record.proof = Some(keys.metadata.mac(PROOF, &body));
            }
        }
        Ok(())
    }

    fn proven_body(&self) -> Result<Vec<u8>> {
        let mut bare = self.clone();
        for record in &mut bare.epochs {
            record.proof = None;
        }
        serde_json::to_vec(&bare).context(|| "failed to render keys")
    }

    /// Returns the epoch that whoever writes now seals for.
    pub(crate) fn newest_epoch(&self) -> Option<u32> {
        self.epochs.iter().map(|one| one.epoch).max()
    }

    /// Returns whom data keys of an epoch are wrapped for.
    pub(super) fn recipient(&self, epoch: u32) -> Result<Recipient> {
        let mut all = self.epochs.iter();
        let record = all.find(|one| one.epoch == epoch);
        record
            .ok_or_else(|| damaged(names::KEYS, format!("it does not have epoch {epoch}")))?
            .recipient
            .parse()
    }

    /// Opens what the credentials open. Nothing given leaves the ring locked.
    pub(crate) fn open(&self, credentials: &Credentials) -> Result<Keyring> {
        if credentials.is_empty() {
            return Ok(Keyring::locked());
        }
        if let Some(text) = &credentials.session {
            let ring = Keyring::arrived(text, |epoch| self.recipient(epoch))?;
            self.check_proofs(&ring.epochs())?;
            return Ok(ring);
        }
        let mut identities = credentials.identities.clone();
        for passphrase in &credentials.passphrases {
            let mut all = self.passphrases.iter();
            identities.extend(all.find_map(|sealed| sealed.open(passphrase)));
        }
        let mut epochs = BTreeMap::new();
        for record in &self.epochs {
            let metadata = unwrap(&identities, &record.metadata).and_then(|key| Key::of(&key));
            let Some(metadata) = metadata else {
                return Err(self.opens_nothing(credentials));
            };
            let reading = unwrap(&identities, &record.reading);
            let reading = reading.and_then(|text| std::str::from_utf8(&text).ok()?.parse().ok());
            let epoch = Epoch {
                recipient: record.recipient.parse()?,
                metadata,
                reading,
            };
            epochs.insert(record.epoch, epoch);
        }
        self.check_proofs(&epochs)?;
        Ok(Keyring::of(epochs))
    }

    /// Fails unless who wrote the document had the metadata keys of all epochs, so that nobody
    /// who merely stores it can slip in a key of his own beside ours.
    fn check_proofs(&self, epochs: &BTreeMap<u32, Epoch>) -> Result<()> {
        let body = self.proven_body()?;
        let is_proven = |record: &EpochRecord| {
            let keys = epochs.get(&record.epoch);
            let proof = record.proof.as_ref();
            keys.zip(proof)
                .is_some_and(|(keys, proof)| keys.metadata.is_mac(PROOF, &body, proof))
        };
        let fits = |record: &EpochRecord| {
            let reading = epochs
                .get(&record.epoch)
                .and_then(|one| one.reading.as_ref());
            reading.is_none_or(|one| one.to_public().to_string() == record.recipient)
        };
        if self.epochs.is_empty() || !self.epochs.iter().all(|one| is_proven(one) && fits(one)) {
            return Err(damaged(
                names::KEYS,
                "its author did not have this repository's keys",
            ));
        }
        Ok(())
    }

    fn opens_nothing(&self, credentials: &Credentials) -> Error {
        let message = match (&credentials.identities[..], &credentials.passphrases[..]) {
            ([], _) if self.passphrases.is_empty() => "this repository has no passphrase",
            ([], _) => "the passphrase does not open this repository",
            (_, []) => "none of the identities given opens this repository",
            _ => "neither the identities nor the passphrase given open this repository",
        };
        let mut error = Error::new(ErrorKind::WrongKey, message);
        let given: Vec<String> = credentials
            .recipients()
            .iter()
            .map(ToString::to_string)
            .collect();
        if !given.is_empty() {
            error = error.hint(format!(
                "the recipient of the given identity: {}",
                given.join(", ")
            ));
        }
        error.hint("'evenkeel keys list' lists who can open it; one of them can add another with 'evenkeel keys add'")
    }
}

fn read_one(store: &dyn Store, repository: RepositoryId, name: &str) -> Result<KeysDocument> {
    let bytes = sealed::read_object(store, name)?;
    let document: KeysDocument = sealed::unseal(TITLE, name, &bytes)?;
    if document.repository != repository {
        return Err(damaged(name, "it belongs to another repository"));
    }
    Ok(document)
}

/// Reads the keys: the newer of the two that are sound.
pub(crate) fn read(store: &dyn Store, repository: RepositoryId) -> Result<KeysDocument> {
    let first = read_one(store, repository, names::KEYS);
    match (first, read_one(store, repository, names::KEYS_COPY)) {
        (Ok(first), Ok(copy)) if copy.sequence > first.sequence => Ok(copy),
        (Ok(first), _) => Ok(first),
        (Err(error), Ok(copy)) if error.kind() == ErrorKind::Differs => Ok(copy),
        (Err(error), _) => Err(error),
    }
}

impl KeysDocument {
    /// Puts the document in the place of the old one, then renews the copy.
    pub(super) fn write(&self, store: &dyn Store) -> Result<()> {
        let bytes = sealed::seal_as(sealed::VERSION, TITLE, self)?;
        for name in [names::KEYS, names::KEYS_COPY] {
            sealed::write_object(store, name, &bytes, Existing::Replace)?;
        }
        Ok(())
    }
}

/// Writes the keys of a repository that is being made.
pub(crate) fn store_new(store: &dyn Store, document: &KeysDocument) -> Result<()> {
    document.write(store)
}

/// Brings the keys of a repository to its copy. A copy whose holders were changed over there keeps
/// them; it is an error if each side has keys that the other does not know.
pub(crate) fn bring(from: &dyn Store, to: &dyn Store, repository: RepositoryId) -> Result<()> {
    let (here, there) = (read(from, repository)?, read(to, repository)?);
    if here == there {
        return Ok(());
    }
    // Reading identities are drawn at random: of the same recipient, an epoch is the same.
    let has = |all: &KeysDocument, wanted: &EpochRecord| {
        let mut epochs = all.epochs.iter();
        epochs.any(|one| one.epoch == wanted.epoch && one.recipient == wanted.recipient)
    };
    let knows =
        |all: &KeysDocument, other: &KeysDocument| other.epochs.iter().all(|epoch| has(all, epoch));
    if here.sequence > there.sequence && knows(&here, &there) {
        return here.write(to);
    }
    if knows(&there, &here) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::WrongKey,
        "the keys were changed both here and in the copy: the copy's keys could not open what is \
         written here",
    )
    .hint("change keys only here; to continue, copy to a new or empty place"))
}

/// What is wrong with the two copies.
pub(crate) enum Copies {
    /// Nothing.
    Same,
    /// The second was not renewed: whoever changed the keys was interrupted.
    Behind,
    /// This object is damaged or older than it can be.
    Damaged(Vec<Error>),
}

/// Compares the two copies.
pub(crate) fn check_copies(store: &dyn Store, repository: RepositoryId) -> Result<Copies> {
    let mut errors = Vec::new();
    let mut read = |name| match read_one(store, repository, name) {
        Ok(document) => Ok(Some(document)),
        Err(error) if error.kind() == ErrorKind::Differs => {
            errors.push(error);
            Ok(None)
        }
        Err(error) => Err(error),
    };
    let (first, copy) = (read(names::KEYS)?, read(names::KEYS_COPY)?);
    let (Some(first), Some(copy)) = (first, copy) else {
        return Ok(Copies::Damaged(errors));
    };
    if first == copy {
        Ok(Copies::Same)
    } else if copy.sequence.checked_add(1) == Some(first.sequence) {
        Ok(Copies::Behind)
    } else {
        let older = if first.sequence < copy.sequence {
            names::KEYS
        } else {
            names::KEYS_COPY
        };
        Ok(Copies::Damaged(vec![damaged(
            older,
            "it differs from its copy",
        )]))
    }
}

/// Makes the two copies the same again; returns whether they were not. Called with the writer
/// lock held.
pub(crate) fn repair(store: &dyn Store, repository: RepositoryId) -> Result<bool> {
    if matches!(check_copies(store, repository)?, Copies::Same) {
        return Ok(false);
    }
    read(store, repository)?.write(store)?;
    Ok(true)
}
