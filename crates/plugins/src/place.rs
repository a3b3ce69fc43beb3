//! Files into a plugin directory, and out of it.

use evenkeel_op::disk::sync_directory;
use evenkeel_op::{Error, Result};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where a server's plugin directory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginDirectory {
    /// On this host, where the server says.
    Here,
    /// On this host, there.
    At(PathBuf),
    /// On another host.
    Elsewhere,
}

impl PluginDirectory {
    /// Returns the plugin directory on this host, if it is there; `said` is what the server calls it.
    #[must_use]
    pub fn on_this_host(self, said: &str) -> Option<PathBuf> {
        match self {
            Self::Here => Some(PathBuf::from(said)),
            Self::At(directory) => Some(directory),
            Self::Elsewhere => None,
        }
    }
}

/// A file that should be there.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// Its name.
    pub name: &'a str,
    /// What is in it.
    pub bytes: &'a [u8],
}

impl Wanted<'_> {
    /// Returns whether it is there, whole.
    #[must_use]
    pub fn is_in(&self, directory: &Path) -> bool {
        let path = directory.join(self.name);
        let same_length =
            fs::metadata(&path).is_ok_and(|meta| meta.len() == self.bytes.len() as u64);
        same_length && fs::read(&path).is_ok_and(|bytes| bytes == self.bytes)
    }
}

/// Puts a file there, whole or not at all, in a file of its own: one that the server has mapped is
/// not touched.
///
/// Errors: `Refused` where it cannot be written.
pub fn put(directory: &Path, wanted: &Wanted<'_>) -> Result<()> {
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

/// Lists the files in a plugin directory whose names are ours, but for one.
///
/// Errors: `Refused` where the directory cannot be listed.
pub fn ours(directory: &Path, is_ours: fn(&str) -> bool, but: Option<&str>) -> Result<Vec<String>> {
    let failed = |error: io::Error| {
        Error::refused(format!("failed to list {}", directory.display()))
            .because(error)
            .hint("name the server's plugin directory, by its path on this host, with --plugin-dir")
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if let Some(name) = name.to_str().filter(|name| is_ours(name))
            && Some(name) != but
        {
            found.push(name.to_owned());
        }
    }
    found.sort();
    Ok(found)
}

/// Removes files. What is gone already is fine.
///
/// Errors: `Partial` where one remains.
pub fn remove(directory: &Path, names: &[String]) -> Result<()> {
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
        let all = ["auth_pam.so", "evenkeel_1.so", "evenkeel_2.so"].map(str::to_owned);
        for name in &all {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let is_ours = |name: &str| name.starts_with("evenkeel_");
        let ours = |but| ours(directory.path(), is_ours, but).unwrap();
        assert_eq!(ours(None), all[1..]);
        assert_eq!(ours(Some("evenkeel_1.so")), all[2..]);
        remove(directory.path(), &all[1..]).unwrap();
        remove(directory.path(), &all[1..]).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
