//! How far it is: what lets the same command continue after a kill.
//!
//! A file beside the data directory, in which each step is a line; the last whole line counts. It is this user's
//! alone: it says which commands stop and start a server. Who holds its lock is at work.

use super::beside::{Beside, DirectoryId};
use super::broken::Broken;
use super::{Image, Sibling};
use evenkeel_op::{Context, Error, ErrorKind, Result};
use rustix::fs::{self as sys, AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Step {
    /// The server is being stopped, or has been; the sibling is being cloned.
    Begun,
    /// The clone is there.
    Cloned,
    /// It is as it shall be. The exchange comes, or was: the numbers of both directories say so.
    Prepared,
}

/// What it was at.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) step: Step,
    /// The data directory that it is of.
    pub(super) datadir: PathBuf,
    pub(super) old: DirectoryId,
    /// What was cloned, once it is there.
    pub(super) new: Option<DirectoryId>,
    pub(super) broken: Broken,
    pub(super) sibling: Sibling,
    pub(super) image: Option<Image>,
}

impl Record {
    /// Whether the new files are the data directory.
    pub(super) fn is_exchanged(&self, beside: &Beside) -> Result<bool> {
        Ok(self.new == Some(beside.id()?))
    }

    /// Says in a sentence where it was interrupted.
    pub(super) fn describe(&self, beside: &Beside) -> Result<String> {
        Ok(match (self.is_exchanged(beside)?, self.step) {
            (true, _) => "a resync was interrupted after the exchange: --execute does the rest",
            (false, Step::Begun) => {
                "a resync was interrupted: --execute continues with what was cloned"
            }
            (false, _) => {
                "a resync was interrupted before the exchange: --execute continues with its clone"
            }
        }
        .to_owned())
    }
}

/// The file, held.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Reads what it says, without holding it.
    pub(super) fn peek(beside: &Beside) -> Result<Option<Record>> {
        match open(beside, OFlags::RDONLY)? {
            Some(mut file) => last(&mut file, &path(beside), beside),
            None => Ok(None),
        }
    }

    /// Makes or opens it, and holds it. Errors: `Busy` while another run does.
    pub(super) fn hold(beside: &Beside) -> Result<(Self, Option<Record>)> {
        let path = path(beside);
        loop {
            let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
            let Some(mut file) = open(beside, flags)? else {
                continue;
            };
            if sys::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                return Err(Error::new(
                    ErrorKind::Busy,
                    format!("another resync of {} is running", beside.datadir.display()),
                ));
            }
            if is_there(beside, &file) {
                let found = last(&mut file, &path, beside)?;
                return Ok((Self { file, path }, found));
            }
        }
    }

    /// Adds a step, on disk when it returns.
    pub(super) fn write(&mut self, record: &Record) -> Result<()> {
        let failed = || format!("failed to write {}", self.path.display());
        let mut line = b"\n".to_vec();
        serde_json::to_writer(&mut line, record).context(failed)?;
        line.push(b'\n');
        self.file.write_all(&line).context(failed)?;
        self.file.sync_all().context(failed)
    }

    /// Removes it: all is done, or as it was.
    pub(super) fn end(self, beside: &Beside) -> Result<()> {
        sys::unlinkat(beside.parent(), beside.journal(), AtFlags::empty())
            .map_err(io::Error::from)
            .context(|| format!("failed to remove {}", self.path.display()))?;
        beside.sync()
    }
}

fn path(beside: &Beside) -> PathBuf {
    beside.datadir.with_file_name(beside.journal())
}

fn open(beside: &Beside, flags: OFlags) -> Result<Option<File>> {
    let path = path(beside);
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match sys::openat(
        beside.parent(),
        beside.journal(),
        flags,
        Mode::RUSR | Mode::WUSR,
    ) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => {
            return Err(io::Error::from(error))
                .context(|| format!("failed to open {}", path.display()));
        }
    };
    let stat = sys::fstat(&file)
        .map_err(io::Error::from)
        .context(|| format!("failed to look at {}", path.display()))?;
    let is_ours = FileType::from_raw_mode(stat.st_mode).is_file()
        && stat.st_uid == rustix::process::geteuid().as_raw()
        && stat.st_mode & 0o077 == 0
        && stat.st_nlink <= 1;
    if is_ours {
        return Ok(Some(file));
    }
    Err(Error::refused(format!(
        "{} is not a file of this user's alone",
        path.display()
    ))
    .hint("it says which commands run: check who made it, and remove it"))
}

fn is_there(beside: &Beside, file: &File) -> bool {
    let there = sys::statat(beside.parent(), beside.journal(), AtFlags::SYMLINK_NOFOLLOW);
    match (there, sys::fstat(file)) {
        (Ok(there), Ok(open)) => (there.st_dev, there.st_ino) == (open.st_dev, open.st_ino),
        _ => false,
    }
}

/// The last whole line. One that is of another directory is none of ours.
fn last(file: &mut File, path: &Path, beside: &Beside) -> Result<Option<Record>> {
    let mut text = String::new();
    file.read_to_string(&mut text)
        .context(|| format!("failed to read {}", path.display()))?;
    let mut records = text.lines().rev().filter(|line| !line.is_empty());
    let record: Option<Record> = records.find_map(|line| serde_json::from_str(line).ok());
    match record {
        Some(record) if record.datadir != beside.datadir => Err(Error::refused(format!(
            "{} is about {}",
            path.display(),
            record.datadir.display()
        ))),
        other => Ok(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    fn beside(top: &Path) -> Beside {
        fs::create_dir(top.join("data")).unwrap();
        Beside::open(&top.join("data")).unwrap()
    }

    #[test]
    fn a_torn_line_does_not_count_and_two_runs_do_not_work_at_once() {
        let top = tempfile::tempdir().unwrap();
        let beside = beside(top.path());
        assert!(Journal::peek(&beside).unwrap().is_none());
        let (mut journal, found) = Journal::hold(&beside).unwrap();
        assert!(found.is_none());
        assert_eq!(Journal::hold(&beside).unwrap_err().kind(), ErrorKind::Busy);
        journal
            .file
            .write_all(b"{\"step\":\"begun\",\"data")
            .unwrap();
        assert!(Journal::peek(&beside).unwrap().is_none());
        journal.end(&beside).unwrap();
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_journal_of_another_is_refused() {
        assert!(
            rustix::process::geteuid().is_root(),
            "only root can give files away"
        );
        let top = tempfile::tempdir().unwrap();
        let beside = beside(top.path());
        let place = path(&beside);
        let refused = |what: &str| {
            for outcome in [
                Journal::hold(&beside).map(drop),
                Journal::peek(&beside).map(drop),
            ] {
                assert!(outcome.is_err(), "{what}");
            }
            fs::remove_file(&place).unwrap();
        };
        let make = |mode: u32| {
            fs::write(&place, "").unwrap();
            fs::set_permissions(&place, Permissions::from_mode(mode)).unwrap();
        };
        make(0o600);
        chown(&place, Some(4242), None).unwrap();
        refused("another user's");
        make(0o644);
        refused("one that others read");
        make(0o600);
        fs::hard_link(&place, top.path().join("second")).unwrap();
        refused("one with two names");
        symlink(top.path().join("second"), &place).unwrap();
        refused("a link");
    }
}
