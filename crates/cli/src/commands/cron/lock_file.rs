//! A lock file as setlock knows it: an flock that lives until the last process that inherited it
//! has ended.

use evenkeel_op::{Cancel, Context, Error, ErrorKind, Result, units};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::geteuid;
use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
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
    let file = open(path)?;
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

/// Opens the lock, or makes it. Whoever can open it can hold it, and keep every run from beginning: so nobody
/// else may.
fn open(path: &Path) -> Result<File> {
    let failed = || format!("failed to open the lock file {}", path.display());
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
        .open(path)
        .context(failed)?;
    let metadata = file.metadata().context(failed)?;
    if !metadata.is_file() || metadata.uid() != geteuid().as_raw() {
        return Err(Error::refused(format!(
            "the lock file {} belongs to another user, who could hold it forever",
            path.display()
        ))
        .hint(
            "name one in a directory that only you can write to, such as one of your own below \
             /run",
        ));
    }
    if metadata.mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600))
            .context(failed)?;
    }
    Ok(file)
}

fn busy(path: &Path, wait: Option<Duration>) -> Error {
    let shown = path.display();
    let error = Error::new(ErrorKind::Busy, format!("another run holds {shown}"));
    match wait {
        Some(wait) => error.hint(format!("waited {} for it", units::duration(wait))),
        None => error.hint(
            "--wait waits for it, --busy-ok ends quietly; `fuser -v` on the file names the holder",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_can_hold_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let mode = || std::fs::metadata(&path).unwrap().mode() & 0o777;
        for before in [None, Some(0o666)] {
            if let Some(before) = before {
                std::fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            }
            drop(acquire(&path, None, &Cancel::new()).unwrap());
            assert_eq!(mode(), 0o600);
        }
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(acquire(&link, None, &Cancel::new()).is_err());
        if geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
            let error = acquire(&path, None, &Cancel::new()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{}", error.chain());
        }
    }
}
