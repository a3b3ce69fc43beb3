//! The two locks of a repository; see the table in the crate's documentation.

use crate::fault::store_failed;
use crate::names::{READER_LOCK, WRITER_LOCK};
use crate::store::{Lock, LockMode, Store};
use evenkeel_op::{Error, ErrorKind, Result};
use std::time::{Duration, Instant};

/// How often a lock is tried while waiting for it.
const RETRY: Duration = Duration::from_millis(50);

fn take(store: &dyn Store, name: &str, mode: LockMode, wait: Duration) -> Result<Box<dyn Lock>> {
    let deadline = Instant::now() + wait;
    loop {
        let tried = store
            .try_lock(name, mode)
            .map_err(|error| store_failed("lock", name, error))?;
        if let Some(lock) = tried {
            return Ok(lock);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let who = match (name, mode) {
                (WRITER_LOCK, _) => "another backup, forget or prune is running",
                (_, LockMode::Shared) => "a forget or prune is running",
                (_, LockMode::Exclusive) => "a restore, verify or mount is running",
            };
            let holder = store.holder(name);
            let shown = holder.as_ref().map(|holder| format!(" ({holder})"));
            let (place, shown) = (store.place(), shown.unwrap_or_default());
            return Err(Error::new(
                ErrorKind::Busy,
                format!("the repository {place} is busy: {who}{shown}"),
            )
            .held_by(holder)
            .hint("run it again when that has ended"));
        }
        std::thread::sleep(RETRY.min(left));
    }
}

/// Takes the lock of whoever adds or removes objects.
pub(crate) fn writer(store: &dyn Store, wait: Duration) -> Result<Box<dyn Lock>> {
    take(store, WRITER_LOCK, LockMode::Exclusive, wait)
}

/// Takes the lock of whoever reads generations.
pub(crate) fn reader(store: &dyn Store, wait: Duration) -> Result<Box<dyn Lock>> {
    take(store, READER_LOCK, LockMode::Shared, wait)
}

/// Takes both locks of whoever removes what others may be reading.
pub(crate) fn remover(store: &dyn Store, wait: Duration) -> Result<[Box<dyn Lock>; 2]> {
    let writer = take(store, WRITER_LOCK, LockMode::Exclusive, wait)?;
    let readers = take(store, READER_LOCK, LockMode::Exclusive, wait)?;
    Ok([writer, readers])
}
