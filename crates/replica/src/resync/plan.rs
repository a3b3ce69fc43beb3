//! What a resync would do.

use super::beside::Beside;
use super::broken::Broken;
use super::journal::{Journal, Record};
use super::{ResyncRequest, refuse, room};
use evenkeel_op::{Result, units};
use evenkeel_server::files;
use serde::Serialize;
use std::path::PathBuf;

/// What will be done, or was.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResyncPlan {
    /// Whether it was done.
    pub executed: bool,
    /// The data directory whose files are replaced.
    pub datadir: PathBuf,
    /// Where the new files are prepared.
    pub beside: PathBuf,
    /// How the server is stopped and started.
    pub server: String,
    /// Whether it runs now.
    pub runs: bool,
    /// Its number, if that is known.
    pub server_id: Option<u64>,
    /// The sibling.
    pub sibling: String,
    /// Its version.
    pub sibling_version: Option<String>,
    /// Whom both replicate from.
    pub source: String,
    /// Bytes that the old files have on disk.
    pub bytes_old: u64,
    /// Bytes that are free beside them.
    pub bytes_free: u64,
    /// Whether the old files are kept.
    pub keeps_old: bool,
    /// What an interrupted run left, in a sentence.
    pub interrupted: Option<String>,
    /// What it means beyond this server.
    pub notes: Vec<String>,
}

/// Says what a resync would do; changes nothing.
pub fn plan_resync(request: &ResyncRequest) -> Result<ResyncPlan> {
    let beside = Beside::open(&request.datadir)?;
    let found = Journal::peek(&beside)?;
    let broken = subject(request, &beside, found.as_ref())?;
    planned(request, &beside, &broken, found.as_ref())
}

/// The broken server: as an interrupted run knew it, if it does not run now or is the new one.
pub(super) fn subject(
    request: &ResyncRequest,
    beside: &Beside,
    found: Option<&Record>,
) -> Result<Broken> {
    refuse::unfit(beside)?;
    match found {
        // What is left to do needs no sibling.
        Some(record) if record.is_exchanged(beside)? => {
            Ok(record.broken.clone().with_typed(request))
        }
        Some(record) if files::process_in(&beside.datadir).is_none() => {
            let broken = record.broken.clone().with_typed(request);
            refuse::sibling(&request.sibling, &broken)?;
            refuse::other_source(request, &broken)?;
            broken.binary(request)?;
            Ok(broken)
        }
        _ => {
            let broken = Broken::find(request, beside)?;
            broken.binary(request)?;
            Ok(broken)
        }
    }
}

pub(super) fn planned(
    request: &ResyncRequest,
    beside: &Beside,
    broken: &Broken,
    found: Option<&Record>,
) -> Result<ResyncPlan> {
    let mut notes = vec![
        "its error, slow and general logs in the data directory, and its binary logs, go with the old files"
            .to_owned(),
        "its accounts and passwords become the sibling's".to_owned(),
    ];
    if broken.replicas > 0 {
        notes.push(format!(
            "{} of this server: they have to be made new afterwards",
            units::count(broken.replicas, "replica")
        ));
    }
    let sibling = &request.sibling;
    if let Some(delay_s) = sibling
        .channels
        .first()
        .map(|one| one.delay_s)
        .filter(|s| *s > 0)
    {
        notes.push(format!(
            "the sibling applies everything {delay_s} s late, and so will this server"
        ));
    }
    Ok(ResyncPlan {
        executed: false,
        datadir: beside.datadir.clone(),
        beside: beside.other(),
        server: broken.service.describe(),
        runs: files::process_in(&beside.datadir).is_some(),
        server_id: broken.server_id,
        sibling: sibling.server.clone(),
        sibling_version: sibling.version.clone(),
        source: sibling
            .channels
            .first()
            .map_or_else(String::new, |one| one.source.clone()),
        bytes_old: room::used(beside)?,
        bytes_free: room::free(beside)?,
        keeps_old: request.keep_old,
        interrupted: found.map(|record| record.describe(beside)).transpose()?,
        notes,
    })
}
