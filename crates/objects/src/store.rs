//! The store itself.

use crate::fault::{Asked, io_error};
use crate::lease::{self, Lease};
use crate::reading::Reading;
use crate::retry::retried;
use crate::shared::{Shared, StoreOptions, TOGETHER};
use crate::window::Windows;
use crate::writing::Writing;
use evenkeel_op::Context;
use evenkeel_repository::store::{
    Existing, Listed, Lock, LockMode, NewObject, Store, StoredObject,
};
use object_store::path::Path;
use object_store::{Error as Fault, ObjectStore, ObjectStoreExt};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use tokio::runtime::Builder;
use tokio::sync::Semaphore;

/// Parts of uploads that are on their way at a time, all objects together.
const UPLOADS: usize = 6;

/// A place in an object store.
#[derive(Clone)]
pub struct ObjectsStore(pub(crate) Arc<Shared>);

impl fmt::Debug for ObjectsStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectsStore({})", self.0.place)
    }
}

impl ObjectsStore {
    /// A store over any object store: what a prefix of it holds.
    pub fn new(
        objects: Arc<dyn ObjectStore>,
        prefix: Path,
        place: String,
        options: StoreOptions,
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
            options,
            seen: Mutex::default(),
            leases: lease::Held::default(),
            windows: Windows::default(),
            uploads: Arc::new(Semaphore::new(UPLOADS)),
        })))
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
        let removal = async { retried!(objects.delete(&path)) };
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
    let found = retried!(objects.list_with_delimiter(Some(&folder)))?;
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
