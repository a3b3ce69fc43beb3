//! Paths as users type them.

use crate::{Error, Result};
use std::io;
use std::path::{Path, PathBuf};

/// Makes the error for a path that the user named to be read, and that could not be. One that is not there is
/// a mistake in the command line; `what` says what was looked for: `file`, `list of servers`.
#[must_use]
pub fn unreadable(what: &str, path: &Path, error: io::Error) -> Error {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    let shown = path.display();
    match error.kind() {
        NotFound | NotADirectory => absent(what, path).hint("check the path"),
        IsADirectory => Error::usage(format!("{shown} is a directory, not a {what}")),
        io::ErrorKind::PermissionDenied => {
            Error::failed(format!("failed to read the {what} {shown}"))
                .because(error)
                .hint("run as a user who may read it")
        }
        _ => Error::failed(format!("failed to read the {what} {shown}")).because(error),
    }
}

/// Makes the error for a path that the user named, and where nothing is. It has no hint: whoever knows a better
/// one than to check the path gives it.
#[must_use]
pub fn absent(what: &str, path: &Path) -> Error {
    Error::usage(format!("the {what} {} does not exist", path.display()))
}

/// Returns a directory that the user named, without symbolic links.
///
/// Errors: `Usage` where there is none.
pub fn directory(what: &str, path: &Path) -> Result<PathBuf> {
    let real = path.canonicalize();
    match real.as_deref().map(Path::is_dir) {
        Ok(false) => Err(
            Error::usage(format!("the {what} {} is not a directory", path.display()))
                .hint("check the path"),
        ),
        _ => real.map_err(|error| unreadable(what, path, error)),
    }
}

/// Returns a path that means the same in any directory: servers that are started go to one of their own.
/// Nothing is looked up, and links stay what they are.
#[must_use]
pub fn absolute(path: &Path) -> PathBuf {
    // Fails for an empty path, or without a current directory: then whoever opens it says so.
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns where a path leads once the links on its way are followed, as far as it exists.
#[must_use]
pub fn resolved(path: &Path) -> PathBuf {
    let path = absolute(path);
    for above in path.ancestors() {
        if let (Ok(there), Ok(rest)) = (above.canonicalize(), path.strip_prefix(above)) {
            return match rest.as_os_str().is_empty() {
                true => there,
                false => there.join(rest),
            };
        }
    }
    path
}
