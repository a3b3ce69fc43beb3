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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_looked_at_once_and_in_its_place() {
        let dir = tempfile::tempdir().unwrap();
        // By one thread, by several with a rest, by as many as there may be.
        for count in [0, 1, LOOKS, 2 * LOOKS + 1, LOOKS * (LOOKERS + 3) + 7] {
            let paths: Vec<PathBuf> = (0..count).map(|n| dir.path().join(n.to_string())).collect();
            for (number, path) in paths.iter().enumerate() {
                if number % 50 != 3 {
                    std::fs::write(path, vec![0; number % 9]).unwrap();
                }
            }
            let looked = looked_at(paths.clone());
            assert_eq!(looked.len(), count);
            for (number, (path, outcome)) in looked.into_iter().enumerate() {
                assert_eq!(path, paths[number]);
                match number % 50 {
                    3 => assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::NotFound),
                    _ => assert_eq!(outcome.unwrap().len(), (number % 9) as u64),
                }
            }
        }
    }
}
