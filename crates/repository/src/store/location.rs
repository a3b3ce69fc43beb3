//! Where a repository is, before it is opened.

use super::{LocalStore, Store};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A place for a repository: a local directory, or any other store.
#[derive(Debug, Clone)]
pub struct Location(Arc<dyn Store>);

impl Location {
    /// A place that is no local directory.
    #[must_use]
    pub fn on(store: Arc<dyn Store>) -> Self {
        Self(store)
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        self.0.clone()
    }
}

impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Self {
        Self(Arc::new(LocalStore::new(path)))
    }
}

impl From<&PathBuf> for Location {
    fn from(path: &PathBuf) -> Self {
        path.clone().into()
    }
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Self {
        path.to_owned().into()
    }
}

impl From<&Location> for Location {
    fn from(location: &Location) -> Self {
        location.clone()
    }
}
