//! A lock file as setlock knows it: an flock that lives until the last process that inherited it
//! has ended.

use evenkeel_op::{Cancel, Context, Error, ErrorKind, Result, units};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long between two looks at a lock that somebody else holds.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Takes the lock, waiting up to `wait` for it; none means not at all. Busy is [`ErrorKind::Busy`].
///
/// The descriptor is inherited by what we start from here on, on purpose: a process that the
/// command leaves behind still holds the lock.
pub(super) fn acquire(path: &Path, wait: Option<Duration>, cancel: &Cancel) -> Result<File> {
    let shown = path.display();
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .context(|| format!("failed to open the lock file {shown}"))?;
    let deadline = Instant::now() + wait.unwrap_or_default();
    loop {
        cancel.check()?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(Errno::INTR) => continue,
            Err(Errno::WOULDBLOCK) => {}
            Err(error) => {
                return Err(Error::failed(format!("failed to lock {shown}")).because(error));
            }
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(busy(path, wait));
        }
        std::thread::sleep(left.min(LOOK_AGAIN));
    }
    fcntl_setfd(&file, FdFlags::empty()).context(|| format!("failed to share {shown}"))?;
    Ok(file)
}

fn busy(path: &Path, wait: Option<Duration>) -> Error {
    let shown = path.display();
    let error = Error::new(ErrorKind::Busy, format!("another run holds {shown}"));
    match wait {
        Some(wait) => error.hint(format!(
            "it was waited for during {}",
            units::duration(wait)
        )),
        None => error.hint(
            "--wait waits for it, --busy-ok ends quietly; `fuser -v` on the file names the holder",
        ),
    }
}
