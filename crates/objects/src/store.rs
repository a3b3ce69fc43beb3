//! The store itself.

use crate::fault::{Asked, io_error, is_passing};
use crate::lease::{self, Lease};
use crate::patience::{Tries, patiently};
use crate::reading::Reading;
use crate::way::Tell;
use crate::window::Windows;
use crate::writing::Writing;
use evenkeel_op::Context;
use evenkeel_repository::store::{
    Existing, Listed, Lock, LockMode, NewObject, Store, StoredObject,
};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, Error as Fault, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMode, PutOptions, PutPayload, UpdateVersion,
};
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

/// Parts of uploads that are on their way at a time, all objects together.
const UPLOADS: usize = 6;

/// Objects that are opened, or folders that are listed, at a time.
pub(crate) const TOGETHER: usize = 16;

/// How objects are kept.
#[derive(Debug, Clone)]
pub struct Manners {
    /// Storage class of what is large, by the store's own name (`STANDARD_IA`). Small objects are
    /// read by every run and stay in the default one.
    pub storage_class: Option<String>,
    /// How long a lease lasts that nobody renews.
    pub lease: Duration,
    /// Whom to tell that the store cannot be reached for now.
    pub tell: Tell,
}

impl Default for Manners {
    fn default() -> Self {
        Self {
            storage_class: None,
            lease: Duration::from_secs(60),
            tell: Tell::default(),
        }
    }
}

/// A place in an object store.
#[derive(Clone)]
pub struct ObjectsStore(pub(crate) Arc<Shared>);

/// What everything opened in a store shares.
pub(crate) struct Shared {
    pub(crate) objects: Arc<dyn ObjectStore>,
    runtime: Option<Runtime>,
    prefix: String,
    place: String,
    pub(crate) manners: Manners,
    /// What the objects at the top were when they were last read or written: only those are ever
    /// replaced.
    seen: Mutex<HashMap<String, UpdateVersion>>,
    leases: lease::Held,
    pub(crate) windows: Windows,
    pub(crate) uploads: Arc<Semaphore>,
}

impl fmt::Debug for ObjectsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectsStore({})", self.0.place)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl ObjectsStore {
    /// A store over any object store: what a prefix of it holds.
    pub fn new(
        objects: Arc<dyn ObjectStore>,
        prefix: Path,
        place: String,
        manners: Manners,
    ) -> evenkeel_op::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("objects")
            .enable_all()
            .build()
            .context(|| "cannot start the threads that talk to the store")?;
        Ok(Self(Arc::new(Shared {
            objects,
            runtime: Some(runtime),
            prefix: prefix.to_string(),
            place: place.trim_end_matches('/').to_owned(),
            manners,
            seen: Mutex::default(),
            leases: lease::Held::default(),
            windows: Windows::default(),
            uploads: Arc::new(Semaphore::new(UPLOADS)),
        })))
    }
}

impl Shared {
    /// Runs a request to its end.
    pub(crate) fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime().block_on(what)
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("there until the drop")
    }

    pub(crate) fn path(&self, name: &str) -> Path {
        let whole = match (self.prefix.as_str(), name) {
            ("", name) => name.to_owned(),
            (prefix, "") => return Path::from(prefix),
            (prefix, name) => format!("{}/{name}", Path::from(prefix)),
        };
        // As it is: a name with a percent sign is to be found under that name by others too, and
        // is listed as it was written.
        Path::parse(&whole).unwrap_or_else(|_| Path::from(whole))
    }

    /// Asks what an object is.
    pub(crate) async fn meta(&self, name: &str) -> object_store::Result<ObjectMeta> {
        let path = self.path(name);
        patiently!(self.objects.head(&path))
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<String, UpdateVersion>> {
        self.seen.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Remembers what an object was, if it is one that may be replaced.
    pub(crate) fn saw(&self, name: &str, e_tag: Option<String>, version: Option<String>) {
        if !name.contains('/') {
            self.seen()
                .insert(name.to_owned(), UpdateVersion { e_tag, version });
        }
    }

    /// Fails when a lock that was taken here may be someone else's by now.
    pub(crate) fn check_leases(&self) -> io::Result<()> {
        self.leases.check()
    }

    pub(crate) fn attributes(&self, large: bool) -> Attributes {
        let class = self.manners.storage_class.as_ref().filter(|_| large);
        let mut attributes = Attributes::new();
        if let Some(class) = class {
            attributes.insert(Attribute::StorageClass, class.clone().into());
        }
        attributes
    }

    /// Writes a whole object.
    pub(crate) fn put(&self, name: &str, existing: Existing, bytes: Vec<u8>) -> io::Result<()> {
        let mode = match existing {
            Existing::Refuse => PutMode::Create,
            Existing::Replace => match self.seen().get(name) {
                Some(version) => PutMode::Update(version.clone()),
                None => PutMode::Overwrite,
            },
        };
        let large = name.contains("/pack-") && bytes.len() > 128 << 10;
        let attributes = self.attributes(large);
        let path = self.path(name);
        let put = put_surely(&*self.objects, &path, bytes.into(), mode, attributes);
        let made = self
            .wait(put)
            .map_err(|error| io_error(Asked::Write, error))?;
        self.saw(name, made.e_tag, made.version);
        Ok(())
    }
}

/// A conditional PUT that survives a lost answer: when the store says that the condition does not
/// hold any more, it may be by our own doing.
pub(crate) async fn put_surely(
    objects: &dyn ObjectStore,
    path: &Path,
    payload: PutPayload,
    mode: PutMode,
    attributes: Attributes,
) -> object_store::Result<UpdateVersion> {
    let mut tries = Tries::new();
    loop {
        let mut options = PutOptions::from(mode.clone());
        options.attributes = attributes.clone();
        match objects.put_opts(path, payload.clone(), options).await {
            Ok(made) => {
                return Ok(UpdateVersion {
                    e_tag: made.e_tag,
                    version: made.version,
                });
            }
            Err(error @ (Fault::AlreadyExists { .. } | Fault::Precondition { .. })) => {
                return match ours(objects, path, &payload).await {
                    Some(version) => Ok(version),
                    None => Err(error),
                };
            }
            Err(error) if is_passing(&error) && tries.again().await => {}
            Err(error) => return Err(error),
        }
    }
}

/// What is there, if it is what we wanted to be there.
async fn ours(
    objects: &dyn ObjectStore,
    path: &Path,
    payload: &PutPayload,
) -> Option<UpdateVersion> {
    let read = patiently!(async {
        let there = objects.get(path).await?;
        let version = version_of(&there.meta);
        Ok((version, there.bytes().await?))
    });
    let (version, bytes) = read.ok()?;
    let wanted: Vec<u8> = payload.iter().flat_map(|part| part.to_vec()).collect();
    (bytes == wanted).then_some(version)
}

pub(crate) fn version_of(meta: &ObjectMeta) -> UpdateVersion {
    UpdateVersion {
        e_tag: meta.e_tag.clone(),
        version: meta.version.clone(),
    }
}

/// Stands for a lease that could not be written.
#[derive(Debug)]
struct NoLease;

impl Lock for NoLease {}

impl Store for ObjectsStore {
    fn create(&self, name: &str, existing: Existing) -> io::Result<Box<dyn NewObject>> {
        Ok(Box::new(Writing::new(self.0.clone(), name, existing)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StoredObject>> {
        Ok(Box::new(Reading::open(self.0.clone(), name)?))
    }

    fn open_all(&self, names: &[String]) -> Vec<io::Result<Box<dyn StoredObject>>> {
        let opened = Reading::open_all(&self.0, names).into_iter();
        let boxed = |one| Box::new(one) as Box<dyn StoredObject>;
        opened.map(|one| one.map(boxed)).collect()
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Listed>> {
        let asked = listing(self.0.objects.clone(), self.0.path(folder));
        listed(folder, self.0.wait(asked))
    }

    fn list_all(&self, folders: &[String]) -> Vec<io::Result<Vec<Listed>>> {
        let turns = Arc::new(Semaphore::new(TOGETHER));
        let ask = |folder: &String| {
            let (asked, turns) = (
                listing(self.0.objects.clone(), self.0.path(folder)),
                turns.clone(),
            );
            self.0.runtime().spawn(async move {
                let _turn = turns.acquire().await;
                asked.await
            })
        };
        let asked: Vec<_> = folders.iter().map(ask).collect();
        let each = asked.into_iter().zip(folders);
        each.map(|(asked, folder)| listed(folder, self.0.wait(asked).map_err(io::Error::other)?))
            .collect()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.check_leases()?;
        let (objects, path) = (&self.0.objects, self.0.path(name));
        let removal = async { patiently!(objects.delete(&path)) };
        match self.0.wait(removal) {
            Ok(()) | Err(Fault::NotFound { .. }) => Ok(()),
            Err(error) => Err(io_error(Asked::Remove, error)),
        }
    }

    fn make_folder(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn remove_folder(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn sync_folder(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self, name: &str, mode: LockMode) -> io::Result<Option<Box<dyn Lock>>> {
        match Lease::take(&self.0, name, mode) {
            Ok(lease) => Ok(lease.map(|lease| {
                self.0.leases.add(&lease);
                Box::new(lease) as Box<dyn Lock>
            })),
            // Credentials that may only read: reading needs no more than that.
            Err(Fault::PermissionDenied { .. }) if mode == LockMode::Shared => {
                Ok(Some(Box::new(NoLease)))
            }
            Err(error) => Err(io_error(Asked::Write, error)),
        }
    }

    fn holder(&self, name: &str) -> Option<String> {
        lease::holder(&self.0, name)
    }

    fn place(&self) -> String {
        self.0.place.clone()
    }
}

/// Asks what lies in a folder.
async fn listing(objects: Arc<dyn ObjectStore>, folder: Path) -> Result<Vec<Listed>, Fault> {
    let found = patiently!(objects.list_with_delimiter(Some(&folder)))?;
    let folders = found.common_prefixes.iter().map(|path| (path, 0, true));
    // Some stores, and people who click "make a folder", leave an object named as the folder.
    let inside = found.objects.iter().filter(|one| one.location != folder);
    let objects = inside.map(|one| (&one.location, one.size, false));
    let named = folders
        .chain(objects)
        .filter_map(|(path, size, is_folder)| {
            let name = path.filename()?.to_owned();
            Some(Listed {
                name,
                size,
                is_folder,
            })
        });
    Ok(named.collect())
}

/// A folder is there when something is in it; the place itself always is.
fn listed(folder: &str, found: Result<Vec<Listed>, Fault>) -> io::Result<Vec<Listed>> {
    let all = found.map_err(|error| io_error(Asked::List, error))?;
    if all.is_empty() && !folder.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(all)
}

/// Asks for the first bytes of an object, and for what it is.
pub(crate) fn head_of(length: u64) -> GetOptions {
    GetOptions {
        range: Some((0..length).into()),
        ..GetOptions::default()
    }
}
