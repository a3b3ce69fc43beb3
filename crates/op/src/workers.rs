//! Threads that share one task: how they ended.

use crate::{Error, ErrorKind, Result};
use std::thread::ScopedJoinHandle;

/// Waits for a thread.
///
/// Errors: the thread's own; `Failed` if it panicked, which says whose thread it was: `a thread of the load panicked`.
pub fn joined<T>(thread: ScopedJoinHandle<'_, Result<T>>, whose: &str) -> Result<T> {
    thread
        .join()
        .unwrap_or_else(|_| Err(Error::failed(format!("{whose} panicked"))))
}

/// Waits for all threads, and returns what each of them did, in their order. Errors as [`joined`].
pub fn all_joined<T>(threads: Vec<ScopedJoinHandle<'_, Result<T>>>, whose: &str) -> Vec<Result<T>> {
    let threads = threads.into_iter();
    threads.map(|thread| joined(thread, whose)).collect()
}

/// Waits for all workers. `first` is how whoever gave them work ended. The error that made the others
/// stop is the one to report, not that they were stopped.
pub fn first_error(
    mut first: Result<()>,
    workers: Vec<ScopedJoinHandle<'_, Result<()>>>,
) -> Result<()> {
    for worker in workers {
        let ended = worker
            .join()
            .unwrap_or_else(|_| Err(Error::failed("a worker panicked")));
        let stopped = matches!(&first, Err(e) if e.kind() == ErrorKind::Interrupted);
        if ended.is_err() && (first.is_ok() || stopped) {
            first = ended;
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_made_the_others_stop_is_reported() {
        let interrupted = || Err(Error::new(ErrorKind::Interrupted, "stopped"));
        let ended = std::thread::scope(|scope| {
            let workers = vec![
                scope.spawn(interrupted),
                scope.spawn(|| Ok(())),
                scope.spawn(|| Err(Error::failed("the disk is gone"))),
                scope.spawn(|| Err(Error::failed("later"))),
            ];
            first_error(interrupted(), workers)
        });
        assert_eq!(ended.unwrap_err().chain(), "the disk is gone");
    }
}
