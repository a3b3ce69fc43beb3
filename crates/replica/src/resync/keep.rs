//! What the new files keep of the old ones: by what the server is known, and its keys.

use evenkeel_op::open_directory::OpenDirectory;
use evenkeel_op::{Context, Error, Result};
use rustix::fs::{self as sys, AtFlags, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// MySQL's UUID, and settings that were made with SET PERSIST: `server_id`, for example.
const OWN: [&str; 2] = ["auto.cnf", "mysqld-auto.cnf"];
/// More than this none of them has, in bytes.
const MAX: u64 = 1 << 20;

/// Puts the old directory's own files in the place of what came with the clone, and gives the new directory the
/// old one's permissions. Files of other owners than `owner` and root are no server's, and links are not followed.
pub(super) fn keep(old: &OpenDirectory, new: &OpenDirectory, owner: (u32, u32)) -> Result<()> {
    for name in OWN {
        remove(new, OsStr::new(name))?;
    }
    let mut names: Vec<OsString> = OWN.map(OsString::from).into();
    names.extend(keys(old)?);
    for name in names {
        copy(old, new, &name, owner)?;
    }
    let failed = || format!("failed to set the permissions of {}", new.path().display());
    let mode = old.stat().context(failed)?.st_mode & 0o777;
    sys::fchmod(new, Mode::from_raw_mode(mode))
        .and_then(|()| sys::fsync(new))
        .map_err(io::Error::from)
        .context(failed)
}

/// Certificates and keys at the top of a directory.
fn keys(old: &OpenDirectory) -> Result<Vec<OsString>> {
    let failed = || format!("failed to list {}", old.path().display());
    let mut names = Vec::new();
    for entry in fs::read_dir(old.anchor()).context(failed)? {
        let name = entry.context(failed)?.file_name();
        if Path::new(&name).extension() == Some(OsStr::new("pem")) {
            names.push(name);
        }
    }
    Ok(names)
}

fn remove(new: &OpenDirectory, name: &OsStr) -> Result<()> {
    match sys::unlinkat(new, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(io::Error::from(error))
            .context(|| format!("failed to remove {}", new.path().join(name).display())),
    }
}

fn copy(old: &OpenDirectory, new: &OpenDirectory, name: &OsStr, owner: (u32, u32)) -> Result<()> {
    let (from, to) = (old.path().join(name), new.path().join(name));
    let failed = || format!("failed to copy {}", from.display());
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match sys::openat(old, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(io::Error::from(error)).context(failed),
    };
    let found = file.metadata().context(failed)?;
    let is_theirs = found.uid() == owner.0 || found.uid() == 0;
    if !found.is_file() || !is_theirs || found.len() > MAX {
        return Err(Error::refused(format!(
            "{} is no file of the server's, or is too large",
            from.display()
        ))
        .hint("move it away: the server makes a new one"));
    }
    let mut bytes = Vec::new();
    (&file).take(MAX).read_to_end(&mut bytes).context(failed)?;
    remove(new, name)?;
    let failed = || format!("failed to write {}", to.display());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = sys::openat(new, name, flags, Mode::RUSR | Mode::WUSR)
        .map_err(io::Error::from)
        .context(failed)?;
    let mut made = File::from(made);
    made.write_all(&bytes).context(failed)?;
    let (user, group) = (Uid::from_raw(found.uid()), Gid::from_raw(found.gid()));
    sys::fchown(&made, Some(user), Some(group))
        .and_then(|()| sys::fchmod(&made, Mode::from_raw_mode(found.mode() & 0o777)))
        .and_then(|()| sys::fsync(&made))
        .map_err(io::Error::from)
        .context(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn own_files_stay_and_the_siblings_go() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        for name in ["old", "new"] {
            fs::create_dir(at(name)).unwrap();
        }
        fs::write(at("old/auto.cnf"), "own").unwrap();
        fs::write(at("old/server-key.pem"), "own").unwrap();
        fs::write(at("old/ibdata1"), "old").unwrap();
        fs::write(at("new/server-key.pem"), "sibling's").unwrap();
        fs::write(at("new/mysqld-auto.cnf"), "sibling's").unwrap();
        fs::write(at("new/ibdata1"), "new").unwrap();
        let open = |name: &str| OpenDirectory::open(&at(name)).unwrap();
        let facts = fs::metadata(at("old")).unwrap();
        let owner = (facts.uid(), facts.gid());
        keep(&open("old"), &open("new"), owner).unwrap();
        let text = |name: &str| fs::read_to_string(at("new").join(name)).unwrap();
        assert_eq!(
            (text("auto.cnf"), text("server-key.pem")),
            ("own".into(), "own".into())
        );
        assert_eq!(text("ibdata1"), "new");
        assert!(!at("new/mysqld-auto.cnf").exists());

        fs::write(at("secret"), "root's").unwrap();
        symlink(at("secret"), at("old/ca.pem")).unwrap();
        assert!(keep(&open("old"), &open("new"), owner).is_err());
        assert!(!at("new/ca.pem").exists());
    }
}
