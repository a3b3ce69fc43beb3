//! Names of files in a generation: UTF-8, with `/` between the parts, whatever the bytes on disk.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Returns `root/relative`. Bytes that are no UTF-8 become `\xNN`, and `\` becomes `\\`.
#[must_use]
pub fn generation_name(root: &str, relative: &Path) -> String {
    let mut name = String::from(root);
    for part in relative.components() {
        name.push('/');
        for chunk in part.as_os_str().as_bytes().utf8_chunks() {
            name.push_str(&chunk.valid().replace('\\', "\\\\"));
            for byte in chunk.invalid() {
                name.push_str(&format!("\\x{byte:02x}"));
            }
        }
    }
    name
}

/// Splits a name into its root and the path below it, the reverse of [`generation_name`]. `None`
/// for a name that nothing could have given: an empty part, `.`, `..`, a NUL, a broken escape.
#[must_use]
pub fn relative_path(name: &str) -> Option<(&str, PathBuf)> {
    let (root, rest) = name.split_once('/')?;
    let mut path = PathBuf::new();
    for part in rest.split('/') {
        let bytes = unescape(part)?;
        if bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&0) {
            return None;
        }
        if bytes.contains(&b'/') {
            return None;
        }
        path.push(OsString::from_vec(bytes));
    }
    (!root.is_empty()).then_some((root, path))
}

fn unescape(part: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
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
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                bytes.push((digit(high)? * 16 + digit(low)?) as u8);
                rest = after;
            }
            _ => return None,
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ffi::OsStr;

    #[test]
    fn odd_bytes_are_escaped() {
        let odd = Path::new(OsStr::from_bytes(b"caf\xe9\\x/t\xc3\xa9.ibd"));
        assert_eq!(generation_name("data", odd), "data/caf\\xe9\\\\x/té.ibd");
    }

    #[test]
    fn names_that_would_leave_the_root_are_none() {
        for name in [
            "data",
            "/x",
            "data/../x",
            "data/.",
            "data//x",
            "data/\\x2f",
            "data/\\q",
        ] {
            assert_eq!(relative_path(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn every_name_reads_back(parts in prop::collection::vec(
            prop::collection::vec(any::<u8>().prop_filter("no / or NUL", |b| *b != b'/' && *b != 0), 1..12)
                .prop_filter("no dots", |p| p != b"." && p != b".."), 1..4)) {
            let path: PathBuf = parts.iter().map(|part| OsStr::from_bytes(part)).collect();
            let name = generation_name("redo", &path);
            prop_assert_eq!(relative_path(&name), Some(("redo", path)));
        }
    }
}
