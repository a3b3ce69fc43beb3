//! Directories, links and metadata of restored files.

use super::places::Places;
use super::staging::Staging;
use super::{Plan, names};
use crate::facts::Facts;
use evenkeel_op::own_directory::{OwnDirectory, shown};
use evenkeel_op::{Context, Error, Result};
use evenkeel_repository::{FileKind, FileMeta};
use evenkeel_server::launch::Account;
use rustix::fs::{self as sys, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// Creates a directory; an existing one is the root itself.
pub(crate) fn make_dir(path: &Path) -> Result<()> {
    fs::create_dir_all(path).context(|| format!("failed to create {}", shown(path).display()))
}

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

/// Where the roots of a generation are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    /// Where they were backed up.
    Source,
    /// Where they are written, until they are shown.
    Staged,
    /// Where they will be.
    Target,
}

impl Where {
    fn of(self, plan: &Plan, id: &str) -> Option<PathBuf> {
        match self {
            Self::Source => plan.facts.roots.get(id).map(PathBuf::from),
            Self::Staged => Some(plan.roots.get(id)?.place().to_owned()),
            Self::Target => Some(plan.roots.get(id)?.target().to_owned()),
        }
    }
}

/// Points `.isl` files, indexes of logs and links of schemas, which lead to where the roots are `from`,
/// at where they are then.
pub(super) fn relink(plan: &Plan, from: Where, to: Where) -> Result<()> {
    let places = places(plan, from, to)?;
    for record in plan.reader.files() {
        let record = record?;
        if record.meta.kind == FileKind::File && names_places(&record.meta.name, &plan.facts)? {
            let (staging, relative) = names::place(&plan.roots, &record.meta.name)?;
            places.repoint(&staging.path(&relative))?;
        }
    }
    let data = plan.roots.get(super::DATA).map(Staging::dir);
    let places = plan.roots.iter().map(|(id, staging)| match to {
        Where::Staged => (id.as_str(), staging.place()),
        Where::Source | Where::Target => (id.as_str(), staging.target()),
    });
    let again = from != Where::Source;
    data.map_or(Ok(()), |data| link_schemas(data, places, again))
}

/// Pairs the places of the roots. Where they were there may have been links to them, so that files are
/// also known by their names.
fn places(plan: &Plan, from: Where, to: Where) -> Result<Places> {
    let ids = plan.facts.roots.keys();
    let mut places =
        Places::new(ids.filter_map(|id| Some((id.clone(), from.of(plan, id)?, to.of(plan, id)?))));
    if from == Where::Source && plan.roots.len() > 1 {
        for record in plan.reader.files() {
            let record = record?;
            let (id, _) = names::split(&record.meta.name)?;
            if let Some(root) = to.of(plan, id).filter(|_| id != super::DATA) {
                places.know(&record.meta.name, &root)?;
            }
        }
    }
    Ok(places)
}

/// Makes the links of schemas that lie elsewhere, in the data directory `data`; `again` when they are
/// there and lead to other places.
pub(crate) fn link_schemas<'a>(
    data: &Path,
    roots: impl Iterator<Item = (&'a str, &'a Path)>,
    again: bool,
) -> Result<()> {
    for (id, place) in roots {
        if let Some(schema) = id.strip_prefix("schema-") {
            let link = data.join(schema);
            if again {
                fs::remove_file(&link)
                    .context(|| format!("failed to move {}", shown(&link).display()))?;
            }
            std::os::unix::fs::symlink(place, &link)
                .context(|| format!("failed to create the link {}", shown(&link).display()))?;
        }
    }
    Ok(())
}

/// Whether a file of a generation holds paths of its server's files.
pub(crate) fn names_places(name: &str, facts: &Facts) -> Result<bool> {
    let (_, relative) = names::split(name)?;
    Ok(names::has_extension(&relative, "isl") || is_log_index(&relative, facts))
}

/// Whether a file lists binary or relay logs. A server that found the old paths in it would read,
/// and purge, the logs of the server that was backed up.
fn is_log_index(relative: &Path, facts: &Facts) -> bool {
    let named = |setting: &str| {
        let path = facts.settings.get(setting).map(Path::new);
        path.and_then(Path::file_name)
            .is_some_and(|name| relative.as_os_str() == name)
    };
    let on_top = relative.components().count() == 1;
    on_top && names::has_extension(relative, "index")
        || named("log_bin_index")
        || named("relay_log_index")
}
