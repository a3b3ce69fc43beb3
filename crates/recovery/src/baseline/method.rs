//! How a data directory can be saved, and whether it is one piece.

use super::Method;
use evenkeel_op::{Error, Result};
use evenkeel_server::files::ServerFiles;
use evenkeel_snapshot::btrfs::is_subvolume;
use evenkeel_snapshot::filesystem::{Identity, try_clone};
use std::path::Path;

/// Returns the best method for the files of a server; `inside` when baselines are kept inside the
/// data directory, at `place`. `Refused` when something is mounted inside the data directory.
pub(super) fn choose(files: &ServerFiles, place: &Path, inside: bool) -> Result<Method> {
    let own = Identity::of(&files.datadir)?;
    let mut nested = false;
    for (_, directory) in &files.dirs {
        if Identity::of(directory)? != own {
            return Err(Error::refused(format!(
                "{} is on another filesystem than the data directory that it is in",
                directory.display()
            ))
            .hint("a baseline covers one filesystem: unmount it, or use evenkeel backup"));
        }
        nested |= *directory != files.datadir && is_subvolume(directory)?;
    }
    // A snapshot holds no subvolumes that are inside, and none can be exchanged with what is mounted.
    if !inside && !nested && is_subvolume(&files.datadir)? {
        return Ok(Method::Btrfs);
    }
    Ok(match try_clone(&files.datadir, place) {
        Ok(()) => Method::Reflink,
        Err(_) => Method::Copy,
    })
}
