//! Forgets archived logs that no generation can use any more: plan first, then perform.
//!
//! The repository does not know where in a log a generation is; who asks says so. The mark is written
//! first: from then on the segments before it are not there, whether or not they were removed.

use super::header::LogPosition;
use super::index::{self, Folder};
use super::mark::{self, Forgotten};
use super::{Segment, Timeline};
use crate::crypt::RunKeys;
use crate::fault::refused;
use crate::forget::check_sequence;
use crate::heal;
use crate::locks;
use crate::repository::Repository;
use evenkeel_op::{Cancel, Result};
use std::time::Duration;

/// What of one timeline is not needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgetLogs {
    /// The server.
    pub source: String,
    /// The timeline of its log.
    pub timeline: String,
    /// The file before which nothing is needed; nothing at all is where there is none.
    pub before: Option<String>,
}

/// What would be forgotten of one timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgottenLogs {
    /// The server.
    pub source: String,
    /// The timeline of its log.
    pub timeline: String,
    /// What is left begins here; nothing is left where there is no place.
    pub before: Option<LogPosition>,
    /// Segments that go, left-overs of an interrupted run included.
    pub segments: u64,
    /// Bytes that they take.
    pub bytes: u64,
}

/// What forgetting logs would do.
#[derive(Debug, Clone)]
pub struct ForgetLogsPlan {
    /// By timeline.
    pub steps: Vec<ForgottenLogs>,
    /// Bytes that would be freed.
    pub bytes_freed: u64,
    sequence: u64,
}

impl ForgetLogsPlan {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

impl Repository {
    /// Plans to forget logs, for the generations that there are now (`sequence` of
    /// [`Repository::state`], read before they were looked at), and to remove what an interrupted run
    /// left of forgotten ones.
    pub fn plan_forget_logs(&self, what: &[ForgetLogs], sequence: u64) -> Result<ForgetLogsPlan> {
        let logs = self.logs();
        let mut steps = Vec::new();
        for (source, timeline) in logs.folders(None)? {
            let folder = Folder::read(&logs, &source, &timeline)?;
            if let Some(damage) = folder.damage {
                // What it says is not known: nothing is removed by guess.
                return Err(damage);
            }
            let asked = what
                .iter()
                .find(|one| one.source == source && one.timeline == timeline);
            steps.extend(step(&folder, asked));
        }
        Ok(ForgetLogsPlan {
            bytes_freed: steps.iter().map(|step| step.bytes).sum(),
            steps,
            sequence,
        })
    }

    /// Returns what changes whenever generations come or go, for [`Repository::plan_forget_logs`].
    pub fn state(&self) -> Result<u64> {
        Ok(self.head()?.sequence)
    }

    /// Forgets what the plan says and returns the bytes freed. Busy if the repository has changed since
    /// the plan was made. A cancelled run has done part of its work and no harm; so has one whose store
    /// refuses to remove something, which is reported when all else is done.
    pub fn perform_forget_logs(
        &self,
        plan: &ForgetLogsPlan,
        wait: Duration,
        cancel: &Cancel,
    ) -> Result<u64> {
        if plan.is_empty() {
            return Ok(0);
        }
        let _locks = locks::remover(&**self.store(), wait)?;
        check_sequence(&self.head()?, plan.sequence)?;
        let keys = self.keys().begin_run()?;
        let (mut freed, mut kept) = (0, Vec::new());
        for step in &plan.steps {
            cancel.check()?;
            freed += self.forget_of(step, keys.as_ref(), &mut kept)?;
        }
        match kept.is_empty() {
            true => Ok(freed),
            false => Err(refused(&kept)),
        }
    }

    fn forget_of(
        &self,
        step: &ForgottenLogs,
        keys: Option<&RunKeys>,
        kept: &mut Vec<String>,
    ) -> Result<u64> {
        let had = kept.len();
        let (logs, store) = (self.logs(), &**self.store());
        let (source, timeline) = (step.source.as_str(), step.timeline.as_str());
        let path = index::folder(source, timeline);
        let before = step.before.clone();
        let wanted = before.map_or(Forgotten::All, Forgotten::Before);
        if Folder::read(&logs, source, timeline)?.forgotten.as_ref() != Some(&wanted) {
            mark::write(&logs, keys, (source, timeline), step.before.as_ref())?;
        }
        let folder = Folder::read(&logs, source, timeline)?;
        for segment in &folder.leftovers {
            heal::remove_if_allowed(store, &segment.object, kept)?;
        }
        heal::remove(store, &format!("{path}/{}", mark::UNFINISHED_MARK))?;
        heal::sync(store, &path)?;
        // What the store keeps, the mark still has to explain.
        if wanted == Forgotten::All && kept.len() == had {
            // The mark goes last: it says that nothing is missing.
            let others = folder.others.iter().map(|other| &other.name);
            for other in others.chain(folder.links.iter().map(|(name, _)| name)) {
                heal::remove(store, &format!("{path}/{other}"))?;
            }
            heal::remove(store, &format!("{path}/{}", mark::FORGOTTEN))?;
            heal::sync(store, &path)?;
            let removed = store.remove_folder(&path);
            removed.map_err(|error| crate::fault::store_failed("remove", &path, error))?;
        }
        Ok(folder.leftovers.iter().map(|one| one.stored).sum())
    }
}

/// What should be done about one timeline.
fn step(folder: &Folder, asked: Option<&ForgetLogs>) -> Option<ForgottenLogs> {
    let mut before = match &folder.forgotten {
        Some(Forgotten::Before(place)) => Some(place.clone()),
        _ => None,
    };
    // Not on the word of the mark that is there: who asks says what is not needed.
    let mut gone: Vec<&Segment> = Vec::new();
    let mut all = folder.forgotten == Some(Forgotten::All) && folder.leftovers.is_empty();
    if let Some(asked) = asked {
        match &asked.before {
            None => {
                all = true;
                gone.extend(folder.leftovers.iter().chain(&folder.segments));
            }
            Some(file) => {
                let place = LogPosition {
                    file: file.clone(),
                    position: 0,
                };
                let mark = Forgotten::Before(place.clone());
                let there = folder.leftovers.iter().chain(&folder.segments);
                gone.extend(there.filter(|one| mark.holds(&one.file)));
                if !gone.is_empty() {
                    before = Some(place);
                }
            }
        }
    }
    // A mark that a crash left twice.
    let half = before.is_some()
        && folder
            .others
            .iter()
            .any(|one| one.name == mark::UNFINISHED_MARK);
    if gone.is_empty() && !all && !half {
        return None;
    }
    Some(ForgottenLogs {
        source: folder.source.clone(),
        timeline: folder.timeline.clone(),
        before: before.filter(|_| !all),
        segments: gone.len() as u64,
        bytes: gone.iter().map(|one| one.stored).sum(),
    })
}

impl Timeline {
    /// Returns whether a place lies in it, or at one of its ends.
    #[must_use]
    pub fn has(&self, place: &LogPosition) -> bool {
        self.segments.iter().any(|one| {
            one.file == place.file && one.start <= place.position && place.position <= one.end
        })
    }
}
