//! Which objects there should be, and the ones that are open.

use crate::crypt::{Keyring, Master, Seal};
use crate::fault::{damaged, store_failed};
use crate::format::frame::{self, Frame, TRAILER, TableEntry};
use crate::format::header::{HEADER_LENGTH, Header, ObjectId, ObjectKind};
use crate::format::record::{self, RECORD_HEADER, RECORD_LENGTH_MAX, RecordId, RecordKind, Within};
use crate::head::{Head, rebuild_hint};
use crate::ids::{Digest, RepositoryId};
use crate::lru::Lru;
use crate::manifest::{self, Manifest, ObjectInfo};
use crate::map::RecordRef;
use crate::mutex::held;
use crate::store::{Store, StoredObject};
use evenkeel_op::Result;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock};

/// Objects kept open: bounds the descriptors of a run.
const OPEN_MAX: usize = 96;

/// The generations of one head, their objects looked up and opened as needed.
pub(crate) struct Catalog {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) repository: RepositoryId,
    pub(crate) keys: Keyring,
    pub(crate) head: Head,
    generations: Mutex<HashMap<u32, Arc<Known>>>,
    open: Mutex<Lru<(u32, ObjectKind, u32), Arc<Opened>>>,
}

/// A generation's manifest, and the objects it still has.
pub(crate) struct Known {
    pub(crate) manifest: Manifest,
    pub(crate) objects: BTreeMap<(ObjectKind, u32), Expected>,
}

/// An object that must be there.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    pub(crate) id: ObjectId,
    pub(crate) info: ObjectInfo,
}

/// An object whose header was checked.
pub(crate) struct Opened {
    pub(crate) expected: Expected,
    pub(crate) name: String,
    pub(crate) seed: u32,
    pub(crate) seal: Seal,
    header: Header,
    object: Box<dyn StoredObject>,
    table: OnceLock<Arc<Vec<TableEntry>>>,
}

impl Catalog {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        repository: RepositoryId,
        keys: Keyring,
        head: Head,
    ) -> Self {
        Self {
            store,
            repository,
            keys,
            head,
            generations: Mutex::default(),
            open: Mutex::new(Lru::new(OPEN_MAX)),
        }
    }

    /// Returns a live or retired generation.
    pub(crate) fn generation(&self, generation: u32) -> Result<Arc<Known>> {
        if let Some(known) = held(&self.generations).get(&generation) {
            return Ok(known.clone());
        }
        let read = manifest::read(&*self.store, self.repository, &self.keys, generation);
        self.learn(generation, read)
    }

    /// Reads the manifests of these generations together, for [`Catalog::generation`]. What is wrong
    /// with one is said there.
    pub(crate) fn prepare(&self, generations: impl Iterator<Item = u32>) {
        let mut wanted: Vec<u32> = {
            let known = held(&self.generations);
            generations
                .filter(|one| !known.contains_key(one) && self.head.manifest(*one).is_some())
                .collect()
        };
        wanted.sort_unstable();
        wanted.dedup();
        let read = manifest::read_all(&*self.store, self.repository, &self.keys, &wanted);
        for (generation, read) in wanted.into_iter().zip(read) {
            // What cannot be read now is read again by whoever needs it, who then says why.
            let _ = self.learn(generation, read);
        }
    }

    fn learn(&self, generation: u32, read: Result<(Manifest, Digest)>) -> Result<Arc<Known>> {
        let known = Arc::new(self.known(generation, read)?);
        held(&self.generations).insert(generation, known.clone());
        Ok(known)
    }

    fn known(&self, generation: u32, read: Result<(Manifest, Digest)>) -> Result<Known> {
        let folder = crate::names::folder(generation);
        let digest = self.head.manifest(generation).ok_or_else(|| {
            damaged(&folder, "it is referenced, but not in the head")
                .hint(rebuild_hint(&*self.store))
        })?;
        let (manifest, found) = read?;
        if digest != found {
            let name = crate::names::object(generation, crate::names::MANIFEST);
            return Err(damaged(&name, "it is not the one that the head lists"));
        }
        let mut objects = BTreeMap::new();
        for listed in &manifest.objects {
            let Some(expected) = self.now(generation, listed)? else {
                continue;
            };
            objects.insert((expected.id.kind, expected.id.number), expected);
        }
        if self.head.is_retired(generation) {
            objects.remove(&(ObjectKind::Files, 0));
        }
        Ok(Known { manifest, objects })
    }

    /// Returns what stands in the place of an object of a manifest by now.
    fn now(&self, generation: u32, listed: &ObjectInfo) -> Result<Option<Expected>> {
        let mut changes = self.head.changes.iter();
        let change = changes.find(|one| one.generation == generation && one.object == listed.name);
        let info = match change {
            Some(change) => match &change.now {
                Some(info) => info.clone(),
                None => return Ok(None),
            },
            None => listed.clone(),
        };
        let id = ObjectId::from_file_name(self.repository, generation, &info.name);
        let id = id.ok_or_else(|| {
            let folder = crate::names::folder(generation);
            damaged(
                &folder,
                format!("it lists the unknown object '{}'", info.name),
            )
        })?;
        // Only packs are ever rewritten, each as itself.
        let same = ObjectId { revision: 0, ..id }.file_name() == listed.name;
        if !same || (id.revision > 0 && id.kind != ObjectKind::Pack) {
            let what = format!(
                "'{}' is listed as the replacement of {}",
                info.name, listed.name
            );
            return Err(damaged(&crate::names::folder(generation), what));
        }
        Ok(Some(Expected { id, info }))
    }

    /// Fails unless every generation that this one may point into is there and is the one that
    /// was there when this one was written.
    pub(crate) fn check_references(&self, generation: u32) -> Result<()> {
        let known = self.generation(generation)?;
        let references = known.manifest.references.iter();
        self.prepare(references.map(|one| one.generation));
        for reference in &known.manifest.references {
            // A generation that nothing points into any more may have been pruned.
            let Some(found) = self.head.manifest(reference.generation) else {
                continue;
            };
            if found != reference.manifest {
                let folder = crate::names::folder(reference.generation);
                let what = format!("it is not the one that generation {generation} is based on");
                return Err(damaged(&folder, what));
            }
            self.generation(reference.generation)?;
        }
        Ok(())
    }

    /// Opens an object of a generation.
    pub(crate) fn object(
        &self,
        generation: u32,
        kind: ObjectKind,
        number: u32,
    ) -> Result<Arc<Opened>> {
        let key = (generation, kind, number);
        if let Some(opened) = held(&self.open).get(&key) {
            return Ok(opened);
        }
        let known = self.generation(generation)?;
        let expected = known.objects.get(&(kind, number)).ok_or_else(|| {
            let folder = crate::names::folder(generation);
            damaged(
                &folder,
                format!("its {kind:?} {number} is referenced, but missing"),
            )
        })?;
        let master = known
            .manifest
            .master(&self.keys, kind == ObjectKind::Pack)?;
        let opened = Arc::new(Opened::open(&*self.store, expected.clone(), &master)?);
        held(&self.open).put(key, opened.clone(), 1);
        Ok(opened)
    }

    /// Reads a map record and returns its kind and body.
    pub(crate) fn record(&self, at: RecordRef, id: RecordId) -> Result<(RecordKind, Vec<u8>)> {
        let maps = self.object(at.generation, ObjectKind::Maps, 0)?;
        let broken = || {
            let what = format!("the record at {} does not match its reference", at.offset);
            damaged(&maps.name, what)
        };
        let end = at.offset.checked_add(u64::from(at.length));
        let lengths = RECORD_HEADER..=RECORD_LENGTH_MAX;
        if !lengths.contains(&(at.length as usize)) || end.is_none_or(|end| end > maps.size()) {
            return Err(broken());
        }
        let bytes = maps.read(at.offset, at.length as usize)?;
        let within = Within {
            seed: maps.seed,
            sealer: maps.seal.sealer()?,
            offset: at.offset,
        };
        record::decode(&bytes, within, id).map_err(|_| broken())
    }

    /// Reads a frame as stored and checks it.
    pub(crate) fn stored_frame(&self, pack: &Opened, number: u32) -> Result<(Vec<u8>, TableEntry)> {
        let table = pack.table()?;
        let Some(entry) = table.get(number as usize).filter(|entry| entry.length > 0) else {
            let what = format!("frame {number} is referenced, but not in it");
            return Err(damaged(&pack.name, what));
        };
        let bytes = pack.read(entry.offset, entry.length as usize)?;
        frame::check(&bytes, (pack.seed, pack.is_sealed()), number, entry)
            .map_err(|why| damaged(&pack.name, format!("frame {number}: {why}")))?;
        Ok((bytes, *entry))
    }

    /// Reads, checks and decompresses a frame.
    pub(crate) fn frame(
        &self,
        generation: u32,
        pack: u32,
        number: u32,
        decompressor: &mut zstd::bulk::Decompressor<'_>,
    ) -> Result<Frame> {
        let pack = self.object(generation, ObjectKind::Pack, pack)?;
        self.opened_frame(&pack, number, decompressor)
    }

    /// Does the same with a pack that is open.
    pub(crate) fn opened_frame(
        &self,
        pack: &Opened,
        number: u32,
        decompressor: &mut zstd::bulk::Decompressor<'_>,
    ) -> Result<Frame> {
        let sealer = pack.seal.sealer()?;
        let (bytes, entry) = self.stored_frame(pack, number)?;
        frame::decode(&bytes, (pack.seed, sealer), number, &entry, decompressor)
            .map_err(|why| damaged(&pack.name, format!("frame {number}: {why}")))
    }
}

impl Opened {
    /// Opens an object and checks its length and header.
    pub(crate) fn open(store: &dyn Store, expected: Expected, master: &Master) -> Result<Self> {
        let name = expected.id.name();
        let failed = |error| store_failed("read", &name, error);
        let object = store.open(&name).map_err(failed)?;
        let (size, wanted) = (object.size(), expected.info.size);
        if size != wanted {
            let what = format!("it is {size} bytes long, but {wanted} were written");
            return Err(damaged(&name, what));
        }
        let mut header = [0; HEADER_LENGTH];
        object.read_exact_at(0, &mut header).map_err(failed)?;
        let is_sealed = !matches!(master, Master::Plain);
        let header = Header::read(expected.id, is_sealed, &header)?;
        Ok(Self {
            seed: header.seed(),
            seal: Seal::of(&header, master),
            header,
            expected,
            name,
            object,
            table: OnceLock::new(),
        })
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.header.is_sealed()
    }

    pub(crate) fn size(&self) -> u64 {
        self.object.size()
    }

    pub(crate) fn read_into(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.object
            .read_exact_at(offset, buffer)
            .map_err(|error| store_failed("read", &self.name, error))
    }

    /// Reads `length` bytes. The caller has made sure that they lie inside the object.
    pub(crate) fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.read_into(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Returns a pack's table of frames, read and checked against the manifest once.
    pub(crate) fn table(&self) -> Result<Arc<Vec<TableEntry>>> {
        if let Some(table) = self.table.get() {
            return Ok(table.clone());
        }
        let broken = |why: &dyn std::fmt::Display| damaged(&self.name, format!("its table: {why}"));
        let size = self.size();
        let mut trailer = [0; TRAILER];
        let trailer_at = size
            .checked_sub((TRAILER + HEADER_LENGTH) as u64)
            .ok_or_else(|| damaged(&self.name, "it is too short"))?
            + HEADER_LENGTH as u64;
        self.read_into(trailer_at, &mut trailer)?;
        let table_at = frame::table_offset(&trailer, size).map_err(|why| broken(&why))?;
        let tail = self.read(table_at, (size - table_at) as usize)?;
        let table = frame::decode_tail(&tail, self.seed, HEADER_LENGTH as u64, table_at)
            .map_err(|why| broken(&why))?;
        if pack_hash(&self.header, &tail) != self.expected.info.hash {
            return Err(broken(&"it is not the one that was committed"));
        }
        Ok(self.table.get_or_init(|| Arc::new(table)).clone())
    }
}

/// Returns the hash that a manifest holds for a pack.
pub(crate) fn pack_hash(header: &Header, tail: &[u8]) -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&header.encode());
    hasher.update(tail);
    Digest(*hasher.finalize().as_bytes())
}
