//! Makes a tree that shares its bytes with another one, or has copies of them.
//!
//! Inside a data directory each name gets a `~` at its end: MySQL 8 looks for files that end in
//! `.ibd` everywhere in there, and would find each tablespace twice.

use super::attributes;
use evenkeel_op::{Cancel, Context, Error, Result};
use evenkeel_snapshot::btrfs::{delete_subvolume, is_subvolume};
use rustix::fs::{IFlags, OFlags};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// What is read and written at once, in bytes.
const PIECE: usize = 1 << 20;

/// How a tree is made.
pub(super) struct Making<'a> {
    /// Share the bytes, or copy them.
    pub(super) shares: bool,
    /// The names of the source have their mark.
    pub(super) from_marked: bool,
    /// The names of what is made get one.
    pub(super) to_marked: bool,
    /// Paths in the source that are left out; of directories, what is in them.
    pub(super) leave_out: &'a HashSet<PathBuf>,
    /// Looked at before each file.
    pub(super) cancel: &'a Cancel,
}

/// What a tree holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

impl Making<'_> {
    /// Makes `to`, which must not exist, from the directory `from`; `seen` is called for each file
    /// that was made: its path in the tree without marks, and the source.
    pub(super) fn make(
        &self,
        from: &Path,
        to: &Path,
        mut seen: impl FnMut(&Path, &File) -> Result<()>,
    ) -> Result<Amount> {
        let mut amount = Amount::default();
        let mut open = vec![(from.to_owned(), to.to_owned(), PathBuf::new())];
        while let Some((source, target, inside)) = open.pop() {
            make_directory(&source, &target)?;
            if self.leave_out.contains(&source) {
                continue;
            }
            for entry in entries(&source)? {
                let name = entry.file_name();
                if inside.as_os_str().is_empty() && is_no_part(&name) {
                    continue;
                }
                let plain = self.plain(name)?;
                let child = (
                    entry.path(),
                    target.join(self.named(&plain)?),
                    inside.join(&plain),
                );
                let kind = entry
                    .file_type()
                    .context(|| format!("failed to look at {}", child.0.display()))?;
                if kind.is_dir() {
                    open.push(child);
                } else if kind.is_symlink() {
                    copy_link(&child.0, &child.1)?;
                } else if kind.is_file() && !self.leave_out.contains(&child.0) {
                    self.cancel.check()?;
                    let (file, size) = self.file(&child.0, &child.1)?;
                    amount.files += 1;
                    amount.bytes += size;
                    seen(&child.2, &file)?;
                }
            }
        }
        Ok(amount)
    }

    fn plain(&self, name: OsString) -> Result<OsString> {
        if self.from_marked {
            unmarked(&name)
        } else {
            Ok(name)
        }
    }

    fn named(&self, plain: &OsStr) -> Result<OsString> {
        if self.to_marked {
            marked(plain)
        } else {
            Ok(plain.to_owned())
        }
    }

    /// Makes one file; returns the source and its length.
    fn file(&self, source: &Path, target: &Path) -> Result<(File, u64)> {
        let failed = || match self.shares {
            true => format!("failed to clone {}", source.display()),
            false => format!("failed to copy {}", source.display()),
        };
        let from = open_to_read(source).context(failed)?;
        let facts = from.metadata().context(failed)?;
        let to = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(target)
            .context(failed)?;
        if self.shares {
            inherit_flags(&from, &to);
            rustix::fs::ioctl_ficlone(&to, &from).context(failed)?;
        } else {
            copy_bytes(&from, &to, self.cancel).map_err(|error| {
                let full = error.kind() == io::ErrorKind::StorageFull;
                let reported = Error::failed(failed()).because(error);
                match full {
                    true => {
                        reported.hint("free some space: a copy needs as much as the data directory")
                    }
                    false => reported,
                }
            })?;
        }
        attributes::copy(&from, &facts, &to).context(failed)?;
        Ok((from, facts.size()))
    }
}

/// Whether something at the top of a data directory is nobody's to save: our own, and the
/// filesystem's. A tablespace may be called nearly like ours.
pub(super) fn is_no_part(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    let plain = bytes.strip_suffix(b"~").unwrap_or(bytes);
    let is_tablespace = [&b".ibd"[..], b".ibu"]
        .iter()
        .any(|end| plain.ends_with(end));
    name == "lost+found" || bytes.starts_with(b".evenkeel-") && !is_tablespace
}

/// Whether a server re-creates such a file: a socket or a named pipe.
pub(super) fn is_made_anew(kind: fs::FileType) -> bool {
    kind.is_socket() || kind.is_fifo()
}

/// Opens a file for reading, and no symbolic link.
pub(super) fn open_to_read(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .open(path)
}

/// Opens a file that should be rewritten, or creates it: a regular file with no other name, and no
/// symbolic link, whatever its owner puts there.
pub(super) fn open_to_write(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
        .open(path)?;
    match is_only_name(&file.metadata()?) {
        true => Ok(file),
        false => Err(io::Error::other("something else replaced it meanwhile")),
    }
}

/// Whether this is a regular file that has no other name.
pub(super) fn is_only_name(facts: &fs::Metadata) -> bool {
    facts.is_file() && facts.nlink() == 1
}

/// Copies the bytes of a file into an empty one; zeros become holes.
pub(super) fn copy_bytes(from: &File, to: &File, cancel: &Cancel) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    loop {
        let count = read_full(from, &mut piece, at)?;
        if count == 0 {
            break;
        }
        if piece[..count].iter().any(|byte| *byte != 0) {
            to.write_all_at(&piece[..count], at)?;
        }
        at += count as u64;
        cancel.check().map_err(io::Error::other)?;
    }
    to.set_len(at)
}

/// Reads until the buffer or the file is at its end.
pub(super) fn read_full(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match file.read_at(&mut buffer[count..], offset + count as u64) {
            Ok(0) => break,
            Ok(some) => count += some,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

/// Makes a directory with the attributes of another one; one that is there gets them.
pub(super) fn make_directory(source: &Path, target: &Path) -> Result<()> {
    let failed = || format!("failed to create {}", target.display());
    match DirBuilder::new().mode(0o700).create(target) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(error).context(failed);
        }
        _ => {}
    }
    let from = File::open(source).context(failed)?;
    let facts = from.metadata().context(failed)?;
    // Another user may have put a link there meanwhile.
    let to = OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::NOFOLLOW | OFlags::DIRECTORY).bits() as i32)
        .open(target)
        .context(failed)?;
    inherit_flags(&from, &to);
    attributes::copy(&from, &facts, &to).context(failed)
}

/// Lets what is made be without copy-on-write, where the source is: btrfs shares no bytes between
/// the two kinds. Where that cannot be, the clone says so.
fn inherit_flags(from: &File, to: &File) {
    if rustix::fs::ioctl_getflags(from).is_ok_and(|flags| flags.contains(IFlags::NOCOW)) {
        let _ = rustix::fs::ioctl_setflags(to, IFlags::NOCOW);
    }
}

/// Makes a symbolic link like another one.
pub(super) fn copy_link(source: &Path, target: &Path) -> Result<()> {
    let failed = || format!("failed to copy the link {}", source.display());
    let leads_to = fs::read_link(source).context(failed)?;
    let facts = source.symlink_metadata().context(failed)?;
    std::os::unix::fs::symlink(leads_to, target).context(failed)?;
    std::os::unix::fs::lchown(target, Some(facts.uid()), Some(facts.gid())).context(failed)
}

/// Lists a directory.
pub(super) fn entries(directory: &Path) -> Result<Vec<fs::DirEntry>> {
    fs::read_dir(directory)
        .and_then(Iterator::collect)
        .context(|| format!("failed to list {}", directory.display()))
}

/// Gives every name in a tree its mark; those that have one keep it.
pub(super) fn mark_all(top: &Path) -> Result<()> {
    let mut open = vec![top.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in entries(&directory)? {
            let name = entry.file_name();
            let mut path = entry.path();
            if !name.as_bytes().ends_with(b"~") {
                let to = directory.join(marked(&name)?);
                fs::rename(&path, &to)
                    .context(|| format!("failed to rename {}", path.display()))?;
                path = to;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(path);
            }
        }
    }
    Ok(())
}

fn marked(name: &OsStr) -> Result<OsString> {
    if name.len() >= 255 {
        return Err(Error::refused(format!(
            "the name {} is too long to be kept inside a data directory",
            name.to_string_lossy()
        )));
    }
    let mut marked = name.to_owned();
    marked.push("~");
    Ok(marked)
}

pub(super) fn unmarked(name: &OsStr) -> Result<OsString> {
    name.as_bytes()
        .strip_suffix(b"~")
        .map(|plain| OsString::from_vec(plain.to_vec()))
        .ok_or_else(|| {
            Error::failed(format!(
                "the baseline holds '{}', which evenkeel did not save",
                name.to_string_lossy()
            ))
        })
}

/// Brings the filesystem that a directory is on to disk.
pub(super) fn sync(directory: &Path) -> Result<()> {
    File::open(directory)
        .and_then(|open| Ok(rustix::fs::syncfs(open)?))
        .context(|| format!("failed to sync {}", directory.display()))
}

/// Deletes a file, a tree or a subvolume; what is gone already is fine. Follows no symbolic link.
pub(super) fn remove(path: &Path) -> Result<()> {
    let kind = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        facts => facts
            .context(|| format!("failed to examine {}", path.display()))?
            .file_type(),
    };
    if kind.is_dir() && is_subvolume(path)? {
        return delete_subvolume(path);
    }
    let removed = match kind.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
    removed.context(|| format!("failed to delete {}", path.display()))
}

/// Returns whether a file holds exactly these bytes.
pub(super) fn holds(path: &Path, bytes: &[u8]) -> bool {
    let mut found = Vec::new();
    open_to_read(path)
        .and_then(|file| file.take(bytes.len() as u64 + 1).read_to_end(&mut found))
        .is_ok_and(|_| found == bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    fn making<'a>(leave_out: &'a HashSet<PathBuf>, cancel: &'a Cancel) -> Making<'a> {
        Making {
            shares: false,
            from_marked: false,
            to_marked: false,
            leave_out,
            cancel,
        }
    }

    #[test]
    fn a_tree_is_the_same_again_whether_marked_or_not() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        fs::create_dir_all(data.join("bank")).unwrap();
        fs::create_dir_all(data.join("tmp")).unwrap();
        fs::write(data.join("bank/a.ibd"), vec![7; 3 << 20]).unwrap();
        fs::write(data.join("tmp/scratch"), "x").unwrap();
        fs::write(data.join("host.pid"), "1").unwrap();
        fs::write(data.join(".evenkeel-x"), "1").unwrap();
        fs::write(data.join(".evenkeel-ts1.ibd"), "rows").unwrap();
        fs::set_permissions(data.join("bank"), Permissions::from_mode(0o750)).unwrap();
        std::os::unix::fs::symlink("bank/a.ibd", data.join("link")).unwrap();
        let left_out = HashSet::from([data.join("tmp"), data.join("host.pid")]);
        let cancel = Cancel::new();
        let kept = dir.path().join("kept");
        let mut names = Vec::new();
        let saved = Making {
            to_marked: true,
            ..making(&left_out, &cancel)
        }
        .make(&data, &kept, |name, _| {
            names.push(name.to_owned());
            Ok(())
        })
        .unwrap();
        names.sort();
        assert_eq!((saved.files, saved.bytes), (2, (3 << 20) + 4));
        let files = [".evenkeel-ts1.ibd", "bank/a.ibd"];
        assert_eq!(names, files.map(PathBuf::from));
        assert!(kept.join("bank~/a.ibd~").is_file());
        let nothing = HashSet::new();
        let again = dir.path().join("again");
        Making {
            from_marked: true,
            ..making(&nothing, &cancel)
        }
        .make(&kept, &again, |_, _| Ok(()))
        .unwrap();
        assert_eq!(
            fs::read(again.join("bank/a.ibd")).unwrap(),
            vec![7; 3 << 20]
        );
        assert_eq!(
            fs::read_link(again.join("link")).unwrap(),
            Path::new("bank/a.ibd")
        );
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o7777;
        assert_eq!(mode(&again.join("bank")), 0o750);
        assert!(entries(&again.join("tmp")).unwrap().is_empty());
        assert_eq!(
            fs::read_to_string(again.join(".evenkeel-ts1.ibd")).unwrap(),
            "rows"
        );
        assert!(!again.join("host.pid").exists() && !again.join(".evenkeel-x").exists());
        mark_all(&again).unwrap();
        mark_all(&again).unwrap();
        assert!(again.join("bank~/a.ibd~").is_file());
    }

    #[test]
    fn zeros_become_holes() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("1"), dir.path().join("2"));
        let mut bytes = vec![0; 5 << 20];
        bytes[4 << 20] = 1;
        fs::write(&one, &bytes).unwrap();
        let to = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&two)
            .unwrap();
        copy_bytes(&File::open(&one).unwrap(), &to, &Cancel::new()).unwrap();
        assert_eq!(fs::read(&two).unwrap(), bytes);
        assert!(to.metadata().unwrap().blocks() * 512 < 2 << 20);
    }
}
