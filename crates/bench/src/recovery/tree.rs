//! A copy of a data directory, put back to what it was copied from.
//!
//! Only what differs is written: a recovery changes few files of many. Copies have the times of
//! their originals, so that a file which was written since is known by its time.

use evenkeel_op::{Cancel, Context, Result};
use rustix::fs::{AtFlags, Timespec, Timestamps};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, DirEntry, File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// Makes `copy` the same as `original`.
pub(super) fn put_back(original: &Path, copy: &Path, cancel: &Cancel) -> Result<()> {
    cancel.check()?;
    fs::create_dir_all(copy).context(|| format!("failed to create {}", copy.display()))?;
    let mut wanted: BTreeSet<OsString> = BTreeSet::new();
    for entry in entries(original)? {
        let from = entry.path();
        let to = copy.join(entry.file_name());
        let is = entry
            .metadata()
            .context(|| format!("failed to look at {}", from.display()))?;
        wanted.insert(entry.file_name());
        if is.is_dir() {
            put_back(&from, &to, cancel)?;
            fs::set_permissions(&to, is.permissions())
                .context(|| format!("failed to copy the mode of {}", from.display()))?;
        } else if is.is_file() && !is_same(&is, fs::symlink_metadata(&to)) {
            copied(&from, &to, &is).context(|| format!("failed to copy {}", from.display()))?;
        }
    }
    for entry in entries(copy)? {
        if !wanted.contains(&entry.file_name()) {
            let path = entry.path();
            let removed = match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => fs::remove_dir_all(&path),
                false => fs::remove_file(&path),
            };
            removed.context(|| format!("failed to remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// Visits every file.
pub(super) fn each_file(
    top: &Path,
    cancel: &Cancel,
    visit: &mut dyn FnMut(&Path, &File) -> io::Result<()>,
) -> Result<()> {
    cancel.check()?;
    for entry in entries(top)? {
        let path = entry.path();
        let kind = entry
            .file_type()
            .context(|| format!("failed to look at {}", path.display()))?;
        if kind.is_dir() {
            each_file(&path, cancel, visit)?;
        } else if kind.is_file() {
            File::open(&path)
                .and_then(|file| visit(&path, &file))
                .context(|| format!("failed to read {}", path.display()))?;
        }
    }
    Ok(())
}

fn entries(directory: &Path) -> Result<Vec<DirEntry>> {
    fs::read_dir(directory)
        .and_then(Iterator::collect)
        .context(|| format!("failed to list {}", directory.display()))
}

fn is_same(one: &Metadata, other: io::Result<Metadata>) -> bool {
    let key = |of: &Metadata| (of.len(), of.mtime(), of.mtime_nsec(), of.mode());
    other.is_ok_and(|other| key(&other) == key(one))
}

/// Shares the blocks where the filesystem can.
fn copied(from: &Path, to: &Path, is: &Metadata) -> io::Result<()> {
    let _ = fs::remove_file(to);
    let (source, target) = (File::open(from)?, File::create(to)?);
    if rustix::fs::ioctl_ficlone(&target, &source).is_err() {
        fs::copy(from, to)?;
    }
    target.set_permissions(fs::Permissions::from_mode(is.mode() & 0o7777))?;
    let time = |seconds, nanoseconds| Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds,
    };
    let times = Timestamps {
        last_access: time(is.atime(), is.atime_nsec()),
        last_modification: time(is.mtime(), is.mtime_nsec()),
    };
    // By name: nothing is written through the descriptor any more.
    rustix::fs::utimensat(rustix::fs::CWD, to, &times, AtFlags::empty())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_is_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let (original, copy) = (dir.path().join("original"), dir.path().join("copy"));
        fs::create_dir_all(original.join("shop")).unwrap();
        for name in ["ibdata1", "shop/a.ibd", "shop/b.ibd"] {
            fs::write(original.join(name), vec![7; 20_000]).unwrap();
        }
        let back = || put_back(&original, &copy, &Cancel::new()).unwrap();
        back();
        let untouched = fs::metadata(copy.join("shop/b.ibd")).unwrap().ino();
        fs::write(copy.join("ibdata1"), vec![8; 20_000]).unwrap();
        fs::remove_file(copy.join("shop/a.ibd")).unwrap();
        fs::write(copy.join("ibtmp1"), "new").unwrap();
        fs::create_dir(copy.join("#innodb_temp")).unwrap();
        back();
        let mut seen = Vec::new();
        each_file(&copy, &Cancel::new(), &mut |path, _| {
            assert_eq!(fs::read(path)?, vec![7; 20_000]);
            seen.push(path.to_owned());
            Ok(())
        })
        .unwrap();
        assert_eq!(seen.len(), 3, "{seen:?}");
        assert!(!copy.join("#innodb_temp").exists());
        let after = fs::metadata(copy.join("shop/b.ibd")).unwrap().ino();
        assert_eq!(after, untouched, "it was written for nothing");
    }
}
