//! What a clone is called in its holding directory.
//!
//! Each part of the generation name gets a `~` at its end, because the holding directory may be
//! inside the data directory, and MySQL scans that for files ending in `.ibd`. Parts too long to
//! get one (escaped foreign bytes) are replaced by their hash.

use crate::filesystem::stable_hash;
use evenkeel_op::{Error, Result};
use std::path::PathBuf;

/// What Linux filesystems allow, less the tilde.
const LONGEST: usize = 254;

/// Splits a generation name into folder and last part; fails on one that could lead astray.
pub(super) fn split(name: &str) -> Result<(&str, &str)> {
    let sound = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    match name.rsplit_once('/') {
        Some((folder, last)) if name.split('/').all(sound) => Ok((folder, last)),
        _ => Err(Error::failed(format!(
            "'{name}' is not a file name of a generation"
        ))),
    }
}

/// Returns the path of a folder of clones, relative to all clones.
pub(super) fn folder(folder: &str) -> PathBuf {
    folder.split('/').map(leaf).collect()
}

/// Returns the file name of a clone.
pub(super) fn leaf(part: &str) -> String {
    if part.len() <= LONGEST {
        format!("{part}~")
    } else {
        // A backslash escapes `x` or a backslash in generation names, so no other name is this one.
        format!("\\h{:016x}~", stable_hash(part.as_bytes()))
    }
}

/// Returns the path of a clone, relative to all clones.
pub(super) fn path(name: &str) -> PathBuf {
    folder(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside() {
        assert!(split("data/../../etc/passwd").is_err());
        assert!(split("data//x").is_err());
        assert!(split("/etc/passwd").is_err());
        assert!(split("plain").is_err());
        assert_eq!(split("data/bank/a.ibd").unwrap(), ("data/bank", "a.ibd"));
    }

    #[test]
    fn stored_names_fit_and_differ() {
        assert_eq!(path("data/bank/a.ibd"), PathBuf::from("data~/bank~/a.ibd~"));
        let (one, other) = ("\\xff".repeat(100), "\\xfe".repeat(100));
        assert_ne!(leaf(&one), leaf(&other));
        assert!(leaf(&one).len() < 255);
        assert_eq!(leaf(&"x".repeat(254)).len(), 255);
    }
}
