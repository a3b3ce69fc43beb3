//! Owners, modes, attributes and times of restored files.

use evenkeel_op::own_directory::{OwnDirectory, shown};
use evenkeel_op::{Context, Error, Result};
use evenkeel_repository::{FileKind, FileMeta};
use evenkeel_server::launch::Account;
use rustix::fs::{self as sys, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// Gives owner (`owner` instead of what it was), mode, attributes and time to what was created and is open;
/// `path` is for people. Without root, everything belongs to who restores it; that is no error.
pub(crate) fn dress(
    open: BorrowedFd<'_>,
    path: &Path,
    meta: &FileMeta,
    owner: Option<(u32, u32)>,
) -> Result<()> {
    let failed = |what: &str| format!("failed to set the {what} of {}", shown(path).display());
    if rustix::process::geteuid().is_root() {
        let Account { uid, gid } = owner_of(meta, owner);
        sys::fchown(open, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))
            .context(|| failed("owner"))?;
    }
    sys::fchmod(open, Mode::from_raw_mode(plain_mode(meta))).context(|| failed("mode"))?;
    for (name, value) in meta.xattrs.iter().filter(|(name, _)| is_plain(name)) {
        // A label of another host's policy may not be allowed here: the server works without.
        let _ = sys::fsetxattr(open, name.as_str(), value, XattrFlags::empty());
    }
    let time = Timespec {
        tv_sec: meta.mtime.0,
        tv_nsec: i64::from(meta.mtime.1),
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    sys::futimens(open, &times).context(|| failed("time"))
}

/// Does that to a directory; one that is a link is none.
pub(crate) fn dress_dir(path: &Path, meta: &FileMeta, owner: Option<(u32, u32)>) -> Result<()> {
    match OwnDirectory::find(path)? {
        Some((open, _)) => dress(open.as_fd(), path, meta, owner),
        None => Err(Error::failed(format!("{} is gone", shown(path).display()))),
    }
}

/// Whose something becomes: `owner`'s, or whose it was.
pub(crate) fn owner_of(meta: &FileMeta, owner: Option<(u32, u32)>) -> Account {
    let (uid, gid) = owner.unwrap_or((meta.uid, meta.gid));
    Account { uid, gid }
}

/// Returns the permissions that come back. No server's files run as their owner (set-user-ID), whatever
/// the repository says: who could write to it would be root here.
pub(crate) fn plain_mode(meta: &FileMeta) -> u32 {
    match meta.kind {
        // A directory that hands its group down is nothing special.
        FileKind::Dir => meta.mode & 0o3777,
        FileKind::File | FileKind::Symlink => meta.mode & 0o777,
    }
}

/// Whether an extended attribute gives nobody powers: a user's own, access lists, SELinux's label.
fn is_plain(name: &str) -> bool {
    name.starts_with("user.")
        || [
            "security.selinux",
            "system.posix_acl_access",
            "system.posix_acl_default",
        ]
        .contains(&name)
}
