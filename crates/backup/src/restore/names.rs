//! Names in a generation, `root/relative/path`, turned back into paths.

use evenkeel_op::{Error, Result};
use evenkeel_server::files::relative_path;
use std::path::{Path, PathBuf};

/// Splits a name into its root and the path below it; empty for the root itself. Refuses names that
/// would leave the root.
pub(crate) fn split(name: &str) -> Result<(&str, PathBuf)> {
    if !name.is_empty() && !name.contains('/') {
        return Ok((name, PathBuf::new()));
    }
    relative_path(name).ok_or_else(|| {
        Error::failed(format!(
            "the name '{name}' points outside its root or is not escaped"
        ))
        .hint("evenkeel did not write the repository in this state; nothing was restored")
    })
}

/// Returns the path at which `name` is or will be, if its root is among `roots`.
pub(crate) fn place<'a, T>(
    roots: &'a std::collections::BTreeMap<String, T>,
    name: &str,
) -> Result<(&'a T, PathBuf)> {
    let (root, path) = split(name)?;
    let found = roots
        .get(root)
        .ok_or_else(|| Error::failed(format!("'{name}' is under a root that is not listed")))?;
    Ok((found, path))
}

/// Returns whether a path has the extension.
pub(super) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn escapes_read_back() {
        let (root, path) = split("data/a\\\\b/\\xff").unwrap();
        assert_eq!(root, "data");
        assert_eq!(path.into_os_string().into_vec(), b"a\\b/\xff");
        assert!(split("data/\\q").is_err());
        assert_eq!(split("data").unwrap(), ("data", PathBuf::new()));
    }

    #[test]
    fn names_cannot_leave_their_root() {
        for name in [
            "data/../etc/passwd",
            "data//etc",
            "/etc",
            "data/a/../../b",
            "data/\\x2e\\x2e/b",
        ] {
            assert!(split(name).is_err(), "{name}");
        }
    }
}
