//! The archived log from a place on: its events and transactions, across files.

use super::Transaction;
use crate::archive::Place;
use evenkeel_binlog::{Event, Events, Group, Groups};
use evenkeel_op::Result;
use evenkeel_repository::logs::{Logs, Segment, Timeline};
use std::io::{self, Read};

/// One archived file, read from its first byte.
pub(super) struct ArchivedFile<'a> {
    logs: &'a Logs,
    rest: &'a [Segment],
    bytes: Vec<u8>,
    at: usize,
}

impl<'a> ArchivedFile<'a> {
    /// Opens a file of a timeline; only as far as it is there without a gap.
    pub(super) fn open(logs: &'a Logs, timeline: &'a Timeline, file: &str) -> Self {
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
    /// A complete transaction.
    Transaction(Transaction),
    /// An event outside of any, with its time: what is behind it was written then or later.
    Between {
        /// Where it begins.
        at: Place,
        /// Seconds since 1970.
        time: u32,
    },
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

/// Hands over what one file holds from `from` on, until `take` has enough (`false`). Returns whether
/// it had.
pub(super) fn read_file(
    logs: &Logs,
    timeline: &Timeline,
    from: &Place,
    mut take: impl FnMut(Item) -> Result<bool>,
) -> Result<bool> {
    let mut events = Events::new(ArchivedFile::open(logs, timeline, &from.file))?;
    let mut groups = Groups::default();
    while let Some(event) = events.next_event()? {
        let Some(format) = events.format().cloned() else {
            continue;
        };
        let outside = groups.unfinished().is_none();
        let group = groups.step(&event, &format)?;
        if event.position < from.position {
            continue;
        }
        let item = match group {
            Some(group) if group.start >= from.position => transaction(&from.file, &group),
            Some(_) => continue,
            None if outside && groups.unfinished().is_none() => between(&from.file, &event),
            None => continue,
        };
        if !take(item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn transaction(file: &str, group: &Group) -> Item {
    Item::Transaction(Transaction {
        at: Place {
            file: file.to_owned(),
            position: group.start,
        },
        end: group.end,
        time: jiff::Timestamp::from_second(i64::from(group.time)).ok(),
        gtid: group.gtid.map(|gtid| gtid.to_string()),
    })
}

fn between(file: &str, event: &Event) -> Item {
    Item::Between {
        at: Place {
            file: file.to_owned(),
            position: event.position,
        },
        time: event.header.time,
    }
}
