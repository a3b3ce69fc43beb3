//! Hands directories over to the account that a server runs as, and takes them back.
//!
//! Names are taken from the open directory that they were found in, and links are not followed: whoever
//! owns a part of the tree may be moving it meanwhile.

use rustix::fs::{self as sys, AtFlags, CWD, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Rights to write into a directory that is not one's own.
const OTHERS_WRITE: u32 = 0o022;

/// An account of this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// Its number.
    pub uid: u32,
    /// The number of its group.
    pub gid: u32,
}

/// Gives a directory alone to an account.
pub fn give_directory(path: &Path, to: Account) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    own(&sys::openat(CWD, path, flags, Mode::empty())?, to)
}

/// Gives an open directory to an account, with all that is in it: the deepest first, itself last. Until
/// then nobody but its old owner can change it.
pub fn give(top: impl AsFd, to: Account) -> io::Result<()> {
    give_content(top.as_fd(), to)?;
    own(top, to)
}

/// Gives what is in an open directory to an account, and not the directory itself.
///
/// Errors: also for a file that has a name elsewhere, which may be anybody's.
pub fn give_content(top: impl AsFd, to: Account) -> io::Result<()> {
    let top = top.as_fd();
    each(top, |name| match open(top, name)? {
        Some(inside) => give(inside, to),
        None => {
            let found = sys::statat(top, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if FileType::from_raw_mode(found.st_mode).is_file() && found.st_nlink > 1 {
                let name = name.to_string_lossy();
                return Err(io::Error::other(format!(
                    "{name} has a second name (a hard link) elsewhere"
                )));
            }
            let (uid, gid) = (Some(Uid::from_raw(to.uid)), Some(Gid::from_raw(to.gid)));
            Ok(sys::chownat(
                top,
                name,
                uid,
                gid,
                AtFlags::SYMLINK_NOFOLLOW,
            )?)
        }
    })
}

/// Makes an open directory, and every directory in it, this user's, and closes them to other writers: the
/// directory itself first, and to all others altogether. What is listed then no longer changes.
pub fn take_back(top: impl AsFd) -> io::Result<()> {
    take(top.as_fd(), 0o077)
}

fn take(directory: BorrowedFd<'_>, closed: u32) -> io::Result<()> {
    let mode = sys::fstat(directory)?.st_mode & 0o7777 & !closed;
    close(directory, mode)?;
    each(directory, |name| match open(directory, name)? {
        Some(inside) => take(inside.as_fd(), OTHERS_WRITE),
        None => Ok(()),
    })
}

/// Makes one open directory this user's, with permissions `mode`.
pub fn close(directory: impl AsFd, mode: u32) -> io::Result<()> {
    sys::fchown(&directory, Some(geteuid()), Some(getegid()))?;
    Ok(sys::fchmod(directory, Mode::from_raw_mode(mode))?)
}

/// Gives one open directory to an account, with permissions `mode`.
pub fn give_one(directory: impl AsFd, to: Account, mode: u32) -> io::Result<()> {
    own(&directory, to)?;
    Ok(sys::fchmod(directory, Mode::from_raw_mode(mode & 0o7777))?)
}

fn own(directory: impl AsFd, to: Account) -> io::Result<()> {
    let (uid, gid) = (Some(Uid::from_raw(to.uid)), Some(Gid::from_raw(to.gid)));
    Ok(sys::fchown(directory, uid, gid)?)
}

fn each(directory: BorrowedFd<'_>, mut act: impl FnMut(&CStr) -> io::Result<()>) -> io::Result<()> {
    for entry in sys::Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if ![c".", c".."].contains(&name) {
            act(name)?;
        }
    }
    Ok(())
}

/// Opens a directory in another one; `None` for what is none.
fn open(at: BorrowedFd<'_>, name: &CStr) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match sys::openat(at, name, flags, Mode::empty()) {
        Ok(open) => Ok(Some(open)),
        Err(Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    const TO: Account = Account {
        uid: 4242,
        gid: 4243,
    };

    fn owner(path: &Path) -> (u32, u32) {
        let found = fs::symlink_metadata(path).unwrap();
        (found.uid(), found.gid())
    }

    #[test]
    fn all_of_a_tree_is_given_and_no_link_followed() {
        assert!(geteuid().is_root(), "only root can give files away");
        let room = tempfile::tempdir().unwrap();
        let outside = room.path().join("outside");
        fs::write(&outside, "").unwrap();
        let top = room.path().join("top");
        fs::create_dir_all(top.join("in")).unwrap();
        fs::write(top.join("in/file"), "").unwrap();
        symlink(&outside, top.join("in/link")).unwrap();
        give(File::open(&top).unwrap(), TO).unwrap();
        for name in ["", "in", "in/file", "in/link"] {
            assert_eq!(owner(&top.join(name)), (4242, 4243), "{name}");
        }
        assert_eq!(owner(&outside), (0, 0));
        fs::hard_link(&outside, top.join("in/another")).unwrap();
        assert!(give(File::open(&top).unwrap(), TO).is_err());
        assert_eq!(owner(&outside), (0, 0), "it is not in the tree alone");
        symlink(&top, room.path().join("way")).unwrap();
        assert!(give_directory(&room.path().join("way"), TO).is_err());
    }

    #[test]
    fn a_tree_that_was_taken_back_is_closed() {
        assert!(geteuid().is_root(), "only root can give files away");
        let room = tempfile::tempdir().unwrap();
        let top = room.path().join("top");
        fs::create_dir_all(top.join("in/deep")).unwrap();
        symlink(room.path(), top.join("in/link")).unwrap();
        give(File::open(&top).unwrap(), TO).unwrap();
        for name in ["", "in", "in/deep"] {
            fs::set_permissions(top.join(name), Permissions::from_mode(0o777)).unwrap();
        }
        fs::set_permissions(room.path(), Permissions::from_mode(0o777)).unwrap();
        take_back(File::open(&top).unwrap()).unwrap();
        for (name, mode) in [("", 0o700), ("in", 0o755), ("in/deep", 0o755)] {
            let found = fs::metadata(top.join(name)).unwrap();
            assert_eq!((found.uid(), found.mode() & 0o7777), (0, mode), "{name}");
        }
        let outside = fs::metadata(room.path()).unwrap();
        assert_eq!(outside.mode() & 0o777, 0o777, "a link was followed");
    }
}
