//! The receiver: takes what a sender says of another server's files, and makes a data directory of it.

mod file;
mod finish;
mod judge;
mod like;
mod listed;
mod store;
mod sweep;

use super::list::{ImageEnd, ImageList, hash};
use super::report::CloneReport;
use crate::restore::staging::{Purpose, Staging};
use evenkeel_op::paths::absolute;
use evenkeel_op::{Error, ErrorKind, Result, Run};
use evenkeel_repository::Location;
use evenkeel_repository::store::Store;
use like::Like;
use listed::Listed;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Where a clone goes.
#[derive(Debug, Clone)]
pub struct CloneTarget {
    /// Becomes the data directory; must not exist or be empty. What a clone left beside it that did not come to
    /// its end is taken up.
    pub target: PathBuf,
    /// An old data directory on this host, whose blocks are used where they are equal.
    pub like: Option<PathBuf>,
    /// Where roots outside the data directory go, by root id. Others go beside the target, as `TARGET-ID`.
    pub map_roots: BTreeMap<String, PathBuf>,
    /// Owner and group of everything, instead of what they were.
    pub owner: Option<(u32, u32)>,
    /// Whether a server with files outside of its data directory is refused.
    pub is_one_directory: bool,
}

impl CloneTarget {
    /// Makes one with the usual settings.
    #[must_use]
    pub fn new(target: &Path) -> Self {
        Self {
            target: absolute(target),
            like: None,
            map_roots: BTreeMap::new(),
            owner: None,
            is_one_directory: false,
        }
    }
}

/// The receiving side of a clone. It is a store of a few objects, all of which a sender sees.
#[derive(Debug, Clone)]
pub struct Receiver(Arc<Receiving>);

#[derive(Debug)]
struct Receiving {
    wanted: CloneTarget,
    begun: Instant,
    like: Option<Like>,
    stage: Mutex<Stage>,
    /// What was refused or failed here: a sender on another host hears of it only in words.
    failed: Mutex<Option<Error>>,
    /// Bytes of objects that are being sent just now.
    buffered: AtomicU64,
    /// Bytes of answers that the sender has.
    answered: AtomicU64,
}

/// How far it is.
#[derive(Debug)]
enum Stage {
    Waiting,
    /// The files are known.
    Listed(Arc<Listed>),
    /// All of them are there.
    Ended(Arc<Listed>, ImageEnd),
    Over,
}

impl Receiver {
    /// Looks at all that can be looked at before the server that is cloned is.
    ///
    /// Errors: `Usage` for a target that is used; `Refused` when a server runs on the directory that it should
    /// be like.
    pub fn begin(wanted: &CloneTarget) -> Result<Self> {
        Staging::plan_for(Purpose::Clone, &wanted.target, &wanted.target)?;
        let like = wanted.like.as_deref();
        Ok(Self(Arc::new(Receiving {
            like: like
                .map(|like| Like::open(like, &wanted.target))
                .transpose()?,
            wanted: wanted.clone(),
            begun: Instant::now(),
            stage: Mutex::new(Stage::Waiting),
            failed: Mutex::new(None),
            buffered: AtomicU64::new(0),
            answered: AtomicU64::new(0),
        })))
    }

    /// Returns it as what a sender sends into.
    #[must_use]
    pub fn location(&self) -> Location {
        Location::on(self.store())
    }

    /// The same for a sender at the other end of a link.
    #[must_use]
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }

    /// Lets the directory appear. The sender must have come to its end.
    pub fn finish(&self, run: Run<'_>) -> Result<CloneReport> {
        let stage = std::mem::replace(&mut *self.0.stage(), Stage::Over);
        match stage {
            Stage::Ended(listed, end) => {
                let finished = finish::finish(&listed, &end, &self.0.wanted, run);
                if finished.is_err() {
                    *self.0.stage() = Stage::Ended(listed, end);
                }
                let mut report = finished?;
                report.seconds = self.0.begun.elapsed().as_secs_f64();
                Ok(report)
            }
            stage => {
                *self.0.stage() = stage;
                Err(judge::unsound("said that it was done before it was"))
            }
        }
    }

    /// Ends a clone that failed: what was received stays for the next run, unless it is unsound. Returns the
    /// error to report.
    #[must_use]
    pub fn give_up(&self, error: Error) -> Error {
        let own = self.0.failed().take();
        // Who stops or loses the link is told of that, not of what it led to here.
        let error = match own {
            Some(own) if error.kind() != ErrorKind::Unreachable => own,
            _ => error,
        };
        let stage = std::mem::replace(&mut *self.0.stage(), Stage::Over);
        let (Stage::Listed(listed) | Stage::Ended(listed, _)) = stage else {
            return error;
        };
        if listed.abandon_if_unsound(&error) {
            return error;
        }
        let place = listed.data().place().display();
        error.hint(format!(
            "what was received stays in {place}, where no server starts: the same command again sends the rest"
        ))
    }
}

impl Receiving {
    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> MutexGuard<'_, Option<Error>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the files, once they are known.
    fn listed(&self) -> Result<Arc<Listed>> {
        match &*self.stage() {
            Stage::Listed(listed) => Ok(Arc::clone(listed)),
            _ => Err(judge::unsound(
                "sent files before it had listed them, or after the end",
            )),
        }
    }

    /// Takes the list of files.
    fn list(&self, bytes: &[u8]) -> Result<()> {
        let mut stage = self.stage();
        if !matches!(*stage, Stage::Waiting) {
            return Err(judge::unsound("listed files twice"));
        }
        let list: ImageList =
            serde_json::from_slice(bytes).map_err(|_| judge::unsound("sent no list of files"))?;
        let listed = Listed::of(list, hash(bytes), &self.wanted, self.like.as_ref())?;
        *stage = Stage::Listed(Arc::new(listed));
        fail::fail_point!("clone::received_list");
        Ok(())
    }

    /// Takes how it ended.
    fn end(&self, bytes: &[u8]) -> Result<()> {
        let listed = self.listed()?;
        let strange = || judge::unsound("did not say how it ended");
        let said: serde_json::Value = serde_json::from_slice(bytes).map_err(|_| strange())?;
        if judge::has_obeyed(&said) {
            return Err(judge::unsound(
                "named places by characters that a terminal would obey",
            ));
        }
        let end: ImageEnd = serde_json::from_value(said).map_err(|_| strange())?;
        listed.refuse_incomplete(&end)?;
        *self.stage() = Stage::Ended(listed, end);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
