//! What a file has besides its bytes: owner, mode, times, extended attributes (ACLs, labels).

use rustix::fs::{Timestamps, XattrFlags};
use rustix::io::Errno;
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// Gives `to` the attributes of `from`, whose facts are `facts`.
pub(super) fn copy(from: &File, facts: &Metadata, to: &File) -> io::Result<()> {
    let now = to.metadata()?;
    if (now.uid(), now.gid()) != (facts.uid(), facts.gid()) {
        std::os::unix::fs::fchown(to, Some(facts.uid()), Some(facts.gid()))?;
    }
    // After the owner: a change of that clears bits.
    if now.mode() & 0o7777 != facts.mode() & 0o7777 {
        to.set_permissions(Permissions::from_mode(facts.mode() & 0o7777))?;
    }
    extended(from, to)?;
    let time = |s: i64, ns: i64| rustix::fs::Timespec {
        tv_sec: s,
        tv_nsec: ns as _,
    };
    let times = Timestamps {
        last_access: time(facts.atime(), facts.atime_nsec()),
        last_modification: time(facts.mtime(), facts.mtime_nsec()),
    };
    Ok(rustix::fs::futimens(to, &times)?)
}

fn extended(from: &File, to: &File) -> io::Result<()> {
    let mut names = vec![0; 4096];
    let length = match rustix::fs::flistxattr(from, &mut names[..]) {
        Ok(length) => length,
        // The filesystem has none.
        Err(Errno::OPNOTSUPP) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    };
    let mut value = vec![0; 65536];
    for name in names[..length].split(|byte| *byte == 0) {
        if name.is_empty() {
            continue;
        }
        let length = rustix::fs::fgetxattr(from, name, &mut value[..])?;
        match rustix::fs::fsetxattr(to, name, &value[..length], XattrFlags::empty()) {
            // What the kernel gives each new file by itself, and lets nobody else set.
            Err(Errno::PERM | Errno::OPNOTSUPP) if name.starts_with(b"security.") => {}
            other => other?,
        }
    }
    Ok(())
}
