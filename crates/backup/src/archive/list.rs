//! What is archived, for people.

use super::needed::LogPlace;
use evenkeel_binlog::number_of;
use evenkeel_op::Result;
use evenkeel_repository::logs::{Gap, Link, LogPosition, Logs, Timeline};
use evenkeel_repository::{Location, Repository};
use serde::Serialize;

/// Everything that a repository holds of binary logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchiveList {
    /// By source.
    pub sources: Vec<SourceList>,
}

/// The archive of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceList {
    /// The server's own id.
    pub source: String,
    /// Histories of its logs, oldest first.
    pub timelines: Vec<TimelineList>,
}

/// One timeline of a server's logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TimelineList {
    /// Its name.
    pub timeline: String,
    /// Where it begins.
    pub from: Option<LogPosition>,
    /// Up to where it reaches.
    pub to: Option<LogPosition>,
    /// Time of the first transaction.
    pub first_time: Option<jiff::Timestamp>,
    /// Time of the last transaction; a server that wrote since is ahead of its archive by that.
    pub last_time: Option<jiff::Timestamp>,
    /// GTID of the last transaction.
    pub last_gtid: Option<String>,
    /// Its objects.
    pub segments: usize,
    /// Bytes of the log.
    pub bytes: u64,
    /// From where it continues, where another server was before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub follows: Vec<Link>,
    /// What is missing in between.
    pub gaps: Vec<Gap>,
    /// Which stretches can be restored to, from which generation on.
    pub points: Vec<Reach>,
}

/// A stretch of a log of which every point can be restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reach {
    /// The first generation in it.
    pub generation: u32,
    /// Where that is.
    pub from: LogPosition,
    /// When its run began.
    pub since: jiff::Timestamp,
    /// The end of the stretch: of the archive, or a gap.
    pub to: LogPosition,
}

/// A generation and where it is.
struct Known {
    generation: u32,
    created: jiff::Timestamp,
    place: LogPlace,
}

/// Lists what is archived. Reads names, the headers of a few segments, and manifests.
pub fn list(repository: &Location) -> Result<ArchiveList> {
    let repository = Repository::open(repository)?;
    let logs = repository.logs();
    let timelines = logs.timelines(None)?;
    let known = match timelines.is_empty() {
        true => Vec::new(),
        false => generations(&repository)?,
    };
    let mut sources: Vec<SourceList> = Vec::new();
    for timeline in timelines {
        if sources
            .last()
            .is_none_or(|last| last.source != timeline.source)
        {
            sources.push(SourceList {
                source: timeline.source.clone(),
                timelines: Vec::new(),
            });
        }
        let listed = describe(&logs, timeline, &known)?;
        if let Some(last) = sources.last_mut() {
            last.timelines.push(listed);
        }
    }
    Ok(ArchiveList { sources })
}

fn generations(repository: &Repository) -> Result<Vec<Known>> {
    let mut known = Vec::new();
    for one in repository.generations()? {
        // One that is damaged cannot be restored, to no point.
        if one.damage.is_some() {
            continue;
        }
        let manifest = repository.manifest(one.generation)?;
        if let Some(place) = LogPlace::of(&manifest)? {
            known.push(Known {
                generation: one.generation,
                created: manifest.created,
                place,
            });
        }
    }
    Ok(known)
}

fn describe(logs: &Logs, timeline: Timeline, known: &[Known]) -> Result<TimelineList> {
    let time = |seconds: u32| jiff::Timestamp::from_second(i64::from(seconds)).ok();
    let (mut first_time, mut last_time, mut last_gtid) = (None, None, None);
    // A segment may hold a part of one long transaction only.
    for segment in &timeline.segments {
        first_time = logs.header(segment)?.first_time.and_then(time);
        if first_time.is_some() {
            break;
        }
    }
    for segment in timeline.segments.iter().rev() {
        let header = logs.header(segment)?;
        last_time = header.last_time.and_then(time);
        last_gtid = header.last_gtid;
        if last_time.is_some() {
            break;
        }
    }
    Ok(TimelineList {
        from: timeline.start(),
        to: timeline.end(),
        first_time,
        last_time,
        last_gtid,
        segments: timeline.segments.len(),
        bytes: timeline
            .segments
            .iter()
            .map(|one| one.end - one.start)
            .sum(),
        points: reaches(&timeline, known),
        gaps: timeline.gaps,
        follows: timeline.follows,
        timeline: timeline.id,
    })
}

/// The first generation of each stretch without a gap. Told by names and places alone: a restore
/// compares the logs themselves.
fn reaches(timeline: &Timeline, known: &[Known]) -> Vec<Reach> {
    let order = |place: &LogPosition| (number_of(&place.file), place.position);
    let ends = timeline.gaps.iter().map(|gap| gap.after.clone());
    let mut found: Vec<Reach> = Vec::new();
    let mut since = None;
    for end in ends.chain(timeline.end()) {
        let in_it = known.iter().filter(|one| {
            let at = order(&one.place.at);
            one.place.source == timeline.source
                && timeline.has(&one.place.at)
                && since.is_none_or(|since| at > since)
                && at <= order(&end)
        });
        if let Some(first) = in_it.min_by_key(|one| order(&one.place.at)) {
            found.push(Reach {
                generation: first.generation,
                from: first.place.at.clone(),
                since: first.created,
                to: end.clone(),
            });
        }
        since = Some(order(&end));
    }
    found
}
