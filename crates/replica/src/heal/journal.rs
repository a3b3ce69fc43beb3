//! What was seen and done, on disk before each step: a file that only grows, of this user alone. A second healer with
//! the same journal is refused for as long as the first one works.

use super::class::{HandOver, HealClass};
use super::decide::Forbidden;
use crate::chain::{self, ChainFile};
use evenkeel_op::own_directory::{OwnDirectory, make_unshared};
use evenkeel_op::{Context, Error, Result};
use jiff::Timestamp;
use rustix::fs::{Mode, OFlags};
use rustix::process::{geteuid, getuid};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The file.
const NAME: &str = "heal.journal";

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealRecord {
    /// When it was written, in UTC.
    pub time: Timestamp,
    /// What is recorded.
    #[serde(flatten)]
    pub what: HealEvent,
}

/// What is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum HealEvent {
    /// What was found, and what was decided: whenever that is not what was found before.
    Seen {
        /// One for each failure.
        findings: Vec<SeenFailure>,
    },
    /// A repair is about to be made. Nothing is done on a server before this is on the disk.
    Begun(Box<BegunRepair>),
    /// A step is about to be done.
    Step {
        /// The repair.
        id: String,
        /// The server.
        on: String,
        /// The statement, or what is done.
        does: String,
    },
    /// Both threads run again, or were seen running.
    Running {
        /// The repair.
        id: String,
    },
    /// Rows that differed after a repair were compared again, and are the source's.
    Equal {
        /// What tells the server from all others.
        key: String,
        /// The channel.
        channel: String,
    },
    /// Rows are about to be repaired.
    Rows {
        /// The repair.
        id: String,
        /// Their plan.
        plan: String,
        /// Its hash.
        hash: String,
        /// Their tables.
        tables: Vec<String>,
    },
    /// A repair has come to its end.
    Ended {
        /// The repair.
        id: String,
        /// How.
        outcome: HealOutcome,
        /// Why it failed, or what was found afterwards.
        why: String,
    },
    /// A server is about to be taken out of use.
    Drained {
        /// The repair that it is for.
        id: String,
        /// The server.
        server: String,
    },
    /// It was put back into use.
    Released {
        /// The repair that it was for.
        id: String,
        /// The server.
        server: String,
    },
    /// Somebody was handed what is not healed.
    HandedOver {
        /// The server.
        server: String,
        /// What is wrong with it.
        failure: String,
        /// To whom.
        to: HandOver,
        /// How the program ended.
        ended: String,
    },
}

/// A failure that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenFailure {
    /// The server.
    pub server: String,
    /// The channel, where it is one's.
    pub channel: Option<String>,
    /// Its name.
    pub failure: String,
    /// What repairs it.
    pub repair: Option<HealClass>,
    /// What forbids that.
    pub forbidden_by: Vec<Forbidden>,
}

/// A repair that is about to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BegunRepair {
    /// Its name.
    pub id: String,
    /// Who makes it.
    pub user: u32,
    /// The server, as it is called here.
    pub server: String,
    /// What tells it from all others.
    pub key: String,
    /// The channel.
    pub channel: String,
    /// What is wrong.
    pub failure: String,
    /// What is done about it.
    pub class: HealClass,
    /// What says that it is wrong.
    pub evidence: Vec<String>,
    /// Where its SQL thread is in the source's binary log.
    pub executed: Option<String>,
    /// The GTIDs that it has.
    pub gtid: String,
    /// The statements.
    pub steps: Vec<String>,
}

/// How a repair ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HealOutcome {
    /// The failure is gone, and its rows are those of the source.
    Repaired,
    /// The failure is gone; its rows were not compared.
    NotCompared,
    /// The failure is gone, and its rows differ from the source's.
    Differs,
    /// The failure is still there, or it was not done.
    Failed,
}

/// A journal that this process writes.
#[derive(Debug)]
pub struct HealJournal {
    file: ChainFile,
    records: Vec<HealRecord>,
}

impl HealJournal {
    /// Opens a journal, and makes its directory if it is not there.
    ///
    /// Errors: `Busy` while another process has it; `Refused` for one that others own, may write to, or have changed.
    pub fn open(directory: &Path) -> Result<Self> {
        let open = make_unshared(directory)?;
        let shown = directory.join(NAME);
        let failed = || format!("failed to open {}", shown.display());
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND;
        let mut file = open_at(&open, flags, &shown)?.ok_or_else(|| Error::failed(failed()))?;
        chain::own(&file, &shown)?;
        let chain = read(&mut file, &shown)?;
        let writer = ChainFile::read(file, &chain, &shown);
        rustix::fs::fsync(&open)
            .map_err(std::io::Error::from)
            .context(failed)?;
        Ok(Self {
            file: writer,
            records: chain.records,
        })
    }

    /// Adds a record. It is on the disk when this returns.
    ///
    /// Errors: those of writing: then nothing may be done.
    pub fn add(&mut self, what: HealEvent) -> Result<()> {
        let record = HealRecord { time: now(), what };
        self.file.append(&record)?;
        self.records.push(record);
        Ok(())
    }

    /// Returns what it says.
    #[must_use]
    pub fn records(&self) -> &[HealRecord] {
        &self.records
    }

    /// Returns what was seen last.
    #[must_use]
    pub fn last_seen(&self) -> &[SeenFailure] {
        let mut backwards = self.records.iter().rev();
        let last = backwards.find_map(|record| match &record.what {
            HealEvent::Seen { findings } => Some(findings.as_slice()),
            _ => None,
        });
        last.unwrap_or_default()
    }

    /// Returns a name for a repair that is about to begin.
    #[must_use]
    pub fn new_id(&self) -> String {
        let is_begun = |record: &&HealRecord| matches!(record.what, HealEvent::Begun(_));
        let number = self.records.iter().filter(is_begun).count() + 1;
        format!("{}-{number}", now().strftime("%Y%m%d-%H%M%S"))
    }

    /// Returns how a repair ended; `None` if it did not.
    #[must_use]
    pub fn outcome(&self, wanted: &str) -> Option<HealOutcome> {
        let mut backwards = self.records.iter().rev();
        backwards.find_map(|record| match &record.what {
            HealEvent::Ended { id, outcome, .. } if id == wanted => Some(*outcome),
            _ => None,
        })
    }

    /// Whether a repair came to a step: without one, nothing was done to the server.
    #[must_use]
    pub fn has_steps(&self, wanted: &str) -> bool {
        let mut each = self.records.iter();
        each.any(|record| matches!(&record.what, HealEvent::Step { id, .. } if id == wanted))
    }

    /// Returns servers that a repair has taken out of use and not put back, each with that repair.
    #[must_use]
    pub fn drained(&self) -> Vec<(String, String)> {
        let mut drained: Vec<(String, String)> = Vec::new();
        for record in &self.records {
            match &record.what {
                HealEvent::Drained { id, server } => drained.push((id.clone(), server.clone())),
                HealEvent::Released { id, server } => {
                    drained.retain(|(one, of)| (one, of) != (id, server));
                }
                _ => {}
            }
        }
        drained
    }
}

/// Reads a journal that another process may be writing; empty if there is none.
///
/// Errors: `Refused` for one that others own, may write to, or have changed.
pub fn read_history(directory: &Path) -> Result<Vec<HealRecord>> {
    if directory.symlink_metadata().is_err() {
        return Ok(Vec::new());
    }
    let open = OwnDirectory::open(directory)?;
    let shown = directory.join(NAME);
    match open_at(&open, OFlags::RDONLY, &shown)? {
        Some(mut file) => Ok(read(&mut file, &shown)?.records),
        None => Ok(Vec::new()),
    }
}

fn open_at(directory: &OwnDirectory, flags: OFlags, shown: &Path) -> Result<Option<File>> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o600);
    let file = match rustix::fs::openat(directory, NAME, flags, mode) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => {
            return Err(std::io::Error::from(error))
                .context(|| format!("failed to open {}", shown.display()));
        }
    };
    let facts = file
        .metadata()
        .context(|| format!("failed to look at {}", shown.display()))?;
    let is_ours = facts.is_file()
        && facts.uid() == geteuid().as_raw()
        && facts.mode() & 0o022 == 0
        && facts.nlink() == 1;
    match is_ours {
        true => Ok(Some(file)),
        false => Err(Error::refused(format!(
            "{} is not a file of this user that nobody else may write",
            shown.display()
        ))),
    }
}

fn read(file: &mut File, shown: &Path) -> Result<chain::Chain<HealRecord>> {
    let mut text = Vec::new();
    file.read_to_end(&mut text)
        .context(|| format!("failed to read {}", shown.display()))?;
    chain::parse(&text).ok_or_else(|| {
        let message = format!("{} was changed after it was written", shown.display());
        Error::refused(message).hint("move it away: repairs of the last hour are not counted then")
    })
}

/// Returns where a journal keeps what repairs of rows need: their plans, and their own journal.
pub(super) fn rows_directory(directory: &Path) -> PathBuf {
    directory.join("rows")
}

/// Returns the time as it is written down: to the second.
pub(super) fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

pub(super) fn user() -> u32 {
    getuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_op::ErrorKind;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn drained(id: &str) -> HealEvent {
        HealEvent::Drained {
            id: id.to_owned(),
            server: "db2".to_owned(),
        }
    }

    #[test]
    fn a_journal_is_read_again_and_one_healer_has_it() {
        let top = tempfile::tempdir().unwrap();
        let directory = top.path().join("heal");
        assert!(read_history(&directory).unwrap().is_empty());
        let mut journal = HealJournal::open(&directory).unwrap();
        journal.add(drained("a")).unwrap();
        journal.add(drained("b")).unwrap();
        let released = HealEvent::Released {
            id: "a".to_owned(),
            server: "db2".to_owned(),
        };
        journal.add(released).unwrap();
        let busy = HealJournal::open(&directory).unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::Busy);
        let history = read_history(&directory).unwrap();
        assert_eq!(history, journal.records());
        drop(journal);
        let path = directory.join(NAME);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        // It was killed in the middle of a line.
        let text = fs::read(&path).unwrap();
        fs::write(&path, &text[..text.len() - 5]).unwrap();
        let mut journal = HealJournal::open(&directory).unwrap();
        assert_eq!(journal.drained().len(), 2);
        journal.add(drained("c")).unwrap();
        assert_eq!(read_history(&directory).unwrap().len(), 3);
    }

    #[test]
    fn a_journal_of_others_or_one_that_was_changed_is_refused() {
        let top = tempfile::tempdir().unwrap();
        let directory = top.path().join("heal");
        HealJournal::open(&directory)
            .unwrap()
            .add(drained("a"))
            .unwrap();
        let path = directory.join(NAME);
        let refused = |what: &str| {
            for outcome in [
                HealJournal::open(&directory).map(drop),
                read_history(&directory).map(drop),
            ] {
                assert!(outcome.is_err(), "{what}");
            }
        };
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("db2", "db3")).unwrap();
        refused("changed");
        fs::write(&path, &text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o622)).unwrap();
        refused("others may write");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let elsewhere = top.path().join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        refused("a link");
        fs::remove_file(&path).unwrap();
        fs::hard_link(&elsewhere, &path).unwrap();
        refused("two names");
    }
}
