//! Files and folders of a local store, whose owner may be another account than the one that works on it.
//!
//! root may write into the repository of another account: what it makes there is that account's, whose next run
//! reads and replaces it. Everything is closed to others, whatever the umask is. No link below the store's root is
//! followed: a folder is opened once, and what is in it is made, read and removed through its descriptor. Else the owner
//! could exchange a folder for a link while root removes what is in it. Names are relative to the root.

use super::Listed;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, fchown, fstat, linkat, mkdirat, openat,
    renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Gid, Uid, geteuid};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Makes an empty file. One of that name, left by a run that was killed, goes.
pub(super) fn file(root: &Path, name: &str) -> io::Result<File> {
    let (folder, name) = within(root, name)?;
    match unlinkat(&folder, name, AtFlags::empty()) {
        Err(error) if error != Errno::NOENT => return Err(error.into()),
        _ => {}
    }
    Ok(new_file(&folder, name)?)
}

/// Opens a file that stays, to read and write; makes it if it is not there.
///
/// Errors: those of opening, and `ELOOP` for a symbolic link.
pub(super) fn kept_file(root: &Path, name: &str) -> io::Result<File> {
    let (folder, name) = within(root, name)?;
    loop {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat(&folder, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => {}
            other => return Ok(other?.into()),
        }
        match new_file(&folder, name) {
            // Somebody else was faster.
            Err(Errno::EXIST) => {}
            other => return Ok(other?),
        }
    }
}

/// Opens a file to read it.
///
/// Errors: those of opening, `ELOOP` for a symbolic link, and `InvalidData` for what is no regular file: a pipe would be
/// waited for.
pub(super) fn existing(root: &Path, name: &str) -> io::Result<File> {
    let (folder, name) = within(root, name)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(&folder, name, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is not a regular file",
        )),
    }
}

/// Lists what is in a folder, in any order; what goes meanwhile is left out.
pub(super) fn list(root: &Path, folder: &str) -> io::Result<Vec<Listed>> {
    let folder = opened(root, folder)?;
    let mut found = Vec::new();
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let facts = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            other => other?,
        };
        let is_folder = FileType::from_raw_mode(facts.st_mode) == FileType::Directory;
        found.push(Listed {
            name: name.to_string_lossy().into_owned(),
            size: if is_folder { 0 } else { facts.st_size as u64 },
            is_folder,
        });
    }
    Ok(found)
}

/// Removes a file, or what is no folder.
pub(super) fn remove(root: &Path, name: &str) -> io::Result<()> {
    let (folder, name) = within(root, name)?;
    Ok(unlinkat(&folder, name, AtFlags::empty())?)
}

/// Removes an empty folder.
pub(super) fn remove_folder(root: &Path, name: &str) -> io::Result<()> {
    let (above, name) = within(root, name)?;
    Ok(unlinkat(&above, name, AtFlags::REMOVEDIR)?)
}

/// Gives a file another name; `replaces` says whether it may take another's place.
pub(super) fn rename(root: &Path, from: &str, to: &str, replaces: bool) -> io::Result<()> {
    let ((here, from), (there, to)) = (within(root, from)?, within(root, to)?);
    if replaces {
        return Ok(renameat(&here, from, &there, to)?);
    }
    match renameat_with(&here, from, &there, to, RenameFlags::NOREPLACE) {
        // Filesystems without RENAME_NOREPLACE (NFS, old FUSE): a hard link never replaces.
        Err(Errno::INVAL | Errno::NOSYS) => {
            linkat(&here, from, &there, to, AtFlags::empty())?;
            Ok(unlinkat(&here, from, AtFlags::empty())?)
        }
        other => Ok(other?),
    }
}

/// Makes the names in a folder durable.
pub(super) fn sync(root: &Path, folder: &str) -> io::Result<()> {
    File::from(opened(root, folder)?).sync_all()
}

/// Makes a folder below a folder of the store.
pub(super) fn folder(root: &Path, name: &str) -> io::Result<()> {
    let (above, name) = within(root, name)?;
    mkdirat(&above, name, Mode::RWXU)?;
    hand_over(&above, &openat(&above, name, FOLDER, Mode::empty())?)?;
    Ok(())
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens the folder that something is in; returns it and the last part of the name.
fn within<'n>(root: &Path, name: &'n str) -> io::Result<(OwnedFd, &'n str)> {
    let mut folder = top(root)?;
    let mut rest = name;
    while let Some((part, behind)) = rest.split_once('/') {
        folder = openat(&folder, part, FOLDER, Mode::empty())?;
        rest = behind;
    }
    Ok((folder, rest))
}

/// Opens a folder of the store, or its root.
fn opened(root: &Path, name: &str) -> io::Result<OwnedFd> {
    match name {
        "" => top(root),
        _ => {
            let (above, name) = within(root, name)?;
            Ok(openat(&above, name, FOLDER, Mode::empty())?)
        }
    }
}

/// Opens the root: to it the user's own path leads, through links as well.
fn top(root: &Path) -> io::Result<OwnedFd> {
    let root = match root.as_os_str().is_empty() {
        true => Path::new("."),
        false => root,
    };
    let flags = FOLDER.difference(OFlags::NOFOLLOW);
    Ok(openat(CWD, root, flags, Mode::empty())?)
}

fn new_file(folder: &OwnedFd, name: &str) -> rustix::io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::RUSR | Mode::WUSR)?;
    hand_over(folder, &file)?;
    Ok(file.into())
}

/// Gives what root has just made in `folder` to whom the folder belongs.
fn hand_over(folder: &OwnedFd, made: impl AsFd) -> rustix::io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let owner = fstat(folder)?;
    let is_ours = owner.st_uid == 0;
    if is_ours || fstat(&made)?.st_uid == owner.st_uid {
        return Ok(());
    }
    let (user, group) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
    match fchown(made, Some(user), Some(group)) {
        // A filesystem that keeps no owners, or a server that lets root change none.
        Err(Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    const OTHER: u32 = 65534;

    /// Returns a folder of another account. Panics where these tests do not run as root, as they must.
    fn of_another() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        chown(folder.path(), Some(OTHER), Some(OTHER)).expect("tests of it run as root");
        folder
    }

    fn whose(path: &Path) -> (u32, u32, u32) {
        let data = fs::symlink_metadata(path).unwrap();
        (data.uid(), data.gid(), data.permissions().mode() & 0o7777)
    }

    #[test]
    fn what_root_makes_belongs_to_whom_the_folder_belongs() {
        let dir = of_another();
        let root = dir.path();
        file(root, "a").unwrap();
        kept_file(root, "b").unwrap();
        folder(root, "c").unwrap();
        file(root, "c/d").unwrap();
        for (name, mode) in [("a", 0o600), ("b", 0o600), ("c", 0o700), ("c/d", 0o600)] {
            assert_eq!(whose(&root.join(name)), (OTHER, OTHER, mode), "{name}");
        }
    }

    #[test]
    fn links_in_it_are_neither_followed_nor_handed_over() {
        let dir = of_another();
        let root = dir.path();
        let victim = tempfile::NamedTempFile::new().unwrap();
        fs::write(victim.path(), "kept").unwrap();
        fs::hard_link(victim.path(), root.join("hard")).unwrap();
        symlink(victim.path(), root.join("symbolic")).unwrap();
        for name in ["symbolic", "hard"] {
            file(root, name).unwrap();
            assert_eq!(whose(&root.join(name)), (OTHER, OTHER, 0o600), "{name}");
        }
        symlink(victim.path().with_extension("new"), root.join("nowhere")).unwrap();
        let error = kept_file(root, "nowhere").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        assert!(!victim.path().with_extension("new").exists());
        assert_eq!(fs::read(victim.path()).unwrap(), b"kept");
        assert_eq!(whose(victim.path()).0, 0);
    }

    #[test]
    fn nothing_is_made_behind_a_folder_that_is_a_link() {
        let (dir, elsewhere) = (of_another(), tempfile::tempdir().unwrap());
        symlink(elsewhere.path(), dir.path().join("packs")).unwrap();
        file(dir.path(), "packs/a").unwrap_err();
        kept_file(dir.path(), "packs/a").unwrap_err();
        folder(dir.path(), "packs/a").unwrap_err();
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn nothing_is_listed_read_or_removed_behind_a_folder_that_is_a_link() {
        let (dir, elsewhere) = (of_another(), tempfile::tempdir().unwrap());
        let kept = elsewhere.path().join("kept");
        fs::write(&kept, "kept").unwrap();
        fs::create_dir(elsewhere.path().join("folder")).unwrap();
        symlink(elsewhere.path(), dir.path().join("packs")).unwrap();
        let root = dir.path();
        list(root, "packs").unwrap_err();
        existing(root, "packs/kept").unwrap_err();
        remove(root, "packs/kept").unwrap_err();
        remove_folder(root, "packs/folder").unwrap_err();
        file(root, "own").unwrap();
        rename(root, "own", "packs/kept", true).unwrap_err();
        rename(root, "packs/kept", "own", true).unwrap_err();
        assert_eq!(fs::read(&kept).unwrap(), b"kept");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 2);
    }

    #[test]
    fn only_regular_files_are_read() {
        let dir = of_another();
        let pipe = dir.path().join("pipe");
        let mode = Mode::RUSR | Mode::WUSR;
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, mode, 0).unwrap();
        symlink("/dev/zero", dir.path().join("link")).unwrap();
        for name in ["pipe", "link"] {
            existing(dir.path(), name).unwrap_err();
        }
        fs::write(dir.path().join("file"), "1").unwrap();
        existing(dir.path(), "file").unwrap();
        let mut names: Vec<String> = list(dir.path(), "")
            .unwrap()
            .into_iter()
            .map(|one| one.name)
            .collect();
        names.sort();
        assert_eq!(names, ["file", "link", "pipe"]);
    }
}
