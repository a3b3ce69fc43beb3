//! Paths as users type them.

use std::path::{Path, PathBuf};

/// Returns a path that means the same in any directory: servers that are started go to one of their own.
/// Nothing is looked up, and links stay what they are.
#[must_use]
pub fn absolute(path: &Path) -> PathBuf {
    // Fails for an empty path, or without a current directory: then whoever opens it says so.
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
