//! Where a server's log continues from what is archived of another: after that one died, and this
//! one took over.
//!
//! Nothing but the servers' GTIDs says so. The new server has to have executed everything that is
//! archived, and its logs still have to hold everything that is not. MySQL's GTIDs are unique in the
//! world. MariaDB's are not: there the last archived transaction is also looked at in the new server's
//! log, whether its last statement was made in the same second.

use super::needed::LogPlace;
use super::source::Source;
use crate::point::log::{ArchivedFile, FileEnd};
use evenkeel_binlog::{Gtid, GtidSet, number_of};
use evenkeel_op::{Cancel, Context, ErrorKind, Result};
use evenkeel_repository::Repository;
use evenkeel_repository::logs::{Link, LogPosition, Logs, Timeline};

/// What is archived of other servers, and what a server's log is to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seam {
    /// Nothing of a server that has anything to do with this one.
    None,
    /// It continues from there.
    Link(Link),
    /// It does not, although they have transactions in common.
    Torn {
        /// The server that was before.
        source: String,
        /// Why.
        why: String,
    },
}

/// How an archived timeline ends.
struct End<'a> {
    timeline: &'a Timeline,
    place: LogPosition,
    gtids: GtidSet,
    /// The last transaction, and the second of its last statement.
    last: Option<(Gtid, u32)>,
    time: u32,
}

/// Looks among all archived timelines of other servers for the one that goes furthest and that this
/// server continues from. `own` is the server's own timeline, when there is one.
pub(super) fn find(
    source: &Source,
    logs: &Logs,
    own: Option<&Timeline>,
    cancel: &Cancel,
) -> Result<Seam> {
    let all = logs.timelines(None)?;
    let family = source.id.split('-').next().unwrap_or_default();
    let own_end = own.map(|own| end_of(logs, own)).transpose()?.flatten();
    let (mut found, mut torn) = (None::<(u32, Link)>, None::<(u32, Seam)>);
    let mut executed = None;
    for timeline in &all {
        let is_other = timeline.source != source.id;
        if !is_other || timeline.source.split('-').next() != Some(family) {
            continue;
        }
        let Some(end) = end_of(logs, timeline)? else {
            continue;
        };
        if !is_news(&end, own, own_end.as_ref()) {
            continue;
        }
        let executed = match &mut executed {
            Some(executed) => executed,
            none => none.insert(source.executed()?),
        };
        if !end.gtids.is_related(executed) {
            continue;
        }
        match judge(source, &end, executed, cancel)? {
            Ok(link) if found.as_ref().is_none_or(|(time, _)| *time <= end.time) => {
                found = Some((end.time, link));
            }
            Err(why) if torn.as_ref().is_none_or(|(time, _)| *time <= end.time) => {
                let source = timeline.source.clone();
                torn = Some((end.time, Seam::Torn { source, why }));
            }
            _ => {}
        }
    }
    Ok(match (found, torn) {
        (Some((_, link)), _) => Seam::Link(link),
        (None, Some((_, seam))) => seam,
        (None, None) => Seam::None,
    })
}

/// Whether a timeline's end is worth looking at for one that is there: nothing links them yet, or that
/// server continued where this one was not archived.
fn is_news(end: &End<'_>, own: Option<&Timeline>, own_end: Option<&End<'_>>) -> bool {
    let Some(own) = own else {
        return true;
    };
    let linked = own
        .follows
        .iter()
        .any(|link| link.source == end.timeline.source && link.timeline == end.timeline.id);
    let has_more = own_end.is_none_or(|own| !end.gtids.is_subset(&own.gtids));
    !linked || has_more
}

/// Reads how a timeline ends, from the header of its last segment or, where that says nothing, from the
/// log. Nothing for one without GTIDs, or whose log no key at hand opens.
fn end_of<'a>(logs: &Logs, timeline: &'a Timeline) -> Result<Option<End<'a>>> {
    let (Some(segment), Some(place)) = (timeline.segments.last(), timeline.end()) else {
        return Ok(None);
    };
    let header = logs.header(segment)?;
    let (mut last, mut time) = (None, 0);
    // The last segment may hold a part of one transaction only.
    for segment in timeline.segments.iter().rev() {
        let header = logs.header(segment)?;
        time = time.max(header.last_time.unwrap_or(0));
        if let (Some(gtid), Some(statement)) = (&header.last_gtid, header.last_statement) {
            last = Some((gtid.parse()?, statement));
        }
        if header.transactions > 0 {
            break;
        }
    }
    if let (Some(gtids), Some(_)) = (&header.gtids, &last) {
        let gtids: GtidSet = gtids.parse()?;
        return Ok((!gtids.is_empty()).then_some(End {
            timeline,
            place,
            gtids,
            last,
            time,
        }));
    }
    match logs.read(segment) {
        // A log that only others can read says nothing here.
        Err(error) if error.kind() == ErrorKind::WrongKey => return Ok(None),
        other => drop(other?),
    }
    let read = FileEnd::read(ArchivedFile::open(logs, timeline, &place.file))?;
    Ok(read.gtids.filter(|set| !set.is_empty()).map(|gtids| End {
        timeline,
        place,
        gtids,
        last: read.last,
        time,
    }))
}

/// Returns the link, or why there can be none.
fn judge(
    source: &Source,
    end: &End<'_>,
    executed: &GtidSet,
    cancel: &Cancel,
) -> Result<Result<Link, String>> {
    let lacks = lacking(&end.gtids, executed);
    if !lacks.is_empty() {
        return Ok(Err(format!("it does not have {lacks}")));
    }
    let mut first = None;
    let mut chosen = None;
    // The newest file that begins before anything that is not archived.
    for (file, _) in source.logs.iter().rev() {
        cancel.check()?;
        let Some(before) = source.executed_before(file)? else {
            return Ok(Err(format!("{file} does not list the GTIDs before it")));
        };
        let shows_last = match &end.last {
            Some((gtid, _)) if source.counts_gtids() => !before.contains(gtid),
            _ => true,
        };
        if before.is_subset(&end.gtids) && shows_last {
            chosen = Some((file.clone(), before));
            break;
        }
        first = Some(before.without(&end.gtids));
    }
    let Some((file, before)) = chosen else {
        let gone = first.filter(|gone| !gone.is_empty());
        return Ok(Err(match gone {
            Some(gone) => format!("it has deleted its logs of {gone}, which are not archived"),
            None => "it has deleted the log that holds the last archived transactions".to_owned(),
        }));
    };
    if source.counts_gtids()
        && let Some(why) = disagrees(source, end, &file, &before, cancel)?
    {
        return Ok(Err(why));
    }
    Ok(Ok(Link {
        source: end.timeline.source.clone(),
        timeline: end.timeline.id.clone(),
        after: end.place.clone(),
        gtids: end.gtids.to_string(),
        file,
    }))
}

/// Returns what a server lacks of what is archived. A MariaDB that was made from a backup knows of each
/// domain only what it applied itself: the last transaction stands for those before.
fn lacking(archived: &GtidSet, executed: &GtidSet) -> GtidSet {
    let lasts = archived.lasts();
    if lasts.is_empty() {
        return archived.without(executed);
    }
    let mut lacks = GtidSet::default();
    for gtid in lasts.iter().filter(|gtid| !executed.contains(gtid)) {
        lacks.add(gtid);
    }
    lacks
}

/// Looks for the last archived transaction of every domain in a MariaDB's log, from a file on; returns
/// what does not agree.
fn disagrees(
    source: &Source,
    end: &End<'_>,
    file: &str,
    before: &GtidSet,
    cancel: &Cancel,
) -> Result<Option<String>> {
    let mut wanted = end.gtids.lasts();
    let at_start = before.lasts();
    wanted.retain(|gtid| !at_start.contains(gtid));
    let mut differs = None;
    source.transactions(file, cancel, |gtid, statement| {
        wanted.retain(|one| *one != gtid);
        if let Some((last, time)) = &end.last
            && *last == gtid
            && *time != statement
        {
            differs = Some(gtid);
        }
        !wanted.is_empty() && differs.is_none()
    })?;
    if let Some(gtid) = differs {
        return Ok(Some(format!("its {gtid} is a different transaction")));
    }
    Ok(wanted
        .first()
        .map(|gtid| format!("its logs from {file} on do not contain {gtid}")))
}

/// Returns the file with which an archive of a server begins whose log continues at `file`: an
/// earlier one if a generation of that server is there. Nothing where that is not known.
pub(super) fn first_needed(
    repository: &Repository,
    source: &Source,
    file: &str,
) -> Result<Option<String>> {
    let mut first = file.to_owned();
    for one in repository.generations()? {
        if one.damage.is_some() {
            continue;
        }
        let manifest = repository
            .manifest(one.generation)
            .context(|| "failed to look for generations of the server")?;
        let Some(place) = LogPlace::of(&manifest)? else {
            // Sealed for others, or of a server without a log.
            return Ok(None);
        };
        let is_there = source.logs.iter().any(|(name, _)| *name == place.at.file);
        let is_before = number_of(&place.at.file) < number_of(&first);
        if place.source == source.id && is_there && is_before {
            first = place.at.file;
        }
    }
    Ok(Some(first))
}
