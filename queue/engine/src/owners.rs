//! Which connection of the server it is that owns as whom.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

static CONNECTIONS: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

fn connections() -> MutexGuard<'static, BTreeMap<u64, u64>> {
    CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The server's connection of an owner, as long as it is there.
#[derive(Debug)]
pub(crate) struct Known(u64);

impl Known {
    /// Says which connection this owner is.
    pub(crate) fn new(owner: u64, connection: u64) -> Self {
        connections().insert(owner, connection);
        Self(owner)
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        connections().remove(&self.0);
    }
}

/// The rows of each owner as rows of each connection, in the order of the connections' numbers. One that has just gone
/// is left out.
pub(crate) fn by_connection(owners: &[(u64, usize)]) -> Vec<(u64, usize)> {
    let known = connections();
    let owners = owners.iter();
    let mut rows: Vec<(u64, usize)> = owners
        .filter_map(|(owner, rows)| Some((*known.get(owner)?, *rows)))
        .collect();
    rows.sort_unstable();
    rows
}
