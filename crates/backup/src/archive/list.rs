//! What is archived, for people.

use super::index::{Gap, Timeline, timelines};
use super::segment::Place;
use evenkeel_op::Result;
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

/// One history of a server's logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TimelineList {
    /// Its name.
    pub timeline: String,
    /// Where it begins.
    pub from: Option<Place>,
    /// Up to where it reaches.
    pub to: Option<Place>,
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
    /// What is missing in between.
    pub gaps: Vec<Gap>,
}

/// Lists what is archived. Reads names, and the headers of a few segments.
pub fn list(repository: &Location) -> Result<ArchiveList> {
    Repository::open(repository)?;
    let store = repository.store();
    let mut sources: Vec<SourceList> = Vec::new();
    for timeline in timelines(&*store, None)? {
        if sources
            .last()
            .is_none_or(|last| last.source != timeline.source)
        {
            sources.push(SourceList {
                source: timeline.source.clone(),
                timelines: Vec::new(),
            });
        }
        let listed = describe(&*store, timeline)?;
        if let Some(last) = sources.last_mut() {
            last.timelines.push(listed);
        }
    }
    Ok(ArchiveList { sources })
}

fn describe(
    store: &dyn evenkeel_repository::store::Store,
    timeline: Timeline,
) -> Result<TimelineList> {
    let time = |seconds: u32| jiff::Timestamp::from_second(i64::from(seconds)).ok();
    let (mut first_time, mut last_time, mut last_gtid) = (None, None, None);
    // A segment may hold a part of one long transaction only.
    for segment in &timeline.segments {
        first_time = Timeline::header(store, segment)?.first_time.and_then(time);
        if first_time.is_some() {
            break;
        }
    }
    for segment in timeline.segments.iter().rev() {
        let header = Timeline::header(store, segment)?;
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
        gaps: timeline.gaps,
        timeline: timeline.id,
    })
}
