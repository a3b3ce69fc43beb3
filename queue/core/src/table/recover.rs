//! From files to a table: all that was acknowledged is there, what a crash tore is cut off, and what
//! broke otherwise is refused or, on demand, left out and told.

use super::checkpoint::{self, Checkpoint};
use super::file::DataFile;
use super::index::{Index, Rows};
use super::tail::Tail;
use crate::error::{During, Error, Result};
use crate::io::Io;
use crate::log::Name;
use crate::log::frame::{FrameKind, HEADER, Header, Origin};
use crate::log::rows::{self, SLOTS, TableState};
use crate::log::segment::{self, Broken, START};
use crate::log::times;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// What opening a table found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Bytes behind the last good frame that a crash left, and were cut off.
    pub torn_bytes: u64,
    /// What was left out; only with salvage.
    pub damage: Vec<Error>,
    /// Files that were no part of the table any more.
    pub swept: usize,
}

/// Reads a table's files.
pub(super) struct Recovery<'a> {
    pub(super) io: &'a Arc<dyn Io>,
    pub(super) dir: &'a Path,
    pub(super) table: u128,
    /// Leave out what is broken.
    pub(super) salvages: bool,
    index: Index,
    state: TableState,
    /// Whether the newest segment may say when rows came.
    tells_times: bool,
    report: Report,
}

impl<'a> Recovery<'a> {
    pub(super) fn new(io: &'a Arc<dyn Io>, dir: &'a Path, table: u128, salvages: bool) -> Self {
        Self {
            io,
            dir,
            table,
            salvages,
            index: Index::default(),
            state: TableState::new(),
            tells_times: false,
            report: Report::default(),
        }
    }

    pub(super) fn run(mut self) -> Result<(Index, Tail, u32, Report)> {
        let names = self.io.list(self.dir).during("list", self.dir)?;
        let read = Checkpoint::read(&**self.io, self.dir, self.table);
        let checkpoint = match read {
            Err(error) if self.salvages => {
                self.report.damage.push(error);
                self.guess(&names)
            }
            other => other?,
        };
        let mut bytes = Vec::new();
        for (name, len) in &checkpoint.parts {
            self.part(*name, *len, &mut bytes)?;
        }
        let mut numbers: Vec<u64> = names
            .iter()
            .filter_map(|name| segment_number(name))
            .collect();
        numbers.retain(|number| *number >= checkpoint.first_segment);
        numbers.sort_unstable();
        self.check_numbers(checkpoint.first_segment, &numbers)?;
        let mut last = None;
        for (at, number) in numbers.iter().enumerate() {
            let is_last = at + 1 == numbers.len();
            match self.segment(*number, last.as_ref(), is_last, &mut bytes)? {
                Some(this) => {
                    last = Some(this);
                    self.tells_times = segment::tells_times(&bytes);
                }
                None => self.sweep(Name::Segment(*number).file())?,
            }
        }
        let path = self.dir.join(checkpoint::FILE);
        let last = last.ok_or_else(|| Error::corrupt(&path, 0, "no segment is left"));
        let tail = self.tail(last?)?;
        for name in names {
            let keep = match Name::parse(&name) {
                Some(Name::Segment(number)) => number >= checkpoint.first_segment,
                Some(part) => checkpoint.parts.iter().any(|(kept, _)| *kept == part),
                None => name != checkpoint::NEW,
            };
            if !keep {
                self.sweep(name)?;
            }
        }
        checkpoint::prepare(&**self.io, self.dir);
        Ok((self.index, tail, checkpoint.generation, self.report))
    }

    /// What a lost checkpoint may have said: all parts of the newest generation, and all segments.
    fn guess(&self, names: &[String]) -> Checkpoint {
        let mut parts: Vec<Name> = names.iter().filter_map(|name| Name::parse(name)).collect();
        parts.sort_unstable();
        let generation = parts.iter().filter_map(|name| match name {
            Name::Part { generation, .. } => Some(*generation),
            Name::Segment(_) => None,
        });
        let newest = generation.max().unwrap_or(0);
        let is_newest =
            |name: &Name| matches!(name, Name::Part { generation, .. } if *generation == newest);
        let size = |name: &Name| {
            DataFile::open(&**self.io, self.dir, *name)
                .ok()?
                .io
                .len()
                .ok()
        };
        Checkpoint {
            table: self.table,
            generation: newest,
            first_segment: names
                .iter()
                .filter_map(|name| segment_number(name))
                .min()
                .unwrap_or(0),
            parts: parts
                .iter()
                .filter(|name| is_newest(name))
                .filter_map(|name| Some((*name, size(name)?)))
                .collect(),
        }
    }

    fn check_numbers(&mut self, first: u64, numbers: &[u64]) -> Result<()> {
        let mut expected = first;
        for number in numbers
            .iter()
            .copied()
            .chain(numbers.is_empty().then_some(first + 1))
        {
            if number != expected {
                let path = self.dir.join(Name::Segment(expected).file());
                self.damaged(Error::corrupt(&path, 0, "the file is missing"))?;
            }
            expected = number + 1;
        }
        Ok(())
    }

    /// Refuses, or goes on and remembers.
    fn damaged(&mut self, error: Error) -> Result<()> {
        if !self.salvages {
            return Err(error);
        }
        self.report.damage.push(error);
        Ok(())
    }

    fn sweep(&mut self, name: String) -> Result<()> {
        let path = self.dir.join(name);
        self.io.unlink(&path).during("remove", &path)?;
        self.report.swept += 1;
        Ok(())
    }

    fn part(&mut self, name: Name, len: u64, bytes: &mut Vec<u8>) -> Result<()> {
        let file = DataFile::open(&**self.io, self.dir, name);
        let file = match file.and_then(|file| file.read_all(bytes).map(|()| file)) {
            Ok(file) => Arc::new(file),
            Err(error) => return self.damaged(error),
        };
        if bytes.len() as u64 != len {
            let what = format!("it is {} bytes long and was {len}", bytes.len());
            self.damaged(Error::corrupt(&file.path, len, what))?;
        }
        if let Err(what) = segment::check(bytes, self.table, name) {
            self.damaged(Error::corrupt(&file.path, 0, what))?;
        }
        file.seal(bytes.len() as u64);
        self.index
            .push_file(Rows::new(file.clone(), self.state.next));
        let mut from = START;
        while let (_, Some(broken)) = self.walk(bytes, &file, name, from) {
            self.damaged(Error::corrupt(&file.path, broken.at as u64, broken.what))?;
            self.index.say(&[(self.state.next, 0)]);
            from = broken.next.unwrap_or(bytes.len());
        }
        Ok(())
    }

    /// Reads one segment; none if it was never used.
    fn segment(
        &mut self,
        number: u64,
        before: Option<&(Arc<DataFile>, u64)>,
        is_last: bool,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<(Arc<DataFile>, u64)>> {
        let name = Name::Segment(number);
        let file = Arc::new(DataFile::open(&**self.io, self.dir, name)?);
        file.read_all(bytes)?;
        let mut from = START;
        match segment::check(bytes, self.table, name) {
            Ok(previous) => self.check_end(before, previous)?,
            // It got its name, and the crash came before anything was written to it for good.
            Err(_) if is_last && before.is_some() && !self.was_used(bytes, name) => {
                return Ok(None);
            }
            Err(what) => self.damaged(Error::corrupt(&file.path, 0, what))?,
        }
        let files = self.index.files.len();
        loop {
            let (end, broken) = self.walk(bytes, &file, name, from);
            let Some(broken) = broken else {
                file.seal(if is_last { 0 } else { end as u64 });
                self.start_if_empty(files, &file);
                return Ok(Some((file, end as u64)));
            };
            if is_last && !broken.was_durable && (!self.salvages || broken.next.is_none()) {
                if end == START && before.is_some() && self.index.files.len() == files {
                    return Ok(None);
                }
                self.report.torn_bytes = (bytes.len() - end) as u64;
                if self.index.files.len() == files {
                    let what = "the state of the table is lost";
                    self.damaged(Error::corrupt(&file.path, end as u64, what))?;
                    self.start_if_empty(files, &file);
                }
                file.io.set_len(end as u64).during("cut", &file.path)?;
                return Ok(Some((file, end as u64)));
            }
            self.damaged(Error::corrupt(&file.path, broken.at as u64, broken.what))?;
            self.start_if_empty(files, &file);
            // It may have been said in what is broken when the next rows came.
            self.index.say(&[(self.state.next, 0)]);
            from = broken.next.unwrap_or(bytes.len());
        }
    }

    fn start_if_empty(&mut self, files: usize, file: &Arc<DataFile>) {
        if self.index.files.len() == files {
            self.index
                .push_file(Rows::new(file.clone(), self.state.next));
        }
    }

    /// Whether a frame says that something of this file had been durable.
    fn was_used(&self, bytes: &[u8], name: Name) -> bool {
        let origin = Origin::new(self.table, name.id());
        let (_, broken) = segment::walk(bytes, origin, (0, false), |_, _, _| Ok(()));
        broken.is_some_and(|broken| broken.was_durable)
    }

    fn check_end(&mut self, before: Option<&(Arc<DataFile>, u64)>, end: u64) -> Result<()> {
        match before {
            Some((file, real)) if *real != end => {
                let what = format!("the file ends here and had {end} bytes");
                self.damaged(Error::corrupt(&file.path, *real, what))
            }
            _ => Ok(()),
        }
    }

    fn walk(
        &mut self,
        bytes: &[u8],
        file: &Arc<DataFile>,
        name: Name,
        from: usize,
    ) -> (usize, Option<Broken>) {
        let origin = Origin::new(self.table, name.id());
        let is_filled = matches!(name, Name::Segment(_));
        segment::walk(bytes, origin, (from, is_filled), |at, header, body| {
            self.apply(file, header, body, (at + HEADER) as u64)
        })
    }

    /// What a frame did when it was written, it does again.
    fn apply(
        &mut self,
        file: &Arc<DataFile>,
        header: &Header,
        body: &[u8],
        at: u64,
    ) -> std::result::Result<(), &'static str> {
        let is_started = self
            .index
            .files
            .back()
            .is_some_and(|rows| Arc::ptr_eq(&rows.file, file));
        if !is_started && header.kind != FrameKind::State && !self.salvages {
            return Err("the file does not start with the state of the table");
        }
        match header.kind {
            FrameKind::State => {
                let state = TableState::read(body)?;
                if state.next < self.state.next {
                    return Err("row ids go back");
                }
                self.state = state;
                if !is_started {
                    self.index
                        .push_file(Rows::new(file.clone(), self.state.next));
                }
                Ok(())
            }
            FrameKind::Removed => {
                let numbers: Vec<u64> = rows::numbers(body).collect();
                for range in numbers.chunks_exact(2) {
                    self.remove(range[0], range[1]);
                }
                Ok(())
            }
            FrameKind::Times => {
                let pairs = times::read(body, header.count)?;
                if !is_started {
                    self.index
                        .push_file(Rows::new(file.clone(), self.state.next));
                }
                self.index.say(&pairs);
                Ok(())
            }
            FrameKind::Rows | FrameKind::Sourced | FrameKind::Kept => {
                if !is_started {
                    self.index
                        .push_file(Rows::new(file.clone(), self.state.next));
                }
                self.rows(header, body, at)
            }
        }
    }

    fn rows(
        &mut self,
        header: &Header,
        body: &[u8],
        at: u64,
    ) -> std::result::Result<(), &'static str> {
        let is_kept = header.kind == FrameKind::Kept;
        let continues = header.first == self.state.next
            || (is_kept || self.salvages) && header.first > self.state.next;
        if !continues {
            return Err("row ids have a gap");
        }
        let mut before = 0;
        if header.kind == FrameKind::Sourced {
            before = rows::SOURCE;
            let mut source = rows::numbers(body.get(..before).ok_or("a source is missing")?);
            let slot = source.next().unwrap_or(u64::MAX) as usize;
            let last = self.state.sources.get_mut(slot).filter(|_| slot < SLOTS);
            *last.ok_or("there is no such source")? = source.next().unwrap_or(0);
        }
        let ids = (header.first, header.count);
        let (index, state) = (&mut self.index, &mut self.state);
        rows::places(
            &body[before..],
            at + before as u64,
            ids,
            is_kept,
            |id, offset| {
                index.push(id, offset, true);
                state.next = id + 1;
            },
        )
    }

    fn remove(&mut self, first: u64, count: u64) {
        let end = first.saturating_add(count);
        let mut from = first;
        while let Some(id) = self.index.next_live(from).filter(|id| *id < end) {
            self.index.kill(id);
            from = id + 1;
        }
    }

    /// All that was read is made durable, so that what is done next stands on it.
    fn tail(&self, (file, end): (Arc<DataFile>, u64)) -> Result<Tail> {
        // One that was never used may have followed it.
        file.seal(0);
        file.grew_to(end);
        if file.io.len().during("measure", &file.path)? > end {
            // Space that was filled beforehand.
            file.io.set_len(end).during("cut", &file.path)?;
        }
        file.io.sync().during("sync", &file.path)?;
        self.io.sync_dir(self.dir).during("sync", self.dir)?;
        let Name::Segment(number) = file.name else {
            return Err(Error::corrupt(
                &file.path,
                0,
                "the newest file is not a segment",
            ));
        };
        Ok(Tail {
            io: self.io.clone(),
            dir: self.dir.to_path_buf(),
            table: self.table,
            file,
            number,
            end,
            durable: end,
            reserved: end,
            filled: end,
            tells_times: self.tells_times,
            state: self.state.clone(),
            synced_at: Instant::now(),
            poisoned: None,
        })
    }
}

fn segment_number(name: &str) -> Option<u64> {
    match Name::parse(name) {
        Some(Name::Segment(number)) => Some(number),
        _ => None,
    }
}
