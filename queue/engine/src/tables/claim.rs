//! A name that one thread has to itself: it opens, closes, makes, renames or drops a table, and whoever wants
//! the same name waits. Nobody else does.

use super::{Known, Tables};
use crate::fault::Fault;
use std::path::{Path, PathBuf};
use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a call waits for a name that another thread has or is about to give a table.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Names that one thread has to itself, as long as it is there. Who wants one of them waits.
pub(super) struct Claim<'a> {
    tables: &'a Tables,
    names: Vec<PathBuf>,
}

impl<'a> Claim<'a> {
    pub(super) fn new(
        tables: &'a Tables,
        mut known: MutexGuard<'_, Known>,
        names: &[&Path],
    ) -> Self {
        let names: Vec<PathBuf> = names.iter().map(|name| name.to_path_buf()).collect();
        known.claimed.extend(names.iter().cloned());
        Self { tables, names }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut known = self.tables.known();
        for name in &self.names {
            known.claimed.remove(name);
        }
        drop(known);
        self.tables.changed.notify_all();
    }
}

impl Tables {
    /// What is known, once no thread has this name to itself or is about to give it to another table;
    /// and none has the other one to itself. None: it did not come to that in time.
    pub(super) fn settled(
        &self,
        path: &Path,
        other: Option<&Path>,
        until: Instant,
    ) -> Option<MutexGuard<'_, Known>> {
        let names = [Some(path), other];
        self.free(until, |known| {
            let mut names = names.iter().flatten();
            !known.leaving.contains_key(path) && names.all(|name| !known.claimed.contains(*name))
        })
    }

    /// What is known, once that is so. None: it did not come to that in time.
    pub(super) fn free(
        &self,
        until: Instant,
        is_free: impl Fn(&Known) -> bool,
    ) -> Option<MutexGuard<'_, Known>> {
        let mut known = self.known();
        loop {
            if is_free(&known) {
                return Some(known);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let woken = self.changed.wait_timeout(known, left);
            known = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Has names to itself, whoever is about to get them.
    pub(super) fn claim_now(&self, names: &[&Path]) -> Result<Claim<'_>, Fault> {
        let known = self.free(Instant::now() + PATIENCE, |known| {
            names.iter().all(|name| !known.claimed.contains(*name))
        });
        let known = known.ok_or_else(|| busy(names[0]))?;
        Ok(Claim::new(self, known, names))
    }

    /// Has a name to itself, and another one with it.
    pub(super) fn claim(&self, path: &Path, other: Option<&Path>) -> Result<Claim<'_>, Fault> {
        let known = self.settled(path, other, Instant::now() + PATIENCE);
        let known = known.ok_or_else(|| busy(path))?;
        let names: Vec<&Path> = [Some(path), other].into_iter().flatten().collect();
        Ok(Claim::new(self, known, &names))
    }
}

pub(super) fn busy(path: &Path) -> Fault {
    Fault::misuse(format!(
        "the queue {} is still being opened or altered: try again later",
        path.display()
    ))
}
