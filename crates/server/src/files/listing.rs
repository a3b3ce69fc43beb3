//! Listing directories in which files come and go.

use evenkeel_op::{Context, Error, Result};
use std::fs::{DirEntry, FileType};
use std::path::Path;

/// Returns the path below a directory that it lies in.
pub(super) fn below<'p>(path: &'p Path, base: &Path) -> &'p Path {
    path.strip_prefix(base).unwrap_or(path)
}

/// Lists a directory. One that was dropped meanwhile is empty.
pub(super) fn entries(dir: &Path) -> Result<Vec<DirEntry>> {
    let listed = match std::fs::read_dir(dir) {
        Ok(listed) => listed.collect::<std::io::Result<Vec<_>>>(),
        Err(error) => Err(error),
    };
    match listed {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(Error::failed(format!("failed to list {}", dir.display()))
                .because(error)
                .hint("run evenkeel as root or as the server's user"))
        }
        other => other.context(|| format!("failed to list {}", dir.display())),
    }
}

/// Returns an entry's type; `None` when it is gone.
pub(super) fn file_type(entry: &DirEntry) -> Result<Option<FileType>> {
    match entry.file_type() {
        Ok(kind) => Ok(Some(kind)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(error).context(|| format!("failed to look at {}", entry.path().display()))
        }
    }
}
