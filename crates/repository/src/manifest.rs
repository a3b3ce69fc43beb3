//! What a generation is: its manifest, the last object written, without which it does not exist.

use crate::crypt::{Access, Hex, Keyring, Master, RunKeys, Sealer};
use crate::fault::damaged;
use crate::format::header::HEADER_LENGTH;
use crate::ids::{Digest, RepositoryId};
use crate::names;
use crate::sealed;
use crate::store::Store;
use evenkeel_op::{Context, Error, Result};
use serde::{Deserialize, Serialize};

/// How a generation relates to earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GenerationKind {
    /// Compared with nothing; everything was stored.
    Full,
    /// Compared with the generation before it.
    Incremental,
    /// Compared with an earlier generation that the caller chose.
    Differential,
}

impl GenerationKind {
    /// Returns the name used in JSON output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Incremental => "incremental",
            Self::Differential => "differential",
        }
    }
}

/// Another generation, and the digest of the manifest it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GenerationRef {
    /// Its number.
    pub generation: u32,
    /// Blake3 of its manifest object.
    pub manifest: Digest,
}

/// An object of a generation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectInfo {
    /// Name inside the generation's folder.
    pub name: String,
    /// Length in bytes.
    pub size: u64,
    /// Blake3 of a pack's header, table and trailer (whose checksums cover the rest), or of all
    /// bytes of any other object.
    pub hash: Digest,
}

/// What a generation is and which objects it has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The repository it was written for.
    pub repository: RepositoryId,
    /// Its number: 1, 2, 3 … in the order of writing, whatever the clock says.
    pub generation: u32,
    /// How it relates to earlier ones.
    pub kind: GenerationKind,
    /// What it was compared with.
    pub based_on: Option<GenerationRef>,
    /// When the run began.
    pub created: jiff::Timestamp,
    /// What was backed up, as the caller names it.
    pub source: String,
    /// Regular files in it.
    pub files: u64,
    /// Sum of their lengths, in bytes.
    pub bytes_logical: u64,
    /// Bytes that this run added to the repository, its manifest not counted.
    pub bytes_stored: u64,
    /// Replication coordinates, as the caller gave them.
    pub coordinates: serde_json::Value,
    /// Report fields, settings, roots: as the caller gave them.
    pub facts: serde_json::Value,
    /// The objects that this run wrote.
    pub objects: Vec<ObjectInfo>,
    /// Every older generation that its maps may point into.
    pub references: Vec<GenerationRef>,
    /// How it is encrypted. Then `source`, `coordinates` and `facts` are empty without a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sealed: Option<Sealed>,
}

/// What an encrypted generation's manifest has more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sealed {
    /// Whose keys: an epoch of `keys`.
    pub(crate) epoch: u32,
    /// The key of packs, wrapped for the epoch's reading identity.
    data_key: Hex,
    /// 20 random bytes.
    salt: Hex,
    /// What only those who may write or read see; it vouches for all that stands in clear.
    body: Hex,
}

/// What only those who may write or read see.
#[derive(Serialize, Deserialize)]
struct Hidden {
    source: String,
    coordinates: serde_json::Value,
    facts: serde_json::Value,
}

impl Manifest {
    /// Returns the manifest as those see it who have no key, without its sealed part.
    fn in_clear(&self) -> Result<Vec<u8>> {
        let mut clear = self.clone();
        clear.source = String::new();
        clear.coordinates = serde_json::Value::Null;
        clear.facts = serde_json::Value::Null;
        if let Some(sealed) = &mut clear.sealed {
            sealed.body = Hex::default();
        }
        serde_json::to_vec(&clear).context(|| "failed to render a manifest")
    }

    fn sealer(&self, metadata: &crate::crypt::Key, salt: &Hex) -> Sealer {
        let place = [
            self.repository.0.as_slice(),
            &self.generation.to_le_bytes(),
            &salt.0,
        ];
        let key = metadata.derive("evenkeel manifest key v1", &place);
        Sealer::new(&key, &[0; HEADER_LENGTH])
    }

    /// Seals what is nobody's business, for the store; `self` stays as it is.
    pub(crate) fn seal(&mut self, keys: &RunKeys) -> Result<Self> {
        let mut salt = Hex(vec![0; 20]);
        crate::crypt::random(&mut salt.0)?;
        let hidden = Hidden {
            source: self.source.clone(),
            coordinates: self.coordinates.clone(),
            facts: self.facts.clone(),
        };
        let mut body = serde_json::to_vec(&hidden).context(|| "failed to render a manifest")?;
        self.sealed = Some(Sealed {
            epoch: keys.epoch,
            data_key: keys.wrapped.clone(),
            salt: salt.clone(),
            body: Hex::default(),
        });
        self.sealer(&keys.metadata, &salt)
            .seal(0, &self.in_clear()?, &mut body, 0)
            .map_err(|_| Error::failed("a manifest is too long to encrypt"))?;
        let mut stored = self.clone();
        stored.source = String::new();
        stored.coordinates = serde_json::Value::Null;
        stored.facts = serde_json::Value::Null;
        if let Some(sealed) = &mut stored.sealed {
            sealed.body = Hex(body);
        }
        Ok(stored)
    }

    /// Opens the sealed part, if the key is at hand. `name` is the object, for messages.
    fn open(&mut self, name: &str, keys: &Keyring) -> Result<()> {
        let Some(sealed) = &self.sealed else {
            return match keys.is_encrypted() {
                false => Ok(()),
                true => Err(damaged(name, "it is not encrypted, unlike the repository")),
            };
        };
        if !keys.is_encrypted() {
            return Err(damaged(name, "it is encrypted, unlike the repository"));
        }
        if keys.access() == Access::Locked {
            return Ok(());
        }
        let sealer = self.sealer(keys.metadata(sealed.epoch)?, &sealed.salt);
        let forged = || damaged(name, "its author did not have the keys");
        let opened = sealer.open(0, &self.in_clear()?, &sealed.body.0);
        let hidden: Hidden = serde_json::from_slice(&opened.map_err(|_| forged())?)
            .map_err(|_| damaged(name, "its encrypted part is not valid"))?;
        self.source = hidden.source;
        self.coordinates = hidden.coordinates;
        self.facts = hidden.facts;
        Ok(())
    }

    /// Returns what the keys of this generation's objects are derived from.
    pub(crate) fn master(&self, keys: &Keyring, is_pack: bool) -> Result<Master> {
        let Some(sealed) = &self.sealed else {
            return Ok(Master::Plain);
        };
        let access = keys.access();
        let needed = if is_pack {
            Access::Reader
        } else {
            Access::Writer
        };
        if access < needed {
            return Ok(Master::Missing(access));
        }
        let name = names::object(self.generation, names::MANIFEST);
        Ok(Master::Key(match is_pack {
            true => keys.data(sealed.epoch, &sealed.data_key, &name)?,
            false => keys.metadata(sealed.epoch)?.clone(),
        }))
    }
}

/// Reads a generation's manifest; returns it and its digest.
pub(crate) fn read(
    store: &dyn Store,
    repository: RepositoryId,
    keys: &Keyring,
    generation: u32,
) -> Result<(Manifest, Digest)> {
    let name = names::object(generation, names::MANIFEST);
    let bytes = sealed::read_object(store, &name)?;
    decode(&bytes, repository, keys, generation)
}

/// Reads the manifests of many generations together, in the order of their numbers.
pub(crate) fn read_all(
    store: &dyn Store,
    repository: RepositoryId,
    keys: &Keyring,
    generations: &[u32],
) -> Vec<Result<(Manifest, Digest)>> {
    let name = |generation: &u32| names::object(*generation, names::MANIFEST);
    let names: Vec<String> = generations.iter().map(name).collect();
    let read = sealed::read_objects(store, &names);
    let each = read.into_iter().zip(generations);
    each.map(|(bytes, generation)| decode(&bytes?, repository, keys, *generation))
        .collect()
}

fn decode(
    bytes: &[u8],
    repository: RepositoryId,
    keys: &Keyring,
    generation: u32,
) -> Result<(Manifest, Digest)> {
    let name = names::object(generation, names::MANIFEST);
    let mut manifest: Manifest = sealed::unseal(names::MANIFEST, &name, bytes)?;
    if manifest.repository != repository {
        return Err(damaged(&name, "it belongs to another repository"));
    }
    if manifest.generation != generation {
        let found = manifest.generation;
        return Err(damaged(&name, format!("it belongs to generation {found}")));
    }
    manifest.open(&name, keys)?;
    Ok((manifest, Digest::of(bytes)))
}
