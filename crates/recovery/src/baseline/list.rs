//! `list`: looks, and touches nothing.

use super::Whose;
use super::find::Subject;
use super::journal::Journal;
use super::store::{Baseline, BaselineDirectory};
use evenkeel_op::Result;
use evenkeel_op::paths::unreadable;
use serde::Serialize;
use std::path::PathBuf;

/// The baselines of a data directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListReport {
    /// The data directory.
    pub datadir: PathBuf,
    /// Where they are kept.
    pub kept_in: PathBuf,
    /// All of them, the oldest first.
    pub baselines: Vec<Baseline>,
    /// What a run that died left; the next one that changes anything repairs it.
    pub interrupted: Option<String>,
}

/// Lists the baselines of a data directory.
pub fn list(whose: &Whose) -> Result<ListReport> {
    let datadir = datadir_of(whose)?;
    let place = BaselineDirectory::of(&datadir)?;
    Ok(ListReport {
        baselines: place.list()?,
        interrupted: Journal::read(&place)?.map(|journal| journal.describe()),
        kept_in: place.path,
        datadir,
    })
}

/// Returns the data directory without symbolic links. That of a stopped server is not examined
/// further: after an interruption it may be no data directory at the moment.
pub(super) fn datadir_of(whose: &Whose) -> Result<PathBuf> {
    match whose {
        Whose::Running(_) => Ok(Subject::find(whose)?.files.datadir),
        Whose::Stopped { datadir, .. } => datadir
            .canonicalize()
            .map_err(|error| unreadable("data directory", datadir, error)),
    }
}
