//! The repository itself: made, opened, listed.

use crate::crypt::{self, Access, Credentials, Encrypt, Keyring, KeysDocument};
use crate::fault::{damaged, store_failed, unopenable};
use crate::head::{Head, Proof};
use crate::ids::{Digest, RepositoryId};
use crate::locks;
use crate::manifest::{self, GenerationKind, Manifest};
use crate::names;
use crate::sealed;
use crate::store::{Existing, Listed, Location, Lock, Store};
use evenkeel_op::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How to create a new repository.
#[derive(Debug, Clone)]
pub struct Create {
    /// When it was made; now when `None`.
    pub created: Option<jiff::Timestamp>,
    /// Block size, in bytes, for files that do not bring their own.
    pub block_size: u32,
    /// Who may open it; everyone when `None`.
    pub encrypt: Option<Encrypt>,
}

impl Default for Create {
    fn default() -> Self {
        Self {
            created: None,
            block_size: 16 << 10,
            encrypt: None,
        }
    }
}

/// The identity file's content.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Identity {
    id: RepositoryId,
    created: jiff::Timestamp,
    block_size: u32,
    /// What it is encrypted with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cipher: Option<String>,
}

/// The one cipher there is.
const CIPHER: &str = "xchacha20-poly1305";

/// An open repository. Opening takes no lock; what is done with it does.
#[derive(Debug, Clone)]
pub struct Repository {
    store: Arc<dyn Store>,
    identity: Identity,
    keys: Keyring,
}

/// A generation, as a list shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Its number.
    pub generation: u32,
    /// What is known of it; `None` when its manifest is damaged.
    #[serde(flatten)]
    pub about: Option<About>,
    /// What is wrong with its manifest, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
    /// When it was last restored and started as a test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proven: Option<Proof>,
}

/// What a list shows of a generation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct About {
    /// How it relates to earlier ones.
    pub kind: GenerationKind,
    /// What it was compared with.
    pub based_on: Option<u32>,
    /// When its run began.
    pub created: jiff::Timestamp,
    /// What was backed up.
    pub source: String,
    /// Regular files.
    pub files: u64,
    /// Sum of their lengths.
    pub bytes_logical: u64,
    /// Bytes that its run added to the repository.
    pub bytes_stored: u64,
}

impl Repository {
    /// Makes a repository at a place that must be empty; a local directory is made if need be.
    pub fn create(at: impl Into<Location>, how: Create) -> Result<Self> {
        Self::create_on(at.into().store(), how)
    }

    /// Makes a repository on a store that holds nothing yet.
    pub fn create_on(store: Arc<dyn Store>, how: Create) -> Result<Self> {
        let _locks = claim(&store)?;
        let identity = Identity {
            id: RepositoryId::random()?,
            created: how.created.unwrap_or_else(jiff::Timestamp::now),
            block_size: how.block_size,
            cipher: how.encrypt.is_some().then(|| CIPHER.to_owned()),
        };
        let (keys, version) = match &how.encrypt {
            None => (Keyring::plain(), sealed::VERSION_PLAIN),
            Some(encrypt) => {
                let (document, keys) = KeysDocument::create(identity.id, encrypt)?;
                crypt::store_new(&*store, &document)?;
                (keys, sealed::VERSION)
            }
        };
        found(&*store, &identity, version)?;
        Ok(Self {
            store,
            identity,
            keys,
        })
    }

    /// Makes a repository without generations, of the same identity and keys as `other`, on a store
    /// that holds nothing yet.
    pub(crate) fn create_like(store: Arc<dyn Store>, other: &Self) -> Result<Self> {
        let _locks = claim(&store)?;
        let mut version = sealed::VERSION_PLAIN;
        if other.keys.is_encrypted() {
            crypt::store_new(&*store, &crypt::read(&**other.store(), other.id())?)?;
            version = sealed::VERSION;
        }
        found(&*store, &other.identity, version)?;
        Ok(Self {
            store,
            identity: other.identity.clone(),
            keys: other.keys.clone(),
        })
    }

    /// Looks whether a backup could go to a place: there is a repository, or one can be made. Nothing is made.
    ///
    /// Errors: `NoRepository` where other files are in the way.
    pub fn fits(at: impl Into<Location>) -> Result<()> {
        let store = at.into().store();
        match Self::open_on(store.clone()) {
            Err(error) if error.kind() == ErrorKind::NoRepository => {}
            other => return other.map(|_| ()),
        }
        let place = store.place();
        match store.list("") {
            Ok(found) => refuse_occupied(&place, found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(store_failed("look at", &place, error)),
        }
    }

    /// Opens the repository at a place.
    pub fn open(at: impl Into<Location>) -> Result<Self> {
        let at = at.into();
        Self::open_on(at.store())?.unlock(at.credentials())
    }

    /// Opens the repository on a store.
    pub fn open_on(store: Arc<dyn Store>) -> Result<Self> {
        let opened = store.open(names::IDENTITY);
        match opened.as_ref().map_err(io::Error::kind) {
            Err(io::ErrorKind::NotFound) => return Err(not_there(&store.place())),
            Err(io::ErrorKind::NotADirectory) => return Err(no_directory(&store.place())),
            _ => {}
        }
        let bytes = sealed::whole(names::IDENTITY, opened)?;
        let identity: Identity = sealed::unseal(names::IDENTITY, names::IDENTITY, &bytes).map_err(
            |error| match error.kind() {
                ErrorKind::Differs => unopenable(&store.place(), &error),
                _ => error,
            },
        )?;
        let keys = match identity.cipher.as_deref() {
            None => Keyring::plain(),
            Some(CIPHER) => Keyring::locked(),
            Some(other) => {
                return Err(Error::failed(format!(
                    "the repository is encrypted with '{other}', which this evenkeel does not know"
                ))
                .hint("use a newer evenkeel for this repository"));
            }
        };
        Ok(Self {
            store,
            identity,
            keys,
        })
    }

    /// Opens what the credentials open; none at all leave it as it is. Credentials that open
    /// nothing are an error of kind [`ErrorKind::WrongKey`]. What is not encrypted needs none.
    pub fn unlock(mut self, credentials: &Credentials) -> Result<Self> {
        if self.keys.is_encrypted() && !credentials.is_empty() {
            self.keys = crypt::read(&*self.store, self.id())?.open(credentials)?;
        }
        Ok(self)
    }

    /// Returns what the keys at hand allow.
    #[must_use]
    pub fn access(&self) -> Access {
        self.keys.access()
    }

    /// Renders the keys at hand for [`Credentials::add_session`] on another host; those for
    /// reading only if `reading`.
    pub fn session_keys(&self, reading: bool) -> Result<age::secrecy::SecretString> {
        self.keys.travel(reading)
    }

    pub(crate) fn keys(&self) -> &Keyring {
        &self.keys
    }

    /// Returns the repository's identity.
    #[must_use]
    pub fn id(&self) -> RepositoryId {
        self.identity.id
    }

    /// Returns when it was made.
    #[must_use]
    pub fn created(&self) -> jiff::Timestamp {
        self.identity.created
    }

    /// Returns the block size for files that do not bring their own.
    #[must_use]
    pub fn block_size(&self) -> u32 {
        self.identity.block_size
    }

    /// Returns where it is, for messages.
    #[must_use]
    pub fn place(&self) -> String {
        self.store.place()
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(crate) fn head(&self) -> Result<Head> {
        Head::read(&*self.store, self.id())
    }

    /// Lists the generations that can be restored, oldest first.
    pub fn generations(&self) -> Result<Vec<Summary>> {
        let head = self.head()?;
        let numbers: Vec<u32> = head.live.iter().map(|live| live.generation).collect();
        let read = manifest::read_all(&*self.store, self.id(), &self.keys, &numbers);
        let mut all = Vec::with_capacity(head.live.len());
        for (live, read) in head.live.into_iter().zip(read) {
            let checked = read.and_then(|read| checked(live.generation, live.manifest, read));
            let (about, damage) = match checked {
                Ok(manifest) => (Some(About::of(&manifest)), None),
                Err(error) => (None, Some(error.chain())),
            };
            all.push(Summary {
                generation: live.generation,
                about,
                damage,
                proven: live.proven,
            });
        }
        Ok(all)
    }

    /// Returns what is known of one generation.
    pub fn manifest(&self, generation: u32) -> Result<Manifest> {
        let head = self.head()?;
        let live = head
            .live(generation)
            .ok_or_else(|| no_generation(&*self.store, generation))?;
        self.checked_manifest(generation, live.manifest)
    }

    /// Returns the newest generation whose manifest can be read, if there is one.
    pub fn newest(&self) -> Result<Option<Manifest>> {
        for live in self.head()?.live.iter().rev() {
            match self.checked_manifest(live.generation, live.manifest) {
                Err(error) if error.kind() == ErrorKind::Differs => {}
                read => return read.map(Some),
            }
        }
        Ok(None)
    }

    pub(crate) fn checked_manifest(&self, generation: u32, digest: Digest) -> Result<Manifest> {
        let read = manifest::read(&*self.store, self.id(), &self.keys, generation)?;
        checked(generation, digest, read)
    }

    /// Keeps a forget or prune from removing anything until what is returned is dropped. Busy beside
    /// one that runs, after `wait`.
    pub fn hold(&self, wait: Duration) -> Result<Box<dyn Lock>> {
        locks::reader(&*self.store, wait)
    }

    /// Records that a generation was restored and started as a test.
    pub fn record_proof(&self, generation: u32, proof: Proof, wait: Duration) -> Result<()> {
        let _lock = locks::writer(&*self.store, wait)?;
        let mut head = self.head()?;
        let mut live = head.live.iter_mut();
        let live = live
            .find(|live| live.generation == generation)
            .ok_or_else(|| no_generation(&*self.store, generation))?;
        live.proven = Some(proof);
        head.write(&*self.store)
    }
}

/// Takes a place for a new repository: one that holds nothing, or what an interrupted creation left.
fn claim(store: &Arc<dyn Store>) -> Result<[Box<dyn Lock>; 2]> {
    let place = store.place();
    let failed = |error: io::Error| store_failed("make the repository", &place, error);
    store.make_folder("").map_err(failed)?;
    refuse_occupied(&place, store.list("").map_err(failed)?)?;
    let locks = locks::remover(&**store, Duration::ZERO)?;
    let generations = store.list(names::GENERATIONS);
    if generations.is_ok_and(|found| !found.is_empty()) {
        return Err(
            Error::failed(format!("{place} holds generations, but no identity file"))
                .hint("this is a damaged repository: restore its 'repository' file from a copy"),
        );
    }
    Ok(locks)
}

/// Fails where what was found at a place would be in a new repository's way.
fn refuse_occupied(place: &str, mut found: Vec<Listed>) -> Result<()> {
    // What an interrupted creation leaves is not in the way; anything else might be.
    let leftovers = [
        "repository.tmp",
        "head",
        "head.tmp",
        names::KEYS,
        "keys.tmp",
        names::KEYS_COPY,
        "keys.copy.tmp",
        names::GENERATIONS,
    ];
    let lock_names = [names::WRITER_LOCK, names::READER_LOCK];
    found.retain(|one| {
        let name = one.name.as_str();
        !leftovers.contains(&name) && !lock_names.contains(&name)
    });
    if let Some(first) = found.first() {
        if first.name == names::IDENTITY {
            return Err(Error::failed(format!("{place} is a repository already"))
                .hint("use it as it is, or name a new or an empty directory"));
        }
        return Err(Error::new(
            ErrorKind::NoRepository,
            format!(
                "{place} is not a repository, and cannot become one: it holds files, for example '{}'",
                first.name
            ),
        )
        .hint("name a new or an empty directory"));
    }
    Ok(())
}

/// Founds a repository whose keys are there. The identity comes last: with it, the repository is
/// there.
fn found(store: &dyn Store, identity: &Identity, version: u32) -> Result<()> {
    store
        .make_folder(names::GENERATIONS)
        .map_err(|error| store_failed("make the repository", &store.place(), error))?;
    Head::empty(identity.id).write(store)?;
    let bytes = sealed::seal_as(version, names::IDENTITY, identity)?;
    sealed::write_object(store, names::IDENTITY, &bytes, Existing::Refuse)
}

/// Returns a manifest if it is the one that the head names by this digest.
fn checked(
    generation: u32,
    digest: Digest,
    (manifest, found): (Manifest, Digest),
) -> Result<Manifest> {
    if found != digest {
        let name = names::object(generation, names::MANIFEST);
        return Err(damaged(&name, "it is not the one that the head lists"));
    }
    Ok(manifest)
}

impl About {
    fn of(manifest: &Manifest) -> Self {
        Self {
            kind: manifest.kind,
            based_on: manifest.based_on.map(|base| base.generation),
            created: manifest.created,
            source: manifest.source.clone(),
            files: manifest.files,
            bytes_logical: manifest.bytes_logical,
            bytes_stored: manifest.bytes_stored,
        }
    }
}

fn not_there(place: &str) -> Error {
    let error = Error::new(
        ErrorKind::NoRepository,
        format!("there is no repository at {place}"),
    );
    match place.contains("://") {
        true => error.hint(format!(
            "check the bucket and the folder; the first 'evenkeel backup {place}' creates it"
        )),
        false => error
            .hint("check the path; 'evenkeel backup' creates a repository in an empty directory"),
    }
}

/// Makes the error for a place that is a file, or below one.
fn no_directory(place: &str) -> Error {
    let said = format!("there is no repository at {place}: it is not a directory");
    Error::new(ErrorKind::NoRepository, said).hint("check the path")
}

/// Makes the error for a generation that a store does not have.
pub(crate) fn no_generation(store: &dyn Store, generation: u32) -> Error {
    Error::usage(format!("there is no generation {generation}")).hint(list_hint(&store.place()))
}

/// Says where the numbers of the generations are seen.
pub(crate) fn list_hint(place: &str) -> String {
    format!("'evenkeel generations {place}' lists them")
}
