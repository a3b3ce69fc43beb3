//! Whom a server belongs to that evenkeel starts for itself, on files of which it knows nothing but that
//! they were in a repository: never root.

use evenkeel_op::{Context, Error, Result};
use evenkeel_server::launch::{Account, Binary};
use rustix::fs::{self as sys, AtFlags, CWD, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Numbers that systemd gives to services for as long as they run: nobody's.
const NOBODYS: std::ops::Range<u32> = 61_184..65_520;

/// Returns a number that is nobody's. `None` without root, who alone can start a server as another.
pub(crate) fn nobodys_account() -> Option<Account> {
    let count = NOBODYS.end - NOBODYS.start;
    let number = NOBODYS.start + std::process::id() % count;
    rustix::process::geteuid().is_root().then_some(Account {
        uid: number,
        gid: number,
    })
}

/// Returns the owner of a data directory, or where that is root a number that is nobody's. `None` without
/// root.
pub(crate) fn owner_of(datadir: &Path) -> Result<Option<Account>> {
    let nobodys = nobodys_account();
    let found =
        fs::metadata(datadir).context(|| format!("failed to look at {}", datadir.display()))?;
    let owner = Account {
        uid: found.uid(),
        gid: found.gid(),
    };
    Ok(nobodys.map(|nobodys| if owner.uid == 0 { nobodys } else { owner }))
}

/// Fails when the account cannot get to where its server has to work, or to its program.
///
/// Errors: `Refused`, with what to do.
pub(crate) fn reach(account: Account, binary: &Binary, dirs: &[&Path]) -> Result<()> {
    for dir in dirs {
        if let Some(closed) = closed_above(account, dir) {
            return Err(Error::refused(format!(
                "the server that is started for this does not run as root, and user {} cannot enter {}",
                account.uid,
                closed.display()
            ))
            .hint("name a place below directories that everybody may enter, for example in /srv: --target, or --scratch"));
        }
    }
    match closed_above(account, &binary.path) {
        None => Ok(()),
        Some(closed) => Err(Error::refused(format!(
            "{} does not run as root here, and user {} cannot enter {}",
            binary.path.display(),
            account.uid,
            closed.display()
        ))
        .hint("name a program with --server-binary that everybody may run")),
    }
}

/// Returns the topmost directory above `path` that the account may not enter.
fn closed_above(account: Account, path: &Path) -> Option<std::path::PathBuf> {
    let parent = path.parent().unwrap_or(path);
    let parent = fs::canonicalize(parent).unwrap_or_else(|_| parent.to_owned());
    let mut above: Vec<&Path> = parent.ancestors().collect();
    above.reverse();
    let closed = above.into_iter().find(|dir| {
        let Ok(found) = fs::metadata(dir) else {
            return true;
        };
        let bit = match () {
            () if found.uid() == account.uid => 0o100,
            () if found.gid() == account.gid => 0o010,
            () => 0o001,
        };
        found.mode() & bit == 0
    });
    closed.map(Path::to_owned)
}

/// Whether a server that is started for `verify` could work at a place: whether everybody may enter all
/// directories above it, where it would not be this user's.
#[must_use]
pub fn is_enterable(place: &Path) -> bool {
    nobodys_account().is_none_or(|account| closed_above(account, place).is_none())
}

/// Gives a directory with all that is in it to an account. Names are taken from the open directory that
/// they were found in, and links are not followed: whoever owns a part of the tree may be moving it.
pub(crate) fn give(top: &Path, to: Account) -> Result<()> {
    let failed = || format!("failed to set owners in {}", top.display());
    let name = CString::new(top.as_os_str().as_bytes()).context(failed)?;
    give_in(&open(CWD, &name).context(failed)?, to).context(failed)
}

fn open(at: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(sys::openat(at, name, flags, Mode::empty())?)
}

fn give_in(directory: &OwnedFd, to: Account) -> io::Result<()> {
    let (uid, gid) = (Some(Uid::from_raw(to.uid)), Some(Gid::from_raw(to.gid)));
    for entry in sys::Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if [c".", c".."].contains(&name) {
            continue;
        }
        match open(directory.as_fd(), name) {
            Ok(inside) => give_in(&inside, to)?,
            Err(error) if is_no_directory(&error) => {
                sys::chownat(directory, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            Err(error) => return Err(error),
        }
    }
    // Last: until now nobody but its old owner could change it.
    Ok(sys::fchown(directory, uid, gid)?)
}

fn is_no_directory(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOTDIR | Errno::LOOP)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_closed_directory_above_is_named() {
        let room = tempfile::tempdir().unwrap();
        let open = |mode: u32| fs::Permissions::from_mode(mode);
        let inner = room.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::set_permissions(room.path(), open(0o711)).unwrap();
        let stranger = Account {
            uid: 4242,
            gid: 4242,
        };
        assert_eq!(closed_above(stranger, &inner), None);
        let top = fs::canonicalize(room.path()).unwrap().join("a");
        fs::set_permissions(&top, open(0o700)).unwrap();
        assert_eq!(closed_above(stranger, &inner), Some(top.clone()));
        let owner = fs::metadata(&top).unwrap();
        let own = Account {
            uid: owner.uid(),
            gid: owner.gid(),
        };
        assert_eq!(closed_above(own, &inner), None);
    }

    #[test]
    fn all_of_a_tree_is_given_and_no_link_followed() {
        assert!(
            rustix::process::geteuid().is_root(),
            "only root can give files away"
        );
        let room = tempfile::tempdir().unwrap();
        let outside = room.path().join("outside");
        fs::write(&outside, "").unwrap();
        let top = room.path().join("top");
        fs::create_dir_all(top.join("in")).unwrap();
        fs::write(top.join("in/file"), "").unwrap();
        std::os::unix::fs::symlink(&outside, top.join("in/link")).unwrap();
        let to = Account {
            uid: 4242,
            gid: 4243,
        };
        give(&top, to).unwrap();
        for name in ["", "in", "in/file", "in/link"] {
            let found = fs::symlink_metadata(top.join(name)).unwrap();
            assert_eq!((found.uid(), found.gid()), (4242, 4243), "{name}");
        }
        assert_eq!(fs::metadata(&outside).unwrap().uid(), 0);
        assert!(NOBODYS.contains(&nobodys_account().unwrap().uid));
    }
}
