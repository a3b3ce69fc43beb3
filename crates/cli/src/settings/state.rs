//! Where state is kept that outlasts a run.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Returns the directory that systemd made for a service of ours; `None` elsewhere.
#[must_use]
pub fn state_directory() -> Option<PathBuf> {
    first_of(&env::var_os("STATE_DIRECTORY")?)
}

/// Returns the first of the directories that systemd made: between them are colons.
fn first_of(directories: &OsStr) -> Option<PathBuf> {
    let mut each = directories.as_bytes().split(|byte| *byte == b':');
    let first = each.next().filter(|first| !first.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_counts() {
        let first = |text: &str| first_of(OsStr::new(text));
        assert_eq!(first("/var/lib/a:/var/lib/b"), Some("/var/lib/a".into()));
        assert_eq!(first("/var/lib/a"), Some("/var/lib/a".into()));
        assert_eq!(first(""), None);
    }
}
