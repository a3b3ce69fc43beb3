//! Reads a table's files: which rows are whole, and what is not.

use super::missing::Missing;
use super::{Checked, Damage};
use crate::error::{During, Result};
use crate::log::Name;
use crate::log::frame::{self, FrameKind, HEADER, Header, Origin};
use crate::log::rows::{self, ROW_HEADER, SLOTS, TableState};
use crate::log::segment::{self, START};
use crate::log::times::{self, Times};
use crate::plain::Directory;
use crate::table::{CHECKPOINT, Checkpoint};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Where a row starts.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowAddress {
    /// Which of the files.
    pub(super) file: u32,
    /// Where in it, in bytes.
    pub(super) offset: u32,
}

/// What is known of a table from its files.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) dir: Directory,
    table: u128,
    /// The files that were read, in their order.
    pub(super) files: Vec<Name>,
    /// When the rows of each of them came.
    times: Vec<Times>,
    /// The id behind the last row that was found in the file at hand.
    behind: u64,
    /// The rows that are whole and were not removed.
    pub(super) rows: BTreeMap<u64, RowAddress>,
    pub(super) state: TableState,
    /// No checkpoint is newer, and no segment.
    pub(super) generation: u32,
    pub(super) last_segment: u64,
    /// Which id comes next in the log, where that is known.
    expected: Option<u64>,
    /// Since that was said something is lost of which nobody knows what it was.
    is_unaccounted: bool,
    /// What was removed since then, from a first id to below another: it may have been in what is lost.
    removed_since: Vec<(u64, u64)>,
    missing: Missing,
    /// Rows of parts that are lost; their ids are not known.
    lost: u64,
    pub(super) checked: Checked,
}

/// A file at hand.
struct Read {
    name: Name,
    path: PathBuf,
    /// Which of the scan's files it is.
    index: u32,
    origin: Origin,
    bytes: Vec<u8>,
    is_last: bool,
}

impl Read {
    /// Whether it is of the log: parts are what compaction kept.
    fn is_log(&self) -> bool {
        matches!(self.name, Name::Segment(_))
    }
}

impl Scan {
    /// Reads the files in a directory. Errors: it cannot be listed.
    pub(super) fn of(dir: Directory, table: u128) -> Result<Self> {
        let names = dir.list().during("list", &dir.path)?;
        let mut names: Vec<Name> = names.iter().filter_map(|name| Name::parse(name)).collect();
        names.sort_unstable();
        let checked = Checked {
            directory: dir.path.clone(),
            ..Checked::default()
        };
        let mut this = Self {
            dir,
            table,
            files: Vec::new(),
            times: Vec::new(),
            behind: 0,
            rows: BTreeMap::new(),
            state: TableState::new(),
            generation: 0,
            last_segment: 0,
            expected: None,
            is_unaccounted: false,
            removed_since: Vec::new(),
            missing: Missing::default(),
            lost: 0,
            checked,
        };
        this.remember_numbers(&names);
        let (parts, first) = this.which(&names);
        for (name, bytes) in parts {
            this.part(name, bytes);
        }
        let numbers = names.iter().filter_map(|name| match name {
            Name::Segment(number) if *number >= first => Some(*number),
            _ => None,
        });
        this.log(first, &numbers.collect::<Vec<_>>());
        this.conclude();
        Ok(this)
    }

    /// New files get other names than all that are there.
    fn remember_numbers(&mut self, names: &[Name]) {
        for name in names {
            match name {
                Name::Part { generation, .. } => self.generation = self.generation.max(*generation),
                Name::Segment(number) => self.last_segment = self.last_segment.max(*number),
            }
        }
    }

    /// Which files are the table: its parts with their lengths, and the first segment. Without a
    /// checkpoint all are taken that are there: no row is lost so, and one that was removed long ago may
    /// be there again.
    fn which(&mut self, names: &[Name]) -> (Vec<(Name, Option<u64>)>, u64) {
        let path = self.dir.path.join(CHECKPOINT);
        let read = self.dir.read(CHECKPOINT).map_err(|error| error.to_string());
        let read = read.and_then(|bytes| Checkpoint::decode(&bytes).map_err(str::to_owned));
        let read = read.and_then(|checkpoint| match checkpoint.table == self.table {
            true => Ok(checkpoint),
            false => Err("it belongs to another table".to_owned()),
        });
        match read {
            Ok(checkpoint) => {
                self.generation = self.generation.max(checkpoint.generation);
                if checkpoint.first_segment == 1 {
                    self.expected = Some(1);
                }
                let parts = checkpoint.parts.into_iter();
                let parts = parts.map(|(name, bytes)| (name, Some(bytes)));
                (parts.collect(), checkpoint.first_segment)
            }
            Err(what) => {
                let bytes = fs::symlink_metadata(&path).map_or(0, |meta| meta.len());
                self.damaged(&path, (0, bytes), what);
                self.checked.may_repeat = true;
                let is_part = |name: &&Name| matches!(name, Name::Part { .. });
                let parts = names.iter().filter(is_part).map(|name| (*name, None));
                let first = names.iter().find_map(|name| match name {
                    Name::Segment(number) => Some(*number),
                    Name::Part { .. } => None,
                });
                (parts.collect(), first.unwrap_or(0))
            }
        }
    }

    fn damaged(&mut self, file: &Path, (offset, bytes): (u64, u64), what: impl Into<String>) {
        self.checked.damage.push(Damage {
            file: file.to_owned(),
            offset,
            bytes,
            what: what.into(),
        });
    }

    /// Reads a file; nothing where it cannot be read, which is told.
    fn read(&mut self, name: Name, is_last: bool, bytes: Option<u64>) -> Option<Read> {
        let path = self.dir.path.join(name.file());
        match self.dir.read(&name.file()) {
            Ok(bytes) => {
                self.checked.files += 1;
                self.checked.bytes += bytes.len() as u64;
                let index = self.files.len() as u32;
                self.files.push(name);
                self.times.push(Times::default());
                self.behind = 0;
                Some(Read {
                    name,
                    path,
                    index,
                    origin: Origin::new(self.table, name.id()),
                    bytes,
                    is_last,
                })
            }
            Err(error) => {
                let what = match error.kind() {
                    ErrorKind::NotFound => "the file is missing".to_owned(),
                    ErrorKind::InvalidInput => error.to_string(),
                    _ => format!("{error}: copy what can be read of it to a sound disk first"),
                };
                self.damaged(&path, (0, bytes.unwrap_or(0)), what);
                None
            }
        }
    }

    fn part(&mut self, name: Name, bytes: Option<u64>) {
        let Some(file) = self.read(name, false, bytes) else {
            return;
        };
        self.header(&file);
        let real = file.bytes.len() as u64;
        self.frames(&file);
        if let Some(bytes) = bytes.filter(|bytes| *bytes != real) {
            self.another_length(&file.path, real, bytes);
        }
    }

    fn another_length(&mut self, path: &Path, real: u64, bytes: u64) {
        let what = format!("it is {real} bytes long and was {bytes}");
        self.damaged(path, (real.min(bytes), bytes.saturating_sub(real)), what);
    }

    /// Checks a file's header, and returns where the file before it ended.
    fn header(&mut self, file: &Read) -> Option<u64> {
        let checked = segment::check(&file.bytes, self.table, file.name);
        if let Err(what) = checked {
            let bytes = file.bytes.len().min(START) as u64;
            self.damaged(&file.path, (0, bytes), what);
        }
        checked.ok()
    }

    fn log(&mut self, first: u64, numbers: &[u64]) {
        let mut expected = first;
        let mut before: Option<(PathBuf, RangeInclusive<u64>)> = None;
        for (at, number) in numbers.iter().enumerate() {
            let is_last = at + 1 == numbers.len();
            let Some(file) = self.read(Name::Segment(*number), is_last, None) else {
                self.checked.may_repeat = true;
                self.is_unaccounted = true;
                before = None;
                expected = number + 1;
                continue;
            };
            if is_last && before.is_some() && self.was_never_used(&file) {
                self.checked.torn_bytes += file.bytes.len() as u64;
                return;
            }
            let previous = self.header(&file);
            // Nobody else says how long the one before was.
            self.checked.may_repeat |= previous.is_none();
            self.is_unaccounted |= previous.is_none() && before.is_some();
            if *number != expected {
                // The one behind the gap says how long the last one in it was.
                let bytes = previous.filter(|_| *number == expected + 1);
                self.gap(expected, *number, bytes.unwrap_or(0));
            } else if let (Some((path, end)), Some(previous)) = (&before, previous)
                && !end.contains(&previous)
            {
                self.another_length(path, *end.end(), previous);
                self.checked.may_repeat |= previous > *end.end();
                self.is_unaccounted = true;
            }
            let end = self.frames(&file);
            before = Some((file.path, end));
            expected = number + 1;
        }
        if numbers.is_empty() {
            self.gap(first, first + 1, 0);
        }
    }

    /// Segments from one number to below another are not there.
    fn gap(&mut self, from: u64, to: u64, bytes: u64) {
        let path = self.dir.path.join(Name::Segment(from).file());
        let what = match to - from {
            1 => "the file is missing".to_owned(),
            files => format!("the file is missing, and the {} after it", files - 1),
        };
        self.damaged(&path, (0, bytes), what);
        self.checked.may_repeat = true;
        self.is_unaccounted = true;
    }

    /// A file got its name, and the crash came before anything was written to it for good.
    fn was_never_used(&self, file: &Read) -> bool {
        let (_, broken) = segment::walk(&file.bytes, file.origin, (0, false), |_, _, _| Ok(()));
        let is_torn = segment::check(&file.bytes, self.table, file.name).is_err()
            || frame::read(&file.bytes, file.origin, START).is_err();
        is_torn && !broken.is_some_and(|broken| broken.was_durable)
    }

    /// Does what the frames say. Returns where they end, before zeros that were filled in beforehand: somewhere
    /// in what is broken, where that reaches to the end of the file.
    fn frames(&mut self, file: &Read) -> RangeInclusive<u64> {
        let is_filled = file.is_log();
        let (mut from, mut broken_at) = (START, START);
        loop {
            let place = (from, is_filled);
            let (end, broken) =
                segment::walk(&file.bytes, file.origin, place, |at, header, body| {
                    self.apply(file, header, body, at + HEADER)
                });
            let Some(broken) = broken else {
                return if from < file.bytes.len() {
                    end as u64..=end as u64
                } else {
                    broken_at as u64..=end as u64
                };
            };
            broken_at = broken.at;
            // It may have been said in what is broken when the next rows came.
            self.times[file.index as usize].say((self.behind, 0));
            from = broken.next.unwrap_or(file.bytes.len());
            if file.is_last && !broken.was_durable {
                // A server cuts here.
                let torn = (file.bytes.len() - broken.at) as u64;
                self.checked.torn_bytes = self.checked.torn_bytes.max(torn);
                self.expected = None;
                continue;
            }
            let bytes = (from - broken.at) as u64;
            self.damaged(&file.path, (broken.at as u64, bytes), broken.what);
            let mut at = broken.at;
            while at < from {
                match frame::head(&file.bytes, file.origin, at) {
                    Ok((header, _)) => {
                        self.rescue(file, at, &header);
                        at += frame::size(u64::from(header.len)) as usize;
                    }
                    Err(_) => {
                        // Anything may have stood there.
                        self.checked.may_repeat |= file.is_log();
                        self.is_unaccounted |= file.is_log();
                        break;
                    }
                }
            }
        }
    }

    /// What a whole frame did when it was written, it does again.
    fn apply(
        &mut self,
        file: &Read,
        header: &Header,
        body: &[u8],
        at: usize,
    ) -> std::result::Result<(), &'static str> {
        match header.kind {
            FrameKind::State => {
                let state = TableState::read(body)?;
                self.leaves_out(state.next, state.next);
                let next = self.state.next.max(state.next);
                self.state = TableState { next, ..state };
            }
            FrameKind::Removed => {
                let numbers: Vec<u64> = rows::numbers(body).collect();
                for range in numbers.chunks_exact(2) {
                    self.remove(range[0], range[0].saturating_add(range[1]));
                }
            }
            FrameKind::Times => {
                for pair in times::read(body, header.count)? {
                    self.times[file.index as usize].say(pair);
                }
            }
            FrameKind::Rows | FrameKind::Sourced | FrameKind::Kept => {
                let is_kept = header.kind == FrameKind::Kept;
                let mut before = 0;
                if header.kind == FrameKind::Sourced {
                    before = rows::SOURCE;
                    let source = body.get(..before).ok_or("a source is missing")?;
                    self.source(source);
                }
                let end = header.first.saturating_add(u64::from(header.count));
                match is_kept {
                    false => self.follows(header.first, end),
                    true if file.is_log() => self.leaves_out(header.first, end),
                    true => {}
                }
                let (ids, start) = ((header.first, header.count), (at + before) as u64);
                rows::places(&body[before..], start, ids, is_kept, |id, offset| {
                    self.found(id, file.index, offset);
                })?;
                if is_kept && file.is_log() {
                    self.continues_at(self.behind);
                }
            }
        }
        Ok(())
    }

    fn source(&mut self, bytes: &[u8]) {
        let mut numbers = rows::numbers(bytes);
        let slot = numbers.next().unwrap_or(u64::MAX) as usize;
        if slot < SLOTS {
            self.state.sources[slot] = numbers.next().unwrap_or(0);
        }
    }

    /// The log continues with the ids from `first` to below `end`: what was to come before it is missing.
    fn follows(&mut self, first: u64, end: u64) {
        if let Some(expected) = self.expected {
            self.missing.add(expected, first);
        }
        for (first, end) in std::mem::take(&mut self.removed_since) {
            self.missing.remove(first, end);
        }
        self.continues_at(end);
    }

    /// As [`follows`](Self::follows), with what may leave out ids: rows that ALTER TABLE copied, and what it says behind
    /// them of the next id. Of rows that were consumed before, the copy has nothing.
    fn leaves_out(&mut self, first: u64, end: u64) {
        match self.is_unaccounted {
            true => self.follows(first, end),
            false => self.continues_at(end),
        }
    }

    fn continues_at(&mut self, id: u64) {
        self.expected = Some(id.max(self.expected.unwrap_or(0)));
        self.is_unaccounted = false;
        self.removed_since.clear();
    }

    fn found(&mut self, id: u64, file: u32, offset: u32) {
        self.rows.entry(id).or_insert(RowAddress { file, offset });
        self.behind = id.saturating_add(1);
        self.state.next = self.state.next.max(id.saturating_add(1));
    }

    /// When a row came, in seconds since 1970; 0 where nobody knows.
    pub(super) fn came(&self, id: u64, place: &RowAddress) -> u64 {
        self.times[place.file as usize].of(id)
    }

    fn remove(&mut self, first: u64, end: u64) {
        while let Some((id, _)) = self.rows.range(first..end).next() {
            let id = *id;
            self.rows.remove(&id);
        }
        self.missing.remove(first, end);
        if self.is_unaccounted {
            self.removed_since.push((first, end));
        }
    }

    /// Keeps the rows that are whole of a frame whose head is, and whose body is not.
    fn rescue(&mut self, file: &Read, at: usize, header: &Header) {
        let mut here = at + HEADER;
        match header.kind {
            FrameKind::Removed => self.checked.may_repeat = true,
            FrameKind::State | FrameKind::Times => {}
            FrameKind::Sourced => here += rows::SOURCE,
            FrameKind::Rows | FrameKind::Kept => {}
        }
        if matches!(
            header.kind,
            FrameKind::Removed | FrameKind::State | FrameKind::Times
        ) {
            return;
        }
        let is_kept = header.kind == FrameKind::Kept;
        let end = at + HEADER + header.len as usize;
        let body = &file.bytes[..end.min(file.bytes.len())];
        let last = header.first.saturating_add(u64::from(header.count));
        if !is_kept {
            self.follows(header.first, last);
            self.state.next = self.state.next.max(last);
            self.missing.add(header.first, last);
        } else if file.is_log() {
            self.leaves_out(header.first, last);
        }
        let mut kept = 0;
        for number in 0..u64::from(header.count) {
            let mut id = header.first.saturating_add(number);
            if is_kept {
                let Some(bytes) = body.get(here..here + 8) else {
                    break;
                };
                id = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
                here += 8;
            }
            let Some(head) = body.get(here..here + ROW_HEADER) else {
                break;
            };
            let (len, crc) = rows::header(head.try_into().expect("eight bytes"));
            let start = here + ROW_HEADER;
            let Some(row) = body.get(start..start + len as usize) else {
                break;
            };
            if let (true, Ok(offset)) = (rows::is_whole(id, crc, row), u32::try_from(here)) {
                self.found(id, file.index, offset);
                self.missing.remove(id, id + 1);
                kept += 1;
            }
            here = start + len as usize;
        }
        self.checked.rows_out_of_broken_frames += kept;
        if is_kept {
            self.lost += u64::from(header.count) - kept;
        }
    }

    fn conclude(&mut self) {
        for (first, count) in self.missing.ranges() {
            let there: Vec<u64> = self
                .rows
                .range(first..first + count)
                .map(|row| *row.0)
                .collect();
            for id in there {
                self.missing.remove(id, id + 1);
            }
        }
        self.checked.rows = self.rows.len() as u64;
        self.checked.missing = self.missing.ranges();
        let known: u64 = self.checked.missing.iter().map(|range| range.1).sum();
        self.checked.rows_missing = known + self.lost;
    }
}
