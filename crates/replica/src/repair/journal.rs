//! What was done, written down before it is: a directory with a file for each repair, which only grows. Each of its
//! lines has a hash of itself and the line before.

use super::identity::Identity;
use super::plan::{PlannedTable, now};
use crate::chain::{self, ChainFile};
use evenkeel_op::own_directory::{OwnDirectory, make_unshared};
use evenkeel_op::{Context, Error, Result};
use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) const SCHEMA: &str = "evenkeel/replica-repair-journal/1";
const ENDING: &str = ".journal";

/// What is about to be done.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Begun {
    pub(super) schema: String,
    pub(super) id: String,
    pub(super) time: String,
    pub(super) user: u32,
    /// The hash of the plan.
    pub(super) plan: Option<String>,
    /// The repair that it takes back.
    pub(super) undoes: Option<String>,
    pub(super) replica: Identity,
    pub(super) channel: String,
    pub(super) place: Option<String>,
    /// Of each row, `replica` is how it was before, and `source` how it is afterwards.
    pub(super) tables: Vec<PlannedTable>,
}

/// A line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(super) enum JournalRecord {
    /// Nothing is written on the replica before this is on the disk.
    Begun(Box<Begun>),
    Committed {
        time: String,
    },
    RolledBack {
        time: String,
        why: String,
    },
    /// The answer to COMMIT never came.
    Unknown {
        time: String,
        why: String,
    },
    /// What a later run found out.
    Found {
        time: String,
        committed: bool,
    },
    Compared {
        time: String,
        verdict: String,
    },
    Undone {
        time: String,
        by: String,
    },
}

/// The directory.
#[derive(Debug)]
pub(super) struct Journal {
    directory: OwnDirectory,
    path: PathBuf,
}

/// The file of one repair.
pub(super) type JournalFile = ChainFile;

/// What a file says.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) begun: Begun,
    /// Whether it was committed, if that is known.
    pub(super) committed: Option<bool>,
    pub(super) undone_by: Option<String>,
    pub(super) file: JournalFile,
}

impl Journal {
    /// Opens it, and makes it if it is not there. Nobody else may write there, nor read the files.
    pub(super) fn open(path: &Path) -> Result<Self> {
        Ok(Self {
            directory: make_unshared(path)?,
            path: path.to_owned(),
        })
    }

    /// Names a repair by a plan's hash, as none is named yet.
    pub(super) fn new_id(&self, plan: &str) -> String {
        loop {
            let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S");
            let id = format!("{time}-{}", plan.get(..8).unwrap_or("00000000"));
            let path = self.directory.anchor().join(format!("{id}{ENDING}"));
            if path.symlink_metadata().is_err() {
                return id;
            }
            // A second one in the same second.
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Writes down what is about to be done. It is on the disk when this returns.
    pub(super) fn begin(&self, begun: Begun) -> Result<JournalFile> {
        let name = format!("{}{ENDING}", begun.id);
        let shown = self.path.join(&name);
        let failed = || format!("failed to write {}", shown.display());
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::APPEND;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, &*name, flags, Mode::from_raw_mode(0o600));
        let file = File::from(file.map_err(std::io::Error::from).context(failed)?);
        let mut file = ChainFile::empty(file, &shown)?;
        file.append(&JournalRecord::Begun(Box::new(begun)))?;
        rustix::fs::fsync(&self.directory)
            .map_err(std::io::Error::from)
            .context(failed)?;
        Ok(file)
    }

    /// Reads what a repair did.
    ///
    /// Errors: `Usage` where there is none; `Refused` for a file that was changed, or is not only this user's.
    pub(super) fn read(&self, id: &str) -> Result<Told> {
        let is_id = |letter: char| letter.is_ascii_hexdigit() || letter == '-';
        let none = || {
            Error::usage(format!("{} has no repair '{id}'", self.path.display()))
                .hint("the repair printed its ID, and where its journal is")
        };
        if id.is_empty() || !id.chars().all(is_id) {
            return Err(none());
        }
        let name = format!("{id}{ENDING}");
        let shown = self.path.join(&name);
        let failed = || format!("failed to read {}", shown.display());
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, &*name, flags, Mode::empty());
        let mut file = match file {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Err(none()),
            Err(error) => return Err(std::io::Error::from(error)).context(failed),
        };
        let facts = file.metadata().context(failed)?;
        if !facts.is_file() || facts.uid() != geteuid().as_raw() || facts.mode() & 0o022 != 0 {
            return Err(Error::refused(format!(
                "{} is not a file of this user that nobody else may write",
                shown.display()
            )));
        }
        chain::own(&file, &shown)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).context(failed)?;
        let chain = chain::parse(&text).ok_or_else(|| {
            Error::refused(format!(
                "{} was changed after it was written",
                shown.display()
            ))
        })?;
        let file = ChainFile::read(file, &chain, &shown);
        told(chain.records, file)
            .filter(|told| told.begun.id == id && told.begun.schema == SCHEMA)
            .ok_or_else(none)
    }

    /// Returns the repairs by a plan of which nobody knows how they ended.
    pub(super) fn unknown_of(&self, plan: &str) -> Result<Vec<Told>> {
        let failed = || format!("failed to read {}", self.path.display());
        let mut found = Vec::new();
        let ending = format!("-{}{ENDING}", plan.get(..8).unwrap_or_default());
        for entry in std::fs::read_dir(self.directory.anchor()).context(failed)? {
            let name = entry.context(failed)?.file_name();
            let id = name.to_str().filter(|name| name.ends_with(&ending));
            let Some(id) = id.and_then(|name| name.strip_suffix(ENDING)) else {
                continue;
            };
            match self.read(id) {
                Ok(told) => found.push(told),
                // It was interrupted before anything was written on the replica.
                Err(error) if error.kind() == evenkeel_op::ErrorKind::Usage => {}
                Err(error) => return Err(error),
            }
        }
        found.retain(|told| told.begun.plan.as_deref() == Some(plan) && told.committed.is_none());
        found.sort_by(|one, other| one.begun.id.cmp(&other.begun.id));
        Ok(found)
    }
}

impl ChainFile {
    pub(super) fn committed(&mut self) -> Result<()> {
        self.append(&JournalRecord::Committed { time: now() })
    }

    pub(super) fn found(&mut self, committed: bool) -> Result<()> {
        self.append(&JournalRecord::Found {
            time: now(),
            committed,
        })
    }
}

/// Whether nobody knows how a repair by a plan ended: its journal has its beginning only.
///
/// Errors: those of reading the journal.
pub(crate) fn may_be_committed(journal: &Path, plan: &str) -> Result<bool> {
    Ok(!Journal::open(journal)?.unknown_of(plan)?.is_empty())
}

fn told(records: Vec<JournalRecord>, file: JournalFile) -> Option<Told> {
    let mut records = records.into_iter();
    let Some(JournalRecord::Begun(begun)) = records.next() else {
        return None;
    };
    let (mut committed, mut undone_by) = (None, None);
    for record in records {
        match record {
            JournalRecord::Committed { .. } => committed = Some(true),
            JournalRecord::RolledBack { .. } => committed = Some(false),
            JournalRecord::Found { committed: is, .. } => committed = Some(is),
            JournalRecord::Undone { by, .. } => undone_by = Some(by),
            JournalRecord::Begun(_)
            | JournalRecord::Unknown { .. }
            | JournalRecord::Compared { .. } => {}
        }
    }
    Some(Told {
        begun: *begun,
        committed,
        undone_by,
        file,
    })
}
