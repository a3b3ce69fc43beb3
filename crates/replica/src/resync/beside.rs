//! The data directory, and what lies beside it: reached from the directory above, which is opened once. Whose that
//! is does not matter: what is exchanged and removed is known by its number.

use evenkeel_op::open_directory::OpenDirectory;
use evenkeel_op::own_directory::without_links_of_others;
use evenkeel_op::paths::{absent, absolute};
use evenkeel_op::{Context, Error, Result};
use evenkeel_server::files;
use rustix::fs::{self as sys, AtFlags, FileType, RenameFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Ends the name of what is prepared, and of the journal.
const SUFFIX: &str = ".evenkeel-resync";
/// Ends the name of old files that are kept.
const KEPT: &str = ".evenkeel-replaced";

/// The number of a directory on its filesystem. Both are on one, being names in one directory; the number of that
/// filesystem may be another one after a restart of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DirectoryId(u64);

/// Such a directory.
#[derive(Debug)]
pub(super) struct Beside {
    /// The data directory, without links.
    pub(super) datadir: PathBuf,
    parent: OpenDirectory,
    name: OsString,
}

impl Beside {
    pub(super) fn open(datadir: &Path) -> Result<Self> {
        let datadir = without_links_of_others(&absolute(datadir))?;
        let (Some(parent), Some(name)) = (datadir.parent(), datadir.file_name()) else {
            return Err(Error::usage(format!(
                "{} cannot be exchanged for another directory",
                datadir.display()
            )));
        };
        let name = name.to_owned();
        let opened = OpenDirectory::open(parent)
            .context(|| format!("failed to open {}", parent.display()))?;
        let beside = Self {
            parent: opened,
            datadir,
            name,
        };
        match beside.id_of(&beside.name)? {
            Some(_) => Ok(beside),
            None => Err(absent("data directory", &beside.datadir)
                .hint("name the broken replica's data directory: --datadir DIR")),
        }
    }

    fn named(&self, end: &str) -> OsString {
        let mut name = self.name.clone();
        name.push(end);
        name
    }

    /// The name of the journal.
    pub(super) fn journal(&self) -> OsString {
        let mut name = OsString::from(".");
        name.push(self.named(SUFFIX));
        name
    }

    pub(super) fn parent(&self) -> &OpenDirectory {
        &self.parent
    }

    /// Where the new directory is until the exchange, and the old one from then on.
    pub(super) fn other(&self) -> PathBuf {
        self.datadir.with_file_name(self.named(SUFFIX))
    }

    fn id_of(&self, name: &OsStr) -> Result<Option<DirectoryId>> {
        let failed = || format!("failed to look at {}", self.datadir.display());
        match sys::statat(&self.parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode).is_dir() => {
                Ok(Some(DirectoryId(stat.st_ino)))
            }
            Ok(_) => Err(Error::refused(format!(
                "{} is not a directory",
                self.datadir.with_file_name(name).display()
            ))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(io::Error::from(error)).context(failed),
        }
    }

    /// What the data directory is.
    pub(super) fn id(&self) -> Result<DirectoryId> {
        self.id_of(&self.name)?
            .ok_or_else(|| absent("data directory", &self.datadir))
    }

    /// What the other one is, if it is there.
    pub(super) fn other_id(&self) -> Result<Option<DirectoryId>> {
        self.id_of(&self.named(SUFFIX))
    }

    /// Refuses what lies at the place of the new files, if it is not the server's: who may write to the directory above
    /// can put any other one there.
    pub(super) fn refuse_strange(&self, owner: (u32, u32)) -> Result<()> {
        let Some(_) = self.other_id()? else {
            return Ok(());
        };
        let place = self.other();
        let stat = self
            .opened_other()?
            .stat()
            .context(|| format!("failed to look at {}", place.display()))?;
        if stat.st_uid == owner.0 {
            return Ok(());
        }
        Err(Error::refused(format!(
            "{} does not belong to the server's account, and is none of ours",
            place.display()
        ))
        .hint("move it away"))
    }

    /// Opens the data directory.
    pub(super) fn data(&self) -> Result<OpenDirectory> {
        self.child(&self.name)
    }

    /// Opens the other one.
    pub(super) fn opened_other(&self) -> Result<OpenDirectory> {
        self.child(&self.named(SUFFIX))
    }

    fn child(&self, name: &OsStr) -> Result<OpenDirectory> {
        let opened = self.parent.child(name);
        opened.context(|| {
            let path = self.datadir.with_file_name(name);
            format!("failed to open {}", path.display())
        })
    }

    /// Exchanges both by one rename, on disk when it returns.
    pub(super) fn exchange(&self) -> Result<()> {
        let other = self.named(SUFFIX);
        let (parent, flags) = (&self.parent, RenameFlags::EXCHANGE);
        sys::renameat_with(parent, &self.name, parent, &other, flags)
            .map_err(io::Error::from)
            .context(|| {
                format!(
                    "failed to exchange {} and {}",
                    self.datadir.display(),
                    self.other().display()
                )
            })?;
        fail::fail_point!("resync::exchanged");
        self.sync()
    }

    pub(super) fn sync(&self) -> Result<()> {
        sys::fsync(&self.parent)
            .map_err(io::Error::from)
            .context(|| format!("failed to sync {}", self.parent.path().display()))
    }

    /// Removes the other one, which must be `id`, with all that is in it. Links are removed, not followed.
    pub(super) fn remove_other(&self, id: DirectoryId) -> Result<()> {
        let Some(found) = self.other_id()? else {
            return Ok(());
        };
        let place = self.other();
        let strange = || {
            Error::refused(format!(
                "{} is another directory by now, and is not removed",
                place.display()
            ))
        };
        if found != id {
            return Err(strange());
        }
        super::refuse::mounts(&place)?;
        files::refuse_running(&place)?;
        let open = self.opened_other()?;
        let failed = || format!("failed to remove {}", place.display());
        let stat = open.stat().context(failed)?;
        if DirectoryId(stat.st_ino) != id {
            return Err(strange());
        }
        for entry in fs::read_dir(open.anchor()).context(failed)? {
            let entry = entry.context(failed)?;
            match entry.file_type().context(failed)?.is_dir() {
                true => fs::remove_dir_all(entry.path()).context(failed)?,
                false => fs::remove_file(entry.path()).context(failed)?,
            }
        }
        sys::unlinkat(&self.parent, self.named(SUFFIX), AtFlags::REMOVEDIR)
            .map_err(io::Error::from)
            .context(failed)?;
        self.sync()
    }

    /// Gives the old files, which must be `id`, another name, and returns it.
    pub(super) fn keep_other(&self, id: DirectoryId) -> Result<PathBuf> {
        let mut number = 1;
        loop {
            let kept = self.named(&format!("{KEPT}-{number}"));
            let path = self.datadir.with_file_name(&kept);
            if self.other_id()? != Some(id) {
                return Err(Error::failed(format!(
                    "the old files are not at {} any more",
                    self.other().display()
                )));
            }
            let (parent, flags) = (&self.parent, RenameFlags::NOREPLACE);
            match sys::renameat_with(parent, self.named(SUFFIX), parent, &kept, flags) {
                Ok(()) => return self.sync().map(|()| path),
                Err(Errno::EXIST) => number += 1,
                Err(error) => {
                    return Err(io::Error::from(error)).context(|| {
                        format!("failed to rename the old files to {}", path.display())
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn beside() -> (tempfile::TempDir, Beside) {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("data/shop")).unwrap();
        fs::create_dir(top.path().join("precious")).unwrap();
        fs::write(top.path().join("precious/file"), "kept").unwrap();
        let beside = Beside::open(&top.path().join("data")).unwrap();
        (top, beside)
    }

    #[test]
    fn what_is_removed_is_what_was_meant_and_no_link_is_followed() {
        let (top, beside) = beside();
        fs::create_dir_all(beside.other().join("inner")).unwrap();
        symlink(top.path().join("precious"), beside.other().join("link")).unwrap();
        symlink(
            top.path().join("precious"),
            beside.other().join("inner/link"),
        )
        .unwrap();
        let error = beside.remove_other(beside.id().unwrap()).unwrap_err();
        assert_eq!(error.kind(), evenkeel_op::ErrorKind::Refused);
        beside
            .remove_other(beside.other_id().unwrap().unwrap())
            .unwrap();
        assert!(!beside.other().exists());
        assert!(top.path().join("precious/file").exists());
    }

    #[test]
    fn both_are_exchanged() {
        let (top, beside) = beside();
        fs::create_dir(beside.other()).unwrap();
        let (old, new) = (beside.id().unwrap(), beside.other_id().unwrap().unwrap());
        beside.exchange().unwrap();
        assert_eq!(
            (beside.id().unwrap(), beside.other_id().unwrap()),
            (new, Some(old))
        );
        let kept = beside.keep_other(old).unwrap();
        assert!(kept.join("shop").is_dir() && kept.starts_with(top.path()));
    }

    #[test]
    fn a_link_in_the_place_of_the_other_is_refused() {
        let (top, beside) = beside();
        symlink(top.path().join("precious"), beside.other()).unwrap();
        assert!(beside.other_id().is_err());
    }
}
