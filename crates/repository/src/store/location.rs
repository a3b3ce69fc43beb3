//! Where a repository is, before it is opened, and what opens it.

use super::{LocalStore, Store};
use crate::crypt::{Credentials, Encrypt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A place for a repository: a local directory, or any other store.
#[derive(Debug, Clone)]
pub struct Location {
    store: Arc<dyn Store>,
    credentials: Credentials,
    encrypt: Encrypt,
}

impl Location {
    /// A place that is no local directory.
    #[must_use]
    pub fn on(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            credentials: Credentials::default(),
            encrypt: Encrypt::default(),
        }
    }

    /// Adds what opens the repository, if it is encrypted.
    #[must_use]
    pub fn opened_with(mut self, credentials: Credentials) -> Self {
        self.credentials = credentials;
        self
    }

    /// Adds for whom the repository is encrypted when it is made here.
    #[must_use]
    pub fn encrypted_for(mut self, encrypt: Encrypt) -> Self {
        self.encrypt = encrypt;
        self
    }

    /// Returns what opens the repository.
    #[must_use]
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Returns for whom the repository must be encrypted.
    #[must_use]
    pub fn encrypt(&self) -> &Encrypt {
        &self.encrypt
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }
}

impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Self {
        Self::on(Arc::new(LocalStore::new(path)))
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
