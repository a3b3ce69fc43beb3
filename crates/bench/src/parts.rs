//! Work in parts, done by several connections at once.

use evenkeel_op::workers::all_joined;
use evenkeel_op::{Cancel, Error, ErrorKind, Result};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs so many workers, each of which takes parts until none is left. The first to fail stops the others;
/// what stopped them is the error, not that they were stopped.
pub(crate) fn each<P: Copy + Sync>(
    parts: &[P],
    threads: usize,
    worker: impl Fn(&dyn Fn() -> Option<P>, &Cancel) -> Result<()> + Sync,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let stop = Cancel::new();
    let work = || {
        let take = || parts.get(next.fetch_add(1, Ordering::Relaxed)).copied();
        worker(&take, &stop).inspect_err(|_| stop.cancel(2))
    };
    let errors: Vec<Error> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.clamp(1, parts.len().max(1)))
            .map(|_| scope.spawn(work))
            .collect();
        let ended = all_joined(threads, "a loading thread").into_iter();
        ended.filter_map(Result::err).collect()
    });
    let reported = errors
        .into_iter()
        .max_by_key(|error| error.kind() != ErrorKind::Interrupted);
    reported.map_or(Ok(()), Err)
}
