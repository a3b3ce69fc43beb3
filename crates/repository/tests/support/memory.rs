//! A store in memory: fast, and easy to damage.

use evenkeel_repository::store::{
    Existing, Listed, Lock, LockMode, NewObject, Store, StoredObject, UNFINISHED,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

pub type Objects = BTreeMap<String, Arc<Vec<u8>>>;

#[derive(Debug, Default)]
struct Inner {
    objects: Objects,
    folders: BTreeSet<String>,
    /// Objects with this in their names are not removed.
    kept: Option<&'static str>,
}

#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
}

impl MemoryStore {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    pub fn objects(&self) -> Objects {
        self.inner().objects.clone()
    }

    /// Refuses from now on to remove objects with this in their names, as a retention does.
    pub fn keep(&self, part: Option<&'static str>) {
        self.inner().kept = part;
    }

    /// Makes a store of these objects; folders are those the names have.
    pub fn of(objects: Objects) -> Self {
        let mut folders: BTreeSet<String> = ["".to_owned(), "generations".to_owned()].into();
        for name in objects.keys() {
            let mut name = name.as_str();
            while let Some((folder, _)) = name.rsplit_once('/') {
                folders.insert(folder.to_owned());
                name = folder;
            }
        }
        Self::with_folders(objects, folders)
    }

    pub fn with_folders(objects: Objects, folders: BTreeSet<String>) -> Self {
        let inner = Inner {
            objects,
            folders,
            kept: None,
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
        }
    }
}

fn missing(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, name.to_owned())
}

impl Store for MemoryStore {
    fn create(&self, name: &str, existing: Existing) -> io::Result<Box<dyn NewObject>> {
        Ok(Box::new(New {
            store: self.clone(),
            name: name.to_owned(),
            existing,
            bytes: Vec::new(),
        }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StoredObject>> {
        let found = self.inner().objects.get(name).cloned();
        Ok(Box::new(Stored(found.ok_or_else(|| missing(name))?)))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Listed>> {
        let inner = self.inner();
        if !inner.folders.contains(folder) {
            return Err(missing(folder));
        }
        let direct = |name: &str| {
            let (parent, last) = name.rsplit_once('/').unwrap_or(("", name));
            (parent == folder && !last.is_empty()).then(|| last.to_owned())
        };
        let objects = inner.objects.iter().filter_map(|(name, bytes)| {
            Some(Listed {
                name: direct(name)?,
                size: bytes.len() as u64,
                is_folder: false,
            })
        });
        let folders = inner.folders.iter().filter_map(|name| {
            Some(Listed {
                name: direct(name)?,
                size: 0,
                is_folder: true,
            })
        });
        Ok(objects.chain(folders).collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut inner = self.inner();
        if inner.kept.is_some_and(|part| name.contains(part)) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        inner.objects.remove(name);
        Ok(())
    }

    fn make_folder(&self, name: &str) -> io::Result<()> {
        self.inner().folders.insert(name.to_owned());
        Ok(())
    }

    fn remove_folder(&self, name: &str) -> io::Result<()> {
        assert!(
            self.list(name).is_ok_and(|found| found.is_empty()),
            "{name} is not empty"
        );
        self.inner().folders.remove(name);
        Ok(())
    }

    fn sync_folder(&self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self, _name: &str, _mode: LockMode) -> io::Result<Option<Box<dyn Lock>>> {
        Ok(Some(Box::new(NoLock)))
    }

    fn place(&self) -> String {
        "memory".to_owned()
    }
}

#[derive(Debug)]
struct NoLock;

impl Lock for NoLock {}

struct Stored(Arc<Vec<u8>>);

impl StoredObject for Stored {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = offset as usize;
        let bytes = self.0.get(start..start + buffer.len());
        let bytes = bytes.ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}

struct New {
    store: MemoryStore,
    name: String,
    existing: Existing,
    bytes: Vec<u8>,
}

impl NewObject for New {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        assert!(!self.name.ends_with(UNFINISHED));
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        let mut inner = self.store.inner.lock().unwrap();
        if self.existing == Existing::Refuse && inner.objects.contains_key(&self.name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        inner.objects.insert(self.name, Arc::new(self.bytes));
        Ok(())
    }
}
