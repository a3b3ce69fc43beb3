//! What stands for the archived logs of a repository, and for a run that adds to them.

use crate::crypt::{Keyring, RunKeys};
use crate::ids::RepositoryId;
use crate::repository::Repository;
use crate::store::Store;
use std::sync::Arc;

/// The archived logs of a repository. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Logs {
    pub(super) store: Arc<dyn Store>,
    pub(super) repository: RepositoryId,
    pub(super) keys: Keyring,
}

impl Repository {
    /// Returns its archived logs.
    #[must_use]
    pub fn logs(&self) -> Logs {
        Logs {
            store: self.store().clone(),
            repository: self.id(),
            keys: self.keys().clone(),
        }
    }
}

/// Adds segments.
pub struct LogWriter {
    pub(super) logs: Logs,
    pub(super) keys: Option<RunKeys>,
}
