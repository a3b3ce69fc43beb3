//! What an archive holds, told by the names of its segments and the headers of the few that begin a
//! file.
//!
//! ```text
//! binlogs/SOURCE/archive.lock
//! binlogs/SOURCE/TIMELINE/FILE.START-END
//! ```
//!
//! A *source* is a server, by its own id. A *timeline* is one history of its log: RESET MASTER begins
//! another, with the same file names.

use super::segment::{self, Place, SegmentHeader};
use evenkeel_binlog::number_of;
use evenkeel_op::{Context, Error, Result};
use evenkeel_repository::store::Store;
use serde::Serialize;
use std::io;

pub(super) use evenkeel_repository::BINLOGS as FOLDER;
/// Digits of a position in a name, so that names sort as positions do.
const DIGITS: usize = 12;

/// A segment, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) object: String,
    pub(crate) file: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Segment {
    /// Returns the name in the store of the segment of a header.
    pub(super) fn object_name(folder: &str, header: &SegmentHeader) -> String {
        let (file, start, end) = (&header.file, header.start, header.end);
        format!("{folder}/{file}.{start:0DIGITS$}-{end:0DIGITS$}")
    }

    fn parse(folder: &str, name: &str) -> Option<Self> {
        let (file, range) = name.rsplit_once('.')?;
        let (start, end) = range.split_once('-')?;
        number_of(file)?;
        Some(Self {
            object: format!("{folder}/{name}"),
            file: file.to_owned(),
            start: start.parse().ok()?,
            end: end.parse().ok()?,
        })
    }

    fn order(&self) -> (u64, u64) {
        (number_of(&self.file).unwrap_or(0), self.start)
    }
}

/// A stretch of a timeline that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// The last place before it.
    pub after: Place,
    /// The first place behind it.
    pub before: Place,
    /// Why, where that is known.
    pub why: Option<String>,
}

/// One history of one source's log.
#[derive(Debug, Clone)]
pub(crate) struct Timeline {
    pub(crate) source: String,
    pub(crate) id: String,
    pub(crate) folder: String,
    /// In order.
    pub(crate) segments: Vec<Segment>,
    pub(crate) gaps: Vec<Gap>,
}

impl Timeline {
    /// Returns the place after the last byte.
    pub(crate) fn end(&self) -> Option<Place> {
        self.segments.last().map(|last| Place {
            file: last.file.clone(),
            position: last.end,
        })
    }

    /// Returns the place of the first byte.
    pub(crate) fn start(&self) -> Option<Place> {
        self.segments.first().map(|first| Place {
            file: first.file.clone(),
            position: first.start,
        })
    }

    /// Reads the header of a segment.
    pub(crate) fn header(store: &dyn Store, segment: &Segment) -> Result<SegmentHeader> {
        let header = segment::header(store, &segment.object)?;
        segment.check(&header)?;
        Ok(header)
    }

    fn find_gaps(&mut self, store: &dyn Store) -> Result<()> {
        for two in self.segments.windows(2) {
            let after = Place {
                file: two[0].file.clone(),
                position: two[0].end,
            };
            if two[1].file == after.file && two[1].start == after.position {
                continue;
            }
            // Another file: what came before it is in its header.
            let header = Self::header(store, &two[1])?;
            if two[1].start == 0 && header.previous.as_ref() == Some(&after) {
                continue;
            }
            self.gaps.push(Gap {
                after,
                before: Place {
                    file: two[1].file.clone(),
                    position: two[1].start,
                },
                why: header.gap,
            });
        }
        Ok(())
    }
}

impl Segment {
    /// Reads the bytes of the log, verified.
    pub(crate) fn read(&self, store: &dyn Store) -> Result<Vec<u8>> {
        let (header, bytes) = segment::read(store, &self.object)?;
        self.check(&header)?;
        Ok(bytes)
    }

    fn check(&self, header: &SegmentHeader) -> Result<()> {
        let same = (&header.file, header.start, header.end) == (&self.file, self.start, self.end);
        match same {
            true => Ok(()),
            false => Err(Error::new(
                evenkeel_op::ErrorKind::Differs,
                format!("{} is not what its name says", self.object),
            )),
        }
    }
}

/// Reads what there is of all sources, or of one.
pub(crate) fn timelines(store: &dyn Store, source: Option<&str>) -> Result<Vec<Timeline>> {
    let mut all = Vec::new();
    for found in folders(store, FOLDER)? {
        if source.is_some_and(|wanted| wanted != found) {
            continue;
        }
        for id in folders(store, &format!("{FOLDER}/{found}"))? {
            let folder = format!("{FOLDER}/{found}/{id}");
            let mut segments: Vec<Segment> = list(store, &folder)?
                .iter()
                .filter(|listed| !listed.is_folder)
                .filter_map(|listed| Segment::parse(&folder, &listed.name))
                .collect();
            segments.sort_by_key(Segment::order);
            let mut timeline = Timeline {
                source: found.clone(),
                id,
                folder,
                segments,
                gaps: Vec::new(),
            };
            timeline.find_gaps(store)?;
            if !timeline.segments.is_empty() {
                all.push(timeline);
            }
        }
    }
    all.sort_by(|a, b| (&a.source, &a.id).cmp(&(&b.source, &b.id)));
    Ok(all)
}

fn folders(store: &dyn Store, folder: &str) -> Result<Vec<String>> {
    let listed = list(store, folder)?;
    let folders = listed.into_iter().filter(|one| one.is_folder);
    Ok(folders.map(|one| one.name).collect())
}

fn list(store: &dyn Store, folder: &str) -> Result<Vec<evenkeel_repository::store::Listed>> {
    match store.list(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.context(|| format!("failed to list {folder}")),
    }
}
