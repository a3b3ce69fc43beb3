//! Puts a prepared directory in the place of the data directory, in one step.
//!
//! A file in the prepared one tells afterwards which is which.

use super::store::{Store, sync_directory};
use super::user::user_of_datadir;
use super::{guard, inside, tree};
use evenkeel_op::{Context, Error, ErrorKind, Result};
use rustix::fs::{CWD, RenameFlags};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file that tells the new directory from the old one.
const TOKEN: &str = ".evenkeel-rollback";

/// Where the prepared directory is until the swap.
pub(super) fn coming(store: &Store) -> PathBuf {
    store.place.work("coming")
}

/// Where the replaced one is after it.
pub(super) fn replaced(store: &Store) -> PathBuf {
    match store.place.inside {
        true => inside::replaced(store),
        false => coming(store),
    }
}

/// Marks the prepared directory as that of this rollback.
pub(super) fn mark(store: &Store, token: &str) -> Result<()> {
    let path = coming(store).join(TOKEN);
    fs::write(&path, token).context(|| format!("failed to write {}", path.display()))
}

/// Whether the prepared directory is the data directory.
pub(super) fn is_exchanged(store: &Store, token: &str) -> bool {
    tree::holds(&store.datadir.join(TOKEN), token.as_bytes())
}

/// Swaps, unless that was done.
pub(super) fn exchange(store: &Store, token: &str) -> Result<()> {
    if is_exchanged(store, token) {
        return Ok(());
    }
    let coming = coming(store);
    let failed = || {
        format!(
            "failed to swap {} and {}",
            store.datadir.display(),
            coming.display()
        )
    };
    rustix::fs::renameat_with(CWD, &coming, CWD, &store.datadir, RenameFlags::EXCHANGE)
        .map_err(io::Error::from)
        .context(failed)?;
    fail::fail_point!("baseline::swap::exchanged");
    let parent = store.datadir.parent().unwrap_or(Path::new("/"));
    sync_directory(parent)?;
    sync_directory(&store.place.dir())
}

/// Removes the mark of a data directory that is in its place.
pub(super) fn unmark(store: &Store) -> Result<()> {
    tree::remove(&store.datadir.join(TOKEN))
}

/// Carries the server's logs for people over: what they say of the time since the save is true.
pub(super) fn carry_logs(store: &Store, logs: &[PathBuf]) -> Result<()> {
    for log in logs {
        let Ok(inside) = log.strip_prefix(&store.datadir) else {
            continue;
        };
        let to = coming(store).join(inside);
        if !log.is_file() || !to.parent().is_some_and(Path::is_dir) {
            continue;
        }
        let failed = || format!("failed to move {}", log.display());
        tree::remove(&to)?;
        // Another subvolume's file cannot be linked to.
        if fs::hard_link(log, &to).is_err() {
            fs::copy(log, &to).context(failed)?;
            let owner = fs::metadata(log).context(failed)?;
            use std::os::unix::fs::MetadataExt;
            std::os::unix::fs::chown(&to, Some(owner.uid()), Some(owner.gid())).context(failed)?;
        }
    }
    Ok(())
}

/// Fails when a server runs on the data directory: one that its supervisor restarted, say.
pub(super) fn refuse_if_used(datadir: &Path) -> Result<()> {
    match user_of_datadir(datadir)? {
        None => Ok(()),
        Some(user) => Err(Error::new(
            ErrorKind::Refused,
            format!("{user} is using {}", datadir.display()),
        )
        .hint("something restarts the server: use --stop-with COMMAND --start-with COMMAND")
        .hint("or stop it yourself, and give the data directory: --datadir DIR")),
    }
}

/// Whether a data directory is one at the moment, as far as our own guard is concerned.
pub(super) fn is_guarded(datadir: &Path) -> bool {
    guard::is_up(datadir)
}
