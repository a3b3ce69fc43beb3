//! Names in a generation, `root/relative/path`, turned back into paths.

use evenkeel_op::{Error, Result};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// Splits a name into its root and the path below it; empty for the root itself. Refuses names that
/// would leave the root.
pub(super) fn split(name: &str) -> Result<(&str, PathBuf)> {
    let (root, rest) = name.split_once('/').unwrap_or((name, ""));
    let path = PathBuf::from(unescape(rest)?);
    let inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    if root.is_empty() || !inside {
        return Err(Error::failed(format!("the name '{name}' leads out of its root"))
            .hint("the repository was not written by evenkeel as it is; nothing was restored from it"));
    }
    Ok((root, path))
}

/// Turns `\xNN` and `\\` back into bytes.
pub(super) fn unescape(text: &str) -> Result<OsString> {
    let bad = || Error::failed(format!("the name '{text}' is not escaped as evenkeel does"));
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest {
            [b'\\', after @ ..] => {
                bytes.push(b'\\');
                rest = after;
            }
            [b'x', high, low, after @ ..] => {
                let digit = |c: &u8| char::from(*c).to_digit(16).ok_or_else(bad);
                bytes.push((digit(high)? * 16 + digit(low)?) as u8);
                rest = after;
            }
            _ => return Err(bad()),
        }
    }
    Ok(OsString::from_vec(bytes))
}

/// Returns the path at which `name` is or will be, if its root is among `roots`.
pub(super) fn place<'a, T>(
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
        for name in ["data/../etc/passwd", "data//etc", "/etc", "data/a/../../b", "data/\\x2e\\x2e/b"] {
            assert!(split(name).is_err(), "{name}");
        }
    }
}
