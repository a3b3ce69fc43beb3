//! Threads of a dump, and what they share.

use evenkeel_op::Result;
use evenkeel_op::workers::all_joined;
use evenkeel_wire::Connection;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Has each connection worked on by a thread of its own, and returns the first error.
pub(super) fn join(
    connections: Vec<Connection>,
    work: impl Fn(Connection) -> Result<()> + Sync,
) -> Result<()> {
    let work = &work;
    let results: Vec<Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = connections
            .into_iter()
            .map(|connection| scope.spawn(move || work(connection)))
            .collect();
        all_joined(threads, "a thread of the dump")
    });
    results.into_iter().collect()
}

/// Locks, also what a panicking thread has left.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
