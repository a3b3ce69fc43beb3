//! What everything opened in a store shares, and how each object is asked for and written.

use crate::fault::{Asked, io_error, is_passing};
use crate::lease::Held;
use crate::retry::{Tries, retried};
use crate::way::Tell;
use crate::window::Windows;
use evenkeel_repository::store::Existing;
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, Error as Fault, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMode, PutOptions, PutPayload, UpdateVersion,
};
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

/// Objects that are opened, or folders that are listed, at a time.
pub(crate) const TOGETHER: usize = 16;

/// How objects are kept.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Storage class of what is large, by the store's own name (`STANDARD_IA`). Small objects are
    /// read by every run and stay in the default one.
    pub storage_class: Option<String>,
    /// How long a lease lasts that nobody renews.
    pub lease: Duration,
    /// Whom to tell that the store cannot be reached for now.
    pub tell: Tell,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            storage_class: None,
            lease: Duration::from_secs(60),
            tell: Tell::default(),
        }
    }
}

/// What everything opened in a store shares.
pub(crate) struct Shared {
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) runtime: Option<Runtime>,
    pub(crate) prefix: String,
    pub(crate) place: String,
    pub(crate) options: StoreOptions,
    /// What the objects at the top were when they were last read or written: only those are ever
    /// replaced.
    pub(crate) seen: Mutex<HashMap<String, UpdateVersion>>,
    pub(crate) leases: Held,
    pub(crate) windows: Windows,
    pub(crate) uploads: Arc<Semaphore>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
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
        // As it is: a name with a percent sign must be found under that name by others too, and is
        // listed as it was written.
        Path::parse(&whole).unwrap_or_else(|_| Path::from(whole))
    }

    /// Asks what an object is.
    pub(crate) async fn meta(&self, name: &str) -> object_store::Result<ObjectMeta> {
        let path = self.path(name);
        retried!(self.objects.head(&path))
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
        let class = self.options.storage_class.as_ref().filter(|_| large);
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
    let read = retried!(async {
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

/// Asks for the first bytes of an object, and for what it is.
pub(crate) fn head_of(length: u64) -> GetOptions {
    GetOptions {
        range: Some((0..length).into()),
        ..GetOptions::default()
    }
}
