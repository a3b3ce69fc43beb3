//! Files into a plugin directory, and out of it.

use crate::names::is_our_file;
use evenkeel_op::disk::sync_directory;
use evenkeel_op::{Error, Result};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A file that is to be there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// What is in it.
    pub(crate) bytes: &'a [u8],
}

impl Wanted<'_> {
    /// Whether it is there, whole.
    pub(crate) fn is_in(&self, directory: &Path) -> bool {
        let path = directory.join(self.name);
        let same_length =
            fs::metadata(&path).is_ok_and(|meta| meta.len() == self.bytes.len() as u64);
        same_length && fs::read(&path).is_ok_and(|bytes| bytes == self.bytes)
    }
}

/// Puts a file there, whole or not at all, in a file of its own: one that the server has mapped is
/// not touched.
pub(crate) fn put(directory: &Path, wanted: &Wanted<'_>) -> Result<()> {
    let path = directory.join(wanted.name);
    let failed = |error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "run this as a user who may write there, such as root"
            }
            _ => "check that the directory exists, is writable and has space",
        };
        Error::refused(format!("failed to write {}", path.display()))
            .because(error)
            .hint(hint)
    };
    let mut file = tempfile::Builder::new()
        .prefix(".evenkeel_new.")
        .tempfile_in(directory)
        .map_err(failed)?;
    file.write_all(wanted.bytes).map_err(failed)?;
    // The server has a user of its own.
    let readable = fs::Permissions::from_mode(0o644);
    file.as_file().set_permissions(readable).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(&path).map_err(|error| failed(error.error))?;
    sync_directory(directory).map_err(failed)
}

/// Lists our files in a plugin directory, but for some.
pub(crate) fn ours(directory: &Path, but: &[String]) -> Result<Vec<String>> {
    let failed = |error: io::Error| {
        Error::refused(format!("failed to list {}", directory.display()))
            .because(error)
            .hint("name the server's plugin directory, by its path on this host, with --plugin-dir")
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if let Some(name) = name.to_str().filter(|name| is_our_file(name))
            && !but.iter().any(|kept| kept == name)
        {
            found.push(name.to_owned());
        }
    }
    found.sort();
    Ok(found)
}

/// Removes files. What is gone already is fine.
pub(crate) fn remove(directory: &Path, names: &[String]) -> Result<()> {
    for name in names {
        let path = directory.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::new(
                    evenkeel_op::ErrorKind::Partial,
                    format!("the functions are replaced, but {} remains", path.display()),
                )
                .because(error)
                .hint("remove it by hand: nothing uses it now"));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_file_is_replaced_and_never_written_into() {
        let directory = tempfile::tempdir().unwrap();
        let wanted = |bytes| Wanted {
            name: "evenkeel_url.so",
            bytes,
        };
        put(directory.path(), &wanted(b"old")).unwrap();
        assert!(wanted(b"old").is_in(directory.path()));
        let loaded = fs::File::open(directory.path().join("evenkeel_url.so")).unwrap();
        put(directory.path(), &wanted(b"new")).unwrap();
        assert!(wanted(b"new").is_in(directory.path()) && !wanted(b"old").is_in(directory.path()));
        assert_eq!(io::read_to_string(&loaded).unwrap(), "old");
        assert_eq!(loaded.metadata().unwrap().mode() & 0o777, 0o644);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn nothing_else_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let id = "0123456789abcdef";
        let ours_and_others = [
            format!("evenkeel_url_{id}.urltable"),
            format!("evenkeel_url_{id}_{id}.so"),
            "auth_pam.so".to_owned(),
            "evenkeel.urltable".to_owned(),
        ];
        for name in &ours_and_others {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let keep = &ours_and_others[..1];
        assert_eq!(ours(directory.path(), keep).unwrap(), ours_and_others[1..2]);
        remove(directory.path(), &ours_and_others[..2]).unwrap();
        remove(directory.path(), &ours_and_others[..2]).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}
