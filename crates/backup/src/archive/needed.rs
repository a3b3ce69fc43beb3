//! Where generations are in archived logs, and so which logs some generation still needs.

use crate::facts::{self, Facts};
use evenkeel_binlog::number_of;
use evenkeel_op::Result;
use evenkeel_repository::logs::{ForgetLogs, ForgetLogsPlan, LogPosition, Logs, Timeline};
use evenkeel_repository::{Manifest, Repository};
use evenkeel_server::abilities::Recorded;
use std::collections::{BTreeMap, BTreeSet};

use super::source::source_id;

/// Where a generation is in the log of its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogPlace {
    /// The server, as archived logs name it.
    pub(crate) source: String,
    pub(crate) at: LogPosition,
}

impl LogPlace {
    /// Reads it from a manifest; nothing for one that has no place in a log, or whose names are sealed
    /// and the key is not at hand.
    pub(crate) fn of(manifest: &Manifest) -> Result<Option<Self>> {
        let facts = Facts::of(manifest)?;
        let own = facts::report_of(manifest)?.coordinates;
        let (Some(file), Some(position)) = (own.binlog_file, own.binlog_position) else {
            return Ok(None);
        };
        let flavour = Recorded::of(facts.server_version.as_deref()).flavour;
        let id = facts.settings.get(flavour.identity_variable());
        Ok(Some(Self {
            source: source_id(flavour, id.map_or("", String::as_str)),
            at: LogPosition { file, position },
        }))
    }
}

/// Plans to forget the archived logs that no generation can use any more: files before the first that
/// a generation of the same server needs, and timelines that ended before all of them. Logs of a
/// server of which there is no generation stay.
///
/// Errors: `Differs` for a generation whose manifest cannot be read: what it needs cannot be known.
pub fn plan_forget(repository: &Repository) -> Result<ForgetLogsPlan> {
    plan_forget_without(repository, &[])
}

/// Does the same for the generations that are left when some are forgotten, to see what that would
/// free.
pub fn plan_forget_without(repository: &Repository, forgotten: &[u32]) -> Result<ForgetLogsPlan> {
    let sequence = repository.state()?;
    let logs = repository.logs();
    let timelines = logs.timelines_by_name()?;
    let mut kept = Vec::new();
    // Whatever the head says of them: a head is no order to remove anything.
    if !timelines.is_empty() {
        kept = repository.standing()?;
        kept.retain(|one| !forgotten.contains(&one.generation));
    }
    let mut what = Vec::new();
    let mut places_of = BTreeMap::new();
    let sources: BTreeSet<&str> = timelines.iter().map(|one| one.source.as_str()).collect();
    for source in sources {
        let all: Vec<&Timeline> = timelines
            .iter()
            .filter(|one| one.source == source)
            .collect();
        let places = places(&kept, source)?;
        what.extend(of_source(&logs, &all, &places));
        places_of.insert(source, places);
    }
    spare_successors(&timelines, &places_of, &mut what);
    repository.plan_forget_logs(&what, sequence)
}

/// Keeps what generations of a server need of the logs of one that took over.
fn spare_successors(
    timelines: &[Timeline],
    kept: &BTreeMap<&str, Vec<Kept>>,
    what: &mut [ForgetLogs],
) {
    let order = |place: &LogPosition| (number_of(&place.file), place.position);
    // By timeline, the file from which on others need it.
    let mut needed: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    // Each round goes one server further.
    for _ in 0..timelines.len() {
        for timeline in timelines {
            for link in &timeline.follows {
                let before = timelines
                    .iter()
                    .find(|one| one.source == link.source && one.id == link.timeline);
                let is_used = before.is_some_and(|before| {
                    let mut own = kept.get(before.source.as_str()).into_iter().flatten();
                    needed.contains_key(&(before.source.as_str(), before.id.as_str()))
                        || own.any(|(place, _)| {
                            before.has(place) && order(place) <= order(&link.after)
                        })
                });
                if is_used {
                    let key = (timeline.source.as_str(), timeline.id.as_str());
                    let first = needed.entry(key).or_insert(&link.file);
                    if number_of(&link.file) < number_of(first) {
                        *first = &link.file;
                    }
                }
            }
        }
    }
    for one in what {
        let Some(file) = needed.get(&(one.source.as_str(), one.timeline.as_str())) else {
            continue;
        };
        let is_later = |before: &String| number_of(before) > number_of(file);
        if one.before.as_ref().is_none_or(is_later) {
            one.before = Some((*file).to_owned());
        }
    }
}

/// A generation of a server: where it is in the server's log, and when it was made.
type Kept = (LogPosition, jiff::Timestamp);

fn places(kept: &[Manifest], source: &str) -> Result<Vec<Kept>> {
    let mut all = Vec::new();
    for manifest in kept {
        if let Some(found) = LogPlace::of(manifest)?.filter(|found| found.source == source) {
            all.push((found.at, manifest.created));
        }
    }
    Ok(all)
}

fn of_source(logs: &Logs, timelines: &[&Timeline], kept: &[Kept]) -> Vec<ForgetLogs> {
    let Some(oldest) = kept.iter().map(|(_, created)| *created).min() else {
        return Vec::new();
    };
    let mut what = Vec::new();
    // Histories are in order of their beginnings.
    let mut later_is_used = false;
    for timeline in timelines.iter().rev() {
        let first = kept
            .iter()
            .filter(|(place, _)| timeline.has(place))
            .min_by_key(|(place, _)| number_of(&place.file));
        let before = match first {
            Some((place, _)) => Some(place.file.clone()),
            // The newest may be one that no generation was made of yet.
            None if later_is_used && ended_before(logs, timeline, oldest) => None,
            None => continue,
        };
        later_is_used |= before.is_some();
        what.push(ForgetLogs {
            source: timeline.source.clone(),
            timeline: timeline.id.clone(),
            before,
        });
    }
    what
}

/// Whether the last transaction of a timeline is older than a moment; not where that is not known.
fn ended_before(logs: &Logs, timeline: &Timeline, moment: jiff::Timestamp) -> bool {
    let mut times = timeline.segments.iter().rev();
    let last = times.find_map(|one| {
        logs.header(one)
            .map_or(Some(None), |it| it.last_time.map(Some))
    });
    last.flatten()
        .is_some_and(|last| i64::from(last) < moment.as_second())
}
