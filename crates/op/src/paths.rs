//! Paths as users type them.

use std::path::{Path, PathBuf};

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
