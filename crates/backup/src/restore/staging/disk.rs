//! What a restore does with names on a disk where others may be changing them.

use evenkeel_op::disk::remove_any;
use evenkeel_op::own_directory::shown;
use evenkeel_op::paths::absent;
use evenkeel_op::{Context, Error, Result};
use rustix::fs::{Mode, OFlags};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Returns the names in a directory; none when it is not there.
pub(super) fn names(dir: &Path) -> Result<Vec<OsString>> {
    let failed = || format!("failed to read {}", shown(dir).display());
    match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).context(failed),
        Ok(entries) => entries
            .map(|entry| Ok(entry.context(failed)?.file_name()))
            .collect(),
    }
}

pub(super) fn is_mount_point(target: &Path, parent: &Path) -> Result<bool> {
    let device = |path: &Path| match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.dev())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context(|| format!("failed to stat {}", path.display())),
    };
    let Some(above) = device(parent)? else {
        return Err(absent("directory", parent).hint(
            "create it first: evenkeel does not guess the owner and mode of parent directories",
        ));
    };
    Ok(device(target)?.is_some_and(|own| own != above))
}

/// Returns where a target is that a link leads to, one that root or this user made. Another user's link may
/// lead anywhere, and elsewhere a moment later.
pub(super) fn without_link(target: PathBuf) -> Result<PathBuf> {
    let Ok(found) = fs::symlink_metadata(&target) else {
        return Ok(target);
    };
    let place = target.display();
    if !found.is_symlink() {
        return Ok(target);
    }
    if ![0, rustix::process::geteuid().as_raw()].contains(&found.uid()) {
        return Err(Error::refused(format!(
            "{place} is a symbolic link that belongs to another user"
        ))
        .hint("name the directory it points to"));
    }
    fs::canonicalize(&target).context(|| format!("failed to follow {place}"))
}

/// Writes a new file, and never an existing one.
pub(super) fn write_new(path: &Path, text: &str) -> Result<()> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(path);
    opened
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .context(|| format!("failed to write {}", shown(path).display()))
}

/// Whether a file holds these words and nothing else.
pub(super) fn holds(path: &Path, words: &str) -> bool {
    let mut text = Vec::new();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).is_ok_and(|file| {
        let file = File::from(file);
        file.metadata().is_ok_and(|found| found.is_file())
            && file
                .take(words.len() as u64 + 1)
                .read_to_end(&mut text)
                .is_ok()
            && text == words.as_bytes()
    })
}

/// Removes all that is in a directory.
pub(super) fn remove_all_in(dir: &Path) -> Result<()> {
    let all = names(dir)?;
    all.iter().try_for_each(|name| remove_any(&dir.join(name)))
}

/// Removes a directory that is empty by now, if it is there.
pub(super) fn remove_directory(path: &Path) -> Result<()> {
    match fs::remove_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).context(|| format!("failed to remove {}", shown(path).display()))
        }
        _ => Ok(()),
    }
}

pub(super) fn remove_file_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).context(|| format!("failed to remove {}", shown(path).display()))
        }
        _ => Ok(()),
    }
}

/// One call instead of an fsync per file: with 10 000 files that is seconds.
pub(super) fn sync_filesystem(path: &Path) -> Result<()> {
    let dir = File::open(path).context(|| format!("failed to open {}", shown(path).display()))?;
    rustix::fs::syncfs(&dir).context(|| format!("failed to sync {}", shown(path).display()))
}
