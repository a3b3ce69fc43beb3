//! Threads that share one task: how it ended.

use evenkeel_op::{Error, ErrorKind, Result};
use std::thread::ScopedJoinHandle;

/// Waits for all workers. `first` is how whoever gave them work ended. The error that made the others
/// stop is the one to report, not that they were stopped.
pub(crate) fn first_error(
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
