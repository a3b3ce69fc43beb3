//! The archived log from a place on: its events and transactions, across files.

use super::transaction::Transaction;
use super::unmade::{self, Unmade};
use crate::archive::LogPosition;
use evenkeel_binlog::{
    Event, Events, Format, Group, Groups, Gtid, GtidSet, MAGIC, body, kind, statement,
};
use evenkeel_op::{Context, Result};
use evenkeel_repository::logs::{Logs, Segment, Timeline};
use std::io::{self, Read, Write};

/// One archived file, read from its first byte.
pub(crate) struct ArchivedFile<'a> {
    logs: &'a Logs,
    rest: &'a [Segment],
    bytes: Vec<u8>,
    at: usize,
}

impl<'a> ArchivedFile<'a> {
    /// Opens a file of a timeline; only as far as it is there without a gap.
    pub(crate) fn open(logs: &'a Logs, timeline: &'a Timeline, file: &str) -> Self {
        let first = timeline.segments.iter().position(|one| one.file == file);
        let all = first.map_or(&[][..], |first| &timeline.segments[first..]);
        let mut end = 0;
        let whole = all
            .iter()
            .take_while(|one| {
                let joined = one.file == file && one.start == end;
                end = one.end;
                joined
            })
            .count();
        Self {
            logs,
            rest: &all[..whole],
            bytes: Vec::new(),
            at: 0,
        }
    }
}

impl Read for ArchivedFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.bytes.len() {
            let Some((next, rest)) = self.rest.split_first() else {
                return Ok(0);
            };
            self.bytes = self.logs.read(next).map_err(io::Error::other)?;
            self.at = 0;
            self.rest = rest;
        }
        let count = buffer.len().min(self.bytes.len() - self.at);
        buffer[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Something that a log holds.
pub(super) enum Item {
    /// A complete transaction, what its server's own clock said, and what of it cannot be made again.
    Transaction(Transaction, Option<Gtid>, Option<u32>, Vec<Unmade>),
    /// One that is before the place from which on is read.
    Earlier(Option<Gtid>),
    /// What the server had executed when it began the file.
    Executed(GtidSet),
    /// An event outside of any transaction, with its time: what is behind it was written then or later.
    Between {
        /// Where it begins.
        at: LogPosition,
        /// Seconds since 1970.
        time: u32,
        /// Whether the file begins with it.
        begins: bool,
    },
}

/// How far a file was read.
pub(super) struct FileRead {
    /// Whether whoever took what it holds had enough.
    pub(super) enough: bool,
    /// The position behind its last event that no transaction continues behind.
    pub(super) whole: u64,
}

/// Returns the files of a timeline from one on, in order.
pub(super) fn files_from<'a>(timeline: &'a Timeline, file: &str) -> Vec<&'a str> {
    let mut files: Vec<&str> = timeline
        .segments
        .iter()
        .map(|one| one.file.as_str())
        .skip_while(|name| *name != file)
        .collect();
    files.dedup();
    files
}

/// Hands over what one file holds from `from` on and up to `until`, until `take` has enough (`false`).
pub(super) fn read_file(
    logs: &Logs,
    timeline: &Timeline,
    from: &LogPosition,
    until: Option<u64>,
    mut take: impl FnMut(Item) -> Result<bool>,
) -> Result<FileRead> {
    let mut events = Events::new(ArchivedFile::open(logs, timeline, &from.file))?;
    let mut groups = Groups::default();
    let mut unmade = Vec::new();
    let mut read = FileRead {
        enough: false,
        whole: 4,
    };
    while let Some(event) = events.next_event()? {
        if until.is_some_and(|until| event.end() > until) {
            break;
        }
        let Some(format) = events.format().cloned() else {
            continue;
        };
        if let Some(set) = executed(&event, &format)
            && !take(Item::Executed(set))?
        {
            read.enough = true;
            return Ok(read);
        }
        let outside = groups.unfinished().is_none();
        let group = groups.step(&event, &format)?;
        let inside = groups.unfinished().is_some();
        unmade.extend(unmade_by(&from.file, &event, &format));
        if !inside {
            read.whole = event.end();
        }
        let item = match group {
            Some(group) if group.start >= from.position => {
                transaction(&from.file, &group, std::mem::take(&mut unmade))
            }
            Some(group) => {
                unmade.clear();
                Item::Earlier(group.gtid)
            }
            None if outside && !inside && event.position >= from.position => {
                between(&from.file, &event)
            }
            None => continue,
        };
        if !take(item)? {
            read.enough = true;
            return Ok(read);
        }
    }
    Ok(read)
}

/// Tells a statement that does not make again what it made.
fn unmade_by(file: &str, event: &Event, format: &Format) -> Option<Unmade> {
    if event.header.kind != kind::QUERY {
        return None;
    }
    let text = statement(body(&event.bytes, Some(format)))?;
    Some(Unmade {
        at: LogPosition {
            file: file.to_owned(),
            position: event.position,
        },
        why: unmade::why(text)?,
        statement: unmade::reported(text),
    })
}

/// Returns what a server had executed before a file, of the event that says so.
fn executed(event: &Event, format: &Format) -> Option<GtidSet> {
    match event.header.kind {
        kind::PREVIOUS_GTIDS => GtidSet::parse_previous(body(&event.bytes, Some(format))),
        kind::MARIADB_GTID_LIST => GtidSet::parse_list(body(&event.bytes, Some(format))),
        _ => None,
    }
}

/// Writes the events of a file up to `until`, without the transactions in `known` and without one that
/// is not complete there. Returns the bytes written.
pub(super) fn copy_others(
    archived: ArchivedFile<'_>,
    until: u64,
    known: Option<&GtidSet>,
    out: &mut impl Write,
) -> Result<u64> {
    let mut events = Events::new(archived)?;
    let mut groups = Groups::default();
    let failed = || "failed to write a relay log";
    out.write_all(&MAGIC).context(failed)?;
    let mut written = MAGIC.len() as u64;
    while let Some(event) = events.next_event()? {
        if event.end() > until {
            break;
        }
        let Some(format) = events.format().cloned() else {
            continue;
        };
        let group = groups.step(&event, &format)?;
        let gtid = match (&group, groups.unfinished()) {
            (Some(group), _) => group.gtid,
            (None, Some(open)) => open.gtid,
            (None, None) => None,
        };
        if gtid.is_some_and(|gtid| known.is_some_and(|known| known.contains(&gtid))) {
            continue;
        }
        out.write_all(&event.bytes).context(failed)?;
        written += event.bytes.len() as u64;
    }
    Ok(written)
}

/// How a file ends.
pub(crate) struct FileEnd {
    /// What its server had executed there; nothing where the file does not say that.
    pub(crate) gtids: Option<GtidSet>,
    /// Its last transaction, and the second of its last statement.
    pub(crate) last: Option<(Gtid, u32)>,
}

impl FileEnd {
    /// Reads a file to its end.
    pub(crate) fn read(archived: ArchivedFile<'_>) -> Result<Self> {
        let mut events = Events::new(archived)?;
        let mut groups = Groups::default();
        let mut end = Self {
            gtids: None,
            last: None,
        };
        while let Some(event) = events.next_event()? {
            let Some(format) = events.format().cloned() else {
                continue;
            };
            if let Some(set) = executed(&event, &format) {
                end.gtids = Some(set);
            }
            let Some(group) = groups.step(&event, &format)? else {
                continue;
            };
            match (group.gtid, &mut end.gtids) {
                (Some(gtid), Some(gtids)) => {
                    gtids.add(&gtid);
                    end.last = Some((gtid, group.statement));
                }
                _ => end.gtids = None,
            }
        }
        Ok(end)
    }
}

fn transaction(file: &str, group: &Group, unmade: Vec<Unmade>) -> Item {
    let transaction = Transaction {
        at: LogPosition {
            file: file.to_owned(),
            position: group.start,
        },
        end: group.end,
        time: jiff::Timestamp::from_second(i64::from(group.time)).ok(),
        gtid: group.gtid.map(|gtid| gtid.to_string()),
    };
    Item::Transaction(transaction, group.gtid, group.clock, unmade)
}

fn between(file: &str, event: &Event) -> Item {
    Item::Between {
        at: LogPosition {
            file: file.to_owned(),
            position: event.position,
        },
        time: event.header.time,
        begins: event.header.kind == kind::FORMAT_DESCRIPTION,
    }
}

#[cfg(test)]
mod tests;
