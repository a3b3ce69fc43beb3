//! Directories that nobody but this user can write into, opened once.
//!
//! Whoever owns the directory above may move such a directory away and put another in its place at any
//! moment. So it is opened once, looked at by its descriptor, and what is in it is reached through the
//! descriptor: by the `*at` calls, or by [`OpenDirectory::anchor`].

use crate::open_directory::{OPEN_FILES, OpenDirectory};
use crate::{Context, Error};
use rustix::fs::{self as sys, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

pub use crate::open_directory::shown;

/// An open directory that was found to be this user's.
#[derive(Debug)]
pub struct OwnDirectory(OpenDirectory);

impl OwnDirectory {
    /// Makes a directory with permissions `mode`, with the usual ones those above it that are not there,
    /// and opens it. One that is there already must be this user's, and closed to other writers.
    ///
    /// Errors: `Refused` when it is not; those of making and opening.
    pub fn make(path: &Path, mode: u32) -> crate::Result<Self> {
        let failed = || format!("failed to create {}", path.display());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).context(failed)?;
        }
        match DirBuilder::new().mode(mode).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(error).context(failed)
            }
            _ => Self::open(path),
        }
    }

    /// Opens a directory that is this user's and closed to other writers.
    ///
    /// Errors: `Refused` when it is not, or is a symbolic link; those of opening.
    pub fn open(path: &Path) -> crate::Result<Self> {
        let refused = |why: &str| {
            Error::refused(format!("{} {why}", path.display())).hint(
                "check who created it; if you do not need its contents, move it away or delete \
                 it, and run again",
            )
        };
        let (directory, stat) = match Self::open_any(path) {
            Ok(open) => open,
            Err(error) if is_no_directory(&error) => {
                return Err(refused("is a symbolic link, or not a directory"));
            }
            Err(error) => {
                return Err(error).context(|| format!("failed to open {}", path.display()));
            }
        };
        if stat.st_uid != geteuid().as_raw() {
            return Err(refused("belongs to another user"));
        }
        if !is_closed_to_others(&stat) {
            return Err(refused("is writable by other users")
                .hint(format!("if only you use it: chmod go-w {}", path.display())));
        }
        Ok(directory)
    }

    /// Opens a directory that is root's or this user's, and closed to other writers. `None` for any
    /// other, and where there is none.
    #[must_use]
    pub fn open_trusted(path: &Path) -> Option<Self> {
        let (directory, stat) = Self::open_any(path).ok()?;
        (is_trusted(&stat) && is_closed_to_others(&stat)).then_some(directory)
    }

    /// Opens a directory, and no link to one; `None` where there is none. Whose it is, and which, is the
    /// caller's to judge, by its status.
    ///
    /// Errors: `Refused` when it is a symbolic link or no directory; those of opening.
    pub fn find(path: &Path) -> crate::Result<Option<(Self, Stat)>> {
        match Self::open_any(path) {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if is_no_directory(&error) => Err(Error::refused(format!(
                "{} is a symbolic link, or not a directory",
                path.display()
            ))
            .hint("move it away, and run again")),
            Err(error) => Err(error).context(|| format!("failed to open {}", path.display())),
        }
    }

    fn open_any(path: &Path) -> io::Result<(Self, Stat)> {
        let open = OpenDirectory::open(path)?;
        let stat = open.stat()?;
        Ok((Self(open), stat))
    }
}

impl Deref for OwnDirectory {
    type Target = OpenDirectory;

    fn deref(&self) -> &OpenDirectory {
        &self.0
    }
}

impl AsFd for OwnDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Opens a file or directory, and follows no symbolic link on the way there. A path that had none when it
/// was looked at leads to nothing else then, whatever was put on the way. It may begin with an anchor.
///
/// Errors: those of opening; what is or goes through a link is named as such.
pub fn open_without_links(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    let (start, below) = start_of(path);
    let way = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let start = sys::open(start, way, Mode::empty())?;
    let links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let opened = match sys::openat2(&start, below, flags, Mode::empty(), links) {
        // An older kernel, or one that is kept from it.
        Err(Errno::NOSYS | Errno::PERM) => step_by_step(start, below, flags),
        other => other,
    };
    opened.map_err(|errno| match errno {
        Errno::LOOP => io::Error::other("a symbolic link was put there after it was checked"),
        errno => errno.into(),
    })
}

/// Splits a path into a directory that is trusted, and the way from there.
fn start_of(path: &Path) -> (PathBuf, &Path) {
    if let Ok(below) = path.strip_prefix(OPEN_FILES) {
        let mut parts = below.components();
        if let Some(number) = parts.next()
            && !parts.as_path().as_os_str().is_empty()
        {
            return (Path::new(OPEN_FILES).join(number), parts.as_path());
        }
    }
    match path.strip_prefix("/") {
        Ok(below) => (PathBuf::from("/"), below),
        Err(_) => (PathBuf::from("."), path),
    }
}

fn step_by_step(mut at: OwnedFd, below: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let way = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut parts: Vec<_> = below.iter().collect();
    let last = parts.pop().ok_or(Errno::NOENT)?;
    for part in parts {
        // The kernel says of a link that it is no directory.
        at = sys::openat(&at, part, way, Mode::empty()).map_err(|errno| match errno {
            Errno::NOTDIR => Errno::LOOP,
            errno => errno,
        })?;
    }
    sys::openat(&at, last, flags | OFlags::NOFOLLOW, Mode::empty())
}

/// Makes a directory for what nobody else on this host may read, and opens it; one that is there is closed to
/// others. What is written in it should be reached through what is returned. A link on the way is followed only
/// where nobody but root and this user can have put it there. For root, a directory that belongs to another user
/// is refused: its owner could lead what is written in it elsewhere.
///
/// Errors: `Refused` then; those of making and closing.
pub fn make_private(path: &Path) -> crate::Result<OwnDirectory> {
    let failed = || format!("failed to create {}", path.display());
    let place = made(path)?;
    let (directory, is_ours) = close(&place).context(failed)?;
    if !is_ours && geteuid().is_root() {
        return Err(
            Error::refused(format!("{} belongs to another user", path.display())).hint(
                "name a new directory, or give this one to root: its owner could redirect \
                 what root writes",
            ),
        );
    }
    Ok(directory)
}

/// Makes a directory that only this user may read, or opens one that is there and leaves its permissions as they are:
/// others may read its list of files then.
///
/// Errors: `Refused` for one that others own, or may write to: they could put files of theirs in the place of ours.
pub fn make_unshared(path: &Path) -> crate::Result<OwnDirectory> {
    let failed = || format!("failed to create {}", path.display());
    let place = made(path)?;
    let open = OpenDirectory::open_without_links(&place).context(failed)?;
    let stat = open.stat().context(failed)?;
    if stat.st_uid != geteuid().as_raw() || stat.st_mode & 0o022 != 0 {
        let message = format!(
            "{} belongs to another user, or others may write to it",
            path.display()
        );
        return Err(
            Error::refused(message).hint("name a new directory: it is made for this user alone")
        );
    }
    Ok(OwnDirectory(open))
}

/// Makes a directory for this user alone, if there is none; returns its path.
fn made(path: &Path) -> crate::Result<PathBuf> {
    let failed = || format!("failed to create {}", path.display());
    let place = without_links_of_others(path)?;
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent).context(failed)?;
    }
    match DirBuilder::new().mode(0o700).create(&place) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error).context(failed),
        _ => Ok(place),
    }
}

/// Takes the permissions of everybody else from a directory, if it is this user's. Returns whether it is.
/// Links of others are not followed on the way there.
pub fn close_to_others(path: &Path) -> io::Result<bool> {
    let place = without_links_of_others(path).map_err(io::Error::other)?;
    close(&place).map(|(_, is_ours)| is_ours)
}

fn close(place: &Path) -> io::Result<(OwnDirectory, bool)> {
    let open = OpenDirectory::open_without_links(place)?;
    let stat = open.stat()?;
    let is_ours = stat.st_uid == geteuid().as_raw();
    if is_ours && stat.st_mode & 0o1002 == 0o1002 {
        // Such as /tmp: the whole host works there.
        let why = format!(
            "{} is a directory that every user writes to",
            place.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    if is_ours && stat.st_mode & 0o077 != 0 {
        sys::fchmod(&open, Mode::from_raw_mode(stat.st_mode & 0o7700))?;
    }
    Ok((OwnDirectory(open), is_ours))
}

/// How many links may stand on one path; the kernel's own limit.
const LINKS: u32 = 40;

/// Returns an absolute path without symbolic links that leads where `path` does; what is behind a missing
/// part stays as it is.
///
/// Errors: `Refused` where a link on the way is another user's, or stands where others can put one.
pub fn without_links_of_others(path: &Path) -> crate::Result<PathBuf> {
    let failed = || format!("failed to look at {}", path.display());
    let named = match path.as_os_str().is_empty() {
        true => Path::new("."),
        false => path,
    };
    let mut at = PathBuf::from("/");
    let mut rest = std::path::absolute(named).context(failed)?;
    let mut links = 0;
    loop {
        let mut parts = rest.components();
        let Some(part) = parts.next() else {
            return Ok(at);
        };
        let behind = parts.as_path().to_owned();
        match part {
            Component::RootDir => at = PathBuf::from("/"),
            Component::ParentDir => {
                at.pop();
            }
            Component::Normal(name) => {
                let next = at.join(name);
                match fs::symlink_metadata(&next) {
                    Ok(found) if found.is_symlink() => {
                        links += 1;
                        if links > LINKS || !is_trusted_link(&at, &found).context(failed)? {
                            return Err(link_of_others(&next));
                        }
                        let target = fs::read_link(&next).context(failed)?;
                        rest = target.join(behind);
                        continue;
                    }
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error).context(failed),
                }
                at = next;
            }
            Component::CurDir | Component::Prefix(_) => {}
        }
        rest = behind;
    }
}

/// Whether root or this user made a link in the directory `above`, and nobody else can put another there.
fn is_trusted_link(above: &Path, link: &fs::Metadata) -> io::Result<bool> {
    let ours = geteuid();
    let trusted = |user: u32| user == 0 || user == ours.as_raw();
    if !ours.is_root() {
        return Ok(trusted(link.uid()));
    }
    let above = fs::metadata(above)?;
    // In a directory like `/tmp` others may add names, and change only their own.
    let closed = above.mode() & 0o022 == 0 || above.mode() & 0o1000 != 0;
    Ok(trusted(link.uid()) && trusted(above.uid()) && closed)
}

fn link_of_others(link: &Path) -> Error {
    Error::refused(format!(
        "{} is a symbolic link that other users could have put there",
        link.display()
    ))
    .hint("check who created it, and name the directory that it points to")
}

/// Whether what `stat` describes is root's or this user's.
#[must_use]
pub fn is_trusted(stat: &Stat) -> bool {
    stat.st_uid == 0 || stat.st_uid == geteuid().as_raw()
}

fn is_closed_to_others(stat: &Stat) -> bool {
    stat.st_mode & 0o022 == 0
}

/// The kernel says of a link that it would follow too many, or that it is no directory.
fn is_no_directory(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::LOOP | Errno::NOTDIR)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, Permissions};
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    /// What the account that owns the directory above plants under a name that root will use.
    #[test]
    fn no_directory_is_closed_or_filled_through_a_link_of_others() {
        assert!(geteuid().is_root(), "only root can play another account");
        let room = tempfile::tempdir().unwrap();
        let top = room.path().canonicalize().unwrap();
        let (theirs, victim) = (top.join("theirs"), top.join("victim"));
        for dir in [&theirs, &victim] {
            fs::create_dir(dir).unwrap();
            fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
        }
        let link = theirs.join("data.damaged-pages");
        symlink(&victim, &link).unwrap();
        chown(&theirs, Some(4242), None).unwrap();
        // Whoever owns the directory can also move root's own link there.
        for owner in [4242, 0] {
            lchown(&link, Some(owner), None).unwrap();
            for path in [link.clone(), link.join("more/below")] {
                let error = make_private(&path).unwrap_err();
                assert!(error.to_string().contains("symbolic link"), "{error}");
                assert!(close_to_others(&path).is_err());
            }
            assert!(OwnDirectory::make(&link, 0o700).is_err());
        }
        assert_eq!(mode(&victim), 0o755);
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
    }

    #[test]
    fn a_link_that_root_alone_can_have_made_is_followed() {
        let room = tempfile::tempdir().unwrap();
        let top = room.path().canonicalize().unwrap();
        fs::create_dir(top.join("large-disk")).unwrap();
        symlink("large-disk", top.join("backup")).unwrap();
        symlink("backup/../backup", top.join("again")).unwrap();
        let made = make_private(&top.join("again/today/dump")).unwrap();
        fs::write(made.anchor().join("file"), "x").unwrap();
        let real = top.join("large-disk/today/dump");
        assert_eq!((made.path(), mode(&real)), (real.as_path(), 0o700));
        assert!(real.join("file").exists());
        fs::set_permissions(&real, Permissions::from_mode(0o750)).unwrap();
        make_private(&top.join("backup/today/dump")).unwrap();
        assert_eq!(mode(&real), 0o700);
        symlink("round", top.join("round")).unwrap();
        assert!(make_private(&top.join("round/x")).is_err());
    }

    #[test]
    fn no_link_is_followed_anywhere_on_the_way() {
        let room = tempfile::tempdir().unwrap();
        let top = room.path().canonicalize().unwrap();
        fs::create_dir(top.join("real")).unwrap();
        fs::write(top.join("real/file"), "x").unwrap();
        symlink(top.join("real"), top.join("way")).unwrap();
        symlink("file", top.join("real/other")).unwrap();
        let anchored = OwnDirectory::open(&top).unwrap();
        for top in [top.clone(), anchored.anchor()] {
            let open = |name: &str| open_without_links(&top.join(name), OFlags::RDONLY);
            let mut text = String::new();
            let mut file = File::from(open("real/file").unwrap());
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "x");
            for name in ["way/file", "real/other"] {
                let error = open(name).unwrap_err();
                assert!(
                    error.to_string().contains("symbolic link"),
                    "{name}: {error}"
                );
            }
            let error = open("real/none").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
            let step = |name: &str| {
                let start = sys::open(&top, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
                step_by_step(start, Path::new(name), OFlags::RDONLY)
            };
            assert!(step("real/file").is_ok());
            assert_eq!(step("way/file").unwrap_err(), Errno::LOOP);
            assert_eq!(step("real/other").unwrap_err(), Errno::LOOP);
        }
    }
}
