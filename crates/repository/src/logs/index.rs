//! What there is of archived logs, derived from the names of segments and the headers of those that
//! begin a file.

use super::handle::Logs;
use super::header::{LogPosition, SegmentHeader};
use super::link::{self, Link};
use super::mark::{self, FORGOTTEN, Forgotten};
use crate::heal::{is_unfinished, list};
use crate::names::{ARCHIVE_LOCK, BINLOGS};
use crate::store::{Listed, Store};
use evenkeel_binlog::number_of;
use evenkeel_op::{Error, Result};
use serde::Serialize;

/// Digits of a position in a name, so that names sort as positions do.
const DIGITS: usize = 12;

/// A segment, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Its object.
    pub object: String,
    /// The server whose log it is.
    pub source: String,
    /// The timeline of that log.
    pub timeline: String,
    /// The binary log file.
    pub file: String,
    /// Position of its first byte there.
    pub start: u64,
    /// Position after its last byte.
    pub end: u64,
    /// Bytes that it takes.
    pub stored: u64,
}

/// Returns the folder of a timeline.
pub(super) fn folder(source: &str, timeline: &str) -> String {
    format!("{BINLOGS}/{source}/{timeline}")
}

/// Returns the name of the object for these bytes of a file.
pub(super) fn object_name(folder: &str, file: &str, start: u64, end: u64) -> String {
    format!("{folder}/{file}.{start:0DIGITS$}-{end:0DIGITS$}")
}

/// Returns which bytes of which file a segment of this name has; `None` if it is none's.
fn span_of(name: &str) -> Option<(&str, u64, u64)> {
    let (file, range) = name.rsplit_once('.')?;
    let (start, end) = range.split_once('-')?;
    let (start, end) = (start.parse().ok()?, end.parse().ok()?);
    number_of(file)?;
    let is_one = start < end && object_name("", file, start, end).strip_prefix('/') == Some(name);
    is_one.then_some((file, start, end))
}

/// Returns where in its timeline a segment of this name is: by number of the file, and position. `None`
/// if it is no segment's.
pub(crate) fn order_of(name: &str) -> Option<(u64, u64)> {
    let (file, start, _) = span_of(name)?;
    Some((number_of(file)?, start))
}

impl Segment {
    fn parse(source: &str, timeline: &str, listed: &Listed) -> Option<Self> {
        let (file, start, end) = span_of(&listed.name)?;
        (!listed.is_folder).then(|| Self {
            object: object_name(&folder(source, timeline), file, start, end),
            source: source.to_owned(),
            timeline: timeline.to_owned(),
            file: file.to_owned(),
            start,
            end,
            stored: listed.size,
        })
    }

    fn order(&self) -> (u64, u64, u64) {
        (number_of(&self.file).unwrap_or(0), self.start, self.end)
    }

    /// Returns the place of its first byte.
    #[must_use]
    pub fn from(&self) -> LogPosition {
        LogPosition {
            file: self.file.clone(),
            position: self.start,
        }
    }

    /// Returns the place after its last byte.
    #[must_use]
    pub fn to(&self) -> LogPosition {
        LogPosition {
            file: self.file.clone(),
            position: self.end,
        }
    }
}

/// A stretch of a timeline that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// The last place before it.
    pub after: LogPosition,
    /// The first place behind it.
    pub before: LogPosition,
    /// Why, where that is known.
    pub why: Option<String>,
}

/// One timeline of one source's log.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// The server.
    pub source: String,
    /// Its name.
    pub id: String,
    /// In order.
    pub segments: Vec<Segment>,
    /// What is missing between them, and before the first if that was not forgotten.
    pub gaps: Vec<Gap>,
    /// From where it continues, where another server was before.
    pub follows: Vec<Link>,
}

impl Timeline {
    /// Returns the place after the last byte.
    #[must_use]
    pub fn end(&self) -> Option<LogPosition> {
        self.segments.last().map(Segment::to)
    }

    /// Returns the place of the first byte.
    #[must_use]
    pub fn start(&self) -> Option<LogPosition> {
        self.segments.first().map(Segment::from)
    }
}

/// A timeline's folder, by the names in it.
pub(super) struct Folder {
    pub(super) source: String,
    pub(super) timeline: String,
    /// In order; without what was forgotten.
    pub(super) segments: Vec<Segment>,
    /// What was forgotten, and is still there.
    pub(super) leftovers: Vec<Segment>,
    /// Names that are no segment's.
    pub(super) others: Vec<Listed>,
    pub(super) forgotten: Option<Forgotten>,
    /// From where it continues, and the names of the objects that say so.
    pub(super) links: Vec<(String, Link)>,
    /// What is wrong with its mark or its links.
    pub(super) damage: Option<Error>,
}

impl Folder {
    pub(super) fn read(logs: &Logs, source: &str, timeline: &str) -> Result<Self> {
        let mut found = Self {
            source: source.to_owned(),
            timeline: timeline.to_owned(),
            segments: Vec::new(),
            leftovers: Vec::new(),
            others: Vec::new(),
            forgotten: None,
            links: Vec::new(),
            damage: None,
        };
        // Listed before the mark is read: what is removed meanwhile was marked before.
        let listed = list(&*logs.store, &folder(source, timeline))?;
        if listed.iter().any(|one| one.name == FORGOTTEN) {
            match mark::read(logs, source, timeline) {
                Ok(forgotten) => found.forgotten = Some(forgotten),
                Err(error) if mark::is_damage(&error) => found.damage = Some(error),
                Err(error) => return Err(error),
            }
        }
        for one in listed.into_iter().filter(|one| one.name != FORGOTTEN) {
            if let Some(number) = link::number_of(&one.name) {
                found.link(logs, one.name, number)?;
                continue;
            }
            let is_gone = |file: &str| {
                found
                    .forgotten
                    .as_ref()
                    .is_some_and(|mark| mark.holds(file))
            };
            match Segment::parse(source, timeline, &one) {
                Some(segment) if is_gone(&segment.file) => found.leftovers.push(segment),
                Some(segment) => found.segments.push(segment),
                None => found.others.push(one),
            }
        }
        found.segments.sort_by_key(Segment::order);
        found.leftovers.sort_by_key(Segment::order);
        Ok(found)
    }

    fn link(&mut self, logs: &Logs, name: String, number: u32) -> Result<()> {
        match link::read(logs, (&self.source, &self.timeline), number) {
            Ok(link) => self.links.push((name, link)),
            Err(error) if mark::is_damage(&error) => self.damage = Some(error),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns what is missing, and what is wrong with the headers that would tell.
    pub(super) fn gaps(&self, logs: &Logs) -> (Vec<Gap>, Vec<Error>) {
        let (mut gaps, mut errors) = (Vec::new(), Vec::new());
        let before = self.segments.iter().map(Some);
        for (before, segment) in std::iter::once(None).chain(before).zip(&self.segments) {
            match self.gap(logs, before, segment) {
                Ok(gap) => gaps.extend(gap),
                Err(error) => errors.push(error),
            }
        }
        (gaps, errors)
    }

    /// Returns what is missing before a segment.
    fn gap(&self, logs: &Logs, before: Option<&Segment>, segment: &Segment) -> Result<Option<Gap>> {
        if let Some(before) = before
            && before.file == segment.file
        {
            let joined = before.end == segment.start;
            return Ok((!joined).then(|| Gap {
                after: before.to(),
                before: segment.from(),
                why: None,
            }));
        }
        if before.is_none()
            && let Some(Forgotten::Before(place)) = &self.forgotten
            && *place == segment.from()
        {
            return Ok(None);
        }
        // Another file: what came before it is in its header.
        let header = logs.header(segment)?;
        let after = before.map(Segment::to);
        let begins = segment.start == 0;
        if begins && header.previous == after && (before.is_some() || self.forgotten.is_none()) {
            return Ok(None);
        }
        let unknown = || match &self.forgotten {
            Some(Forgotten::Before(place)) => place.clone(),
            _ => LogPosition {
                file: segment.file.clone(),
                position: 0,
            },
        };
        Ok(Some(Gap {
            after: after.or(header.previous).unwrap_or_else(unknown),
            before: segment.from(),
            why: header.gap,
        }))
    }
}

impl Logs {
    /// Reads what there is of all sources, or of one.
    pub fn timelines(&self, source: Option<&str>) -> Result<Vec<Timeline>> {
        let mut all = Vec::new();
        for (source, id) in self.folders(source)? {
            let mut folder = Folder::read(self, &source, &id)?;
            let (mut gaps, mut errors) = folder.gaps(self);
            // A list is not made at one point in time: one that was added meanwhile may show, and the
            // one before it not.
            if gaps.iter().any(|gap| gap.why.is_none()) || !errors.is_empty() {
                folder = Folder::read(self, &source, &id)?;
                (gaps, errors) = folder.gaps(self);
            }
            if let Some(error) = errors.into_iter().chain(folder.damage).next() {
                return Err(error);
            }
            if !folder.segments.is_empty() {
                all.push(Timeline {
                    source,
                    id,
                    segments: folder.segments,
                    gaps,
                    follows: folder.links.into_iter().map(|(_, link)| link).collect(),
                });
            }
        }
        Ok(all)
    }

    /// Does the same by names alone: what is missing is not reported, no key is needed, and what was
    /// forgotten and is there all the same counts as there. A mark alone is no order to remove anything.
    pub fn timelines_by_name(&self) -> Result<Vec<Timeline>> {
        let mut all = Vec::new();
        for (source, id) in self.folders(None)? {
            let mut folder = Folder::read(self, &source, &id)?;
            if let Some(error) = folder.damage {
                return Err(error);
            }
            folder.segments.append(&mut folder.leftovers);
            folder.segments.sort_by_key(Segment::order);
            if !folder.segments.is_empty() {
                all.push(Timeline {
                    source,
                    id,
                    segments: folder.segments,
                    gaps: Vec::new(),
                    follows: folder.links.into_iter().map(|(_, link)| link).collect(),
                });
            }
        }
        Ok(all)
    }

    /// Returns source and name of every timeline, in order.
    pub(super) fn folders(&self, source: Option<&str>) -> Result<Vec<(String, String)>> {
        let mut all = Vec::new();
        for found in subfolders(&*self.store, BINLOGS)? {
            if source.is_some_and(|wanted| wanted != found) {
                continue;
            }
            let inside = subfolders(&*self.store, &format!("{BINLOGS}/{found}"))?;
            // A lock is a folder where it is a lease.
            let inside = inside.into_iter().filter(|id| id != ARCHIVE_LOCK);
            all.extend(inside.map(|id| (found.clone(), id)));
        }
        all.sort();
        Ok(all)
    }

    /// Reads the header of a segment.
    ///
    /// Errors: `Differs` for one that is not what its name says, `WrongKey` without a key.
    pub fn header(&self, segment: &Segment) -> Result<SegmentHeader> {
        self.open(segment)?.1.ok_or_else(crate::crypt::no_key)
    }
}

fn subfolders(store: &dyn Store, folder: &str) -> Result<Vec<String>> {
    let listed = list(store, folder)?;
    let folders = listed.into_iter().filter(|one| one.is_folder);
    let folders = folders.filter(|one| !is_unfinished(&one.name));
    Ok(folders.map(|one| one.name).collect())
}
