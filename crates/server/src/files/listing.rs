//! Listing directories in which files come and go.

use evenkeel_op::{Context, Error, Result};
use std::fs::{DirEntry, FileType, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// Files that one thread looks at; what makes another one worth its while.
const LOOKS: usize = 32;
/// Threads at most: what cold storage is asked side by side.
const LOOKERS: usize = 32;

/// Looks at files, many at a time: on cold storage each look may be a read, and in a schema of
/// thousands of tables they would be waited for one after the other.
pub(super) fn looked_at(paths: Vec<PathBuf>) -> Vec<(PathBuf, io::Result<Metadata>)> {
    let look = |path: PathBuf| {
        let looked = std::fs::symlink_metadata(&path);
        (path, looked)
    };
    let threads = (paths.len() / LOOKS).min(LOOKERS);
    if threads < 2 {
        return paths.into_iter().map(look).collect();
    }
    let share = paths.len().div_ceil(threads);
    let mut rest = paths.into_iter();
    std::thread::scope(|scope| {
        let mut lookers = Vec::new();
        loop {
            let some: Vec<PathBuf> = rest.by_ref().take(share).collect();
            if some.is_empty() {
                break;
            }
            lookers.push(scope.spawn(move || some.into_iter().map(look).collect::<Vec<_>>()));
        }
        let done = lookers.into_iter().flat_map(|looker| {
            // A panic there is one here.
            looker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        done.collect()
    })
}

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
