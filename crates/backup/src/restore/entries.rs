//! Directories, links and metadata of restored files.

use super::staging::Staging;
use super::{Plan, names};
use crate::facts::Facts;
use evenkeel_op::own_directory::{OwnDirectory, shown};
use evenkeel_op::{Context, Error, ErrorKind, Result};
use evenkeel_repository::{FileKind, FileMeta};
use evenkeel_server::launch::Account;
use rustix::fs::{self as sys, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
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
    let ids = plan.facts.roots.keys();
    let moved: Vec<(PathBuf, PathBuf)> = ids
        .filter_map(|id| Some((from.of(plan, id)?, to.of(plan, id)?)))
        .collect();
    for record in plan.reader.files() {
        let record = record?;
        if record.meta.kind == FileKind::File && names_places(&record.meta.name, &plan.facts)? {
            let (staging, relative) = names::place(&plan.roots, &record.meta.name)?;
            repoint(&staging.path(&relative), &moved)?;
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

/// No file that holds paths is longer: an index names a binary log in each line.
const PATHS_MAX: u64 = 64 << 20;

/// Reads a file that holds paths, which is at `place`.
fn read_paths(file: &mut File, place: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    file.take(PATHS_MAX + 1)
        .read_to_end(&mut text)
        .context(|| format!("failed to read {}", place.display()))?;
    if text.len() as u64 > PATHS_MAX {
        return Err(Error::new(
            ErrorKind::Differs,
            format!("{} is too long to be a list of paths", place.display()),
        )
        .hint("the server that was backed up did not write that file: look who did"));
    }
    Ok(text)
}

/// Gives the paths in a file, those below a root, their new places: old and new directory of each. What
/// is not a file of its own, because a server put a link there, is refused.
pub(crate) fn repoint(path: &Path, moved: &[(PathBuf, PathBuf)]) -> Result<()> {
    let place = shown(path);
    let failed = || format!("failed to change the paths in {}", place.display());
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(sys::open(path, flags, Mode::empty()).context(failed)?);
    let found = file.metadata().context(failed)?;
    if !found.is_file() || found.nlink() > 1 {
        let place = place.display();
        return Err(Error::failed(format!("{place} is not a file of its own"))
            .hint("something else than a server has worked on it: look who runs as its user"));
    }
    let text = read_paths(&mut file, &place)?;
    let new = match names::has_extension(path, "isl") {
        true => moved_path(&text, moved),
        false => moved_lines(&text, moved),
    };
    let Some(new) = new else { return Ok(()) };
    file.set_len(0)
        .and_then(|()| file.write_all_at(&new, 0))
        .context(failed)
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

/// Returns a list of paths with those below a root in their new places; `None` when there are none.
fn moved_lines(text: &[u8], moved: &[(PathBuf, PathBuf)]) -> Option<Vec<u8>> {
    let mut any = false;
    let mut new = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match moved_path(line, moved).filter(|_| line.starts_with(b"/")) {
            Some(path) => {
                any = true;
                new.extend(path);
                new.extend(line.ends_with(b"\n").then_some(b'\n'));
            }
            None => new.extend_from_slice(line),
        }
    }
    any.then_some(new)
}

/// Returns `path` below its root's new place; `None` when it is below none of them.
fn moved_path(path: &[u8], moved: &[(PathBuf, PathBuf)]) -> Option<Vec<u8>> {
    let text = Path::new(OsStr::from_bytes(path.trim_ascii_end()));
    moved
        .iter()
        .filter_map(|(old, new)| {
            Some((
                old.as_os_str().len(),
                new.join(text.strip_prefix(old).ok()?),
            ))
        })
        // The longest root is the one it belongs to.
        .max_by_key(|(length, _)| *length)
        .map(|(_, path)| {
            let mut bytes = path.into_os_string().into_vec();
            // Joining an empty rest leaves a slash.
            if bytes.len() > 1 && bytes.last() == Some(&b'/') {
                bytes.pop();
            }
            bytes
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_logs_follow_their_root() {
        let moved = [("/var/log/mysql".into(), "/r/binlog".into())];
        let text = b"/var/log/mysql/a.000001\n/other/b.000002\n./c.000003\n/var/log/mysql/a.000004";
        let new = String::from_utf8(moved_lines(text, &moved).unwrap()).unwrap();
        let expected = "/r/binlog/a.000001\n/other/b.000002\n./c.000003\n/r/binlog/a.000004";
        assert_eq!(new, expected);
        assert!(moved_lines(b"./c.000003\n", &moved).is_none());
    }

    #[test]
    fn paths_follow_their_longest_root() {
        let moved = [
            ("/var/lib/mysql".into(), "/r/data".into()),
            ("/var/lib/mysql/x".into(), "/x".into()),
        ];
        let at = |path: &[u8]| moved_path(path, &moved).map(|p| String::from_utf8(p).unwrap());
        assert_eq!(
            at(b"/var/lib/mysql/a.ibd").as_deref(),
            Some("/r/data/a.ibd")
        );
        assert_eq!(at(b"/var/lib/mysql/x/b.ibd\n").as_deref(), Some("/x/b.ibd"));
        assert_eq!(at(b"/var/lib/mysql/x").as_deref(), Some("/x"));
        assert_eq!(at(b"/elsewhere/c"), None);
    }
}
