//! What a leader does: writes a group, makes it durable, then lets it be seen.

use super::Queue;
use super::live::Live;
use super::request::{Answer, Copied, Request, Source};
use super::tail::Tail;
use crate::error::{Error, Result};
use crate::log::frame::{self, FrameKind};
use crate::log::rows::{self, STATE, TableState};
use crate::log::times;

/// Bytes that go into one write, roughly.
const WRITE: usize = 4 << 20;

/// Bytes of rows that one group has, unless one statement has more.
const GROUP: u64 = 64 << 20;

/// What was decided about a request.
#[derive(Debug, Clone)]
enum Fate {
    /// Its rows get these ids; `at` is where in the file they start. Before them it is said when they came.
    Rows {
        first: u64,
        at: u64,
        times: Vec<(u64, u64)>,
    },
    Done,
    Failed(Error),
}

/// What a group does: decided before it is written, applied after.
struct Plan {
    fates: Vec<Fate>,
    state: TableState,
    removed: Vec<(u64, u64)>,
    /// Bytes of frames.
    bytes: u64,
    has_rows: bool,
    /// The time of rows that come now, and of the last that anything is said of.
    now: u64,
    said: u64,
}

impl Queue {
    /// Answers requests in their order.
    pub(super) fn lead(&self, mut requests: Vec<Request>) -> Vec<Answer> {
        self.counters.groups.add(1);
        self.counters.requests.add(requests.len() as u64);
        let mut tail = self.tail();
        let mut answers = Vec::with_capacity(requests.len());
        while !requests.is_empty() {
            let mut bytes = 0;
            let fit = requests.iter().take_while(|request| {
                bytes += request.bytes();
                bytes <= GROUP
            });
            let count = fit.count().max(1);
            let rest = requests.split_off(count);
            answers.extend(self.write(&mut tail, requests));
            requests = rest;
        }
        answers
    }

    fn write(&self, tail: &mut Tail, requests: Vec<Request>) -> Vec<Answer> {
        let refused = self.rotate_if_full(tail, &requests);
        if let Err(error) = self.writable(tail) {
            return vec![Err(error); requests.len()];
        }
        // While all is removed nobody takes a row.
        let truncates = requests.iter().any(|one| matches!(one, Request::Truncate));
        let mut held = truncates.then(|| self.live());
        let plan = match self.persist(tail, &requests, refused, held.as_deref()) {
            Ok(plan) => plan,
            Err(error) => return vec![Err(error); requests.len()],
        };
        let mut live = held.take().unwrap_or_else(|| self.live());
        tail.state = plan.state;
        for range in plan.removed {
            live.remove(range);
        }
        let says_closed = requests
            .iter()
            .any(|one| matches!(one, Request::Close(true)));
        let closed = if says_closed {
            self.say_closed(tail)
        } else {
            Ok(())
        };
        let applied = requests.into_iter().zip(plan.fates);
        applied
            .map(|(request, fate)| match (request, fate) {
                (Request::Append { rows, .. }, Fate::Rows { first, at, times }) => {
                    live.index.say(&times);
                    live.append(&rows, first, at);
                    Ok(Some(first))
                }
                (Request::Adopt { rows, .. }, Fate::Rows { first, at, times }) => {
                    live.index.say(&times);
                    live.adopt(&rows, at);
                    Ok(Some(first))
                }
                (_, Fate::Failed(error)) => Err(error),
                (Request::Close(true), _) => closed.clone().map(|()| None),
                _ => Ok(None),
            })
            .collect()
    }

    /// Why nothing can be written any more, if so.
    pub(super) fn writable(&self, tail: &Tail) -> Result<()> {
        match &tail.poisoned {
            Some(_) if self.is_gone() => Err(Error::Dropped),
            Some(why) => Err(Error::Poisoned(why.clone())),
            None => Ok(()),
        }
    }

    /// Starts another segment when this one is long enough, or of a version in which nobody can say when rows came.
    /// Without rows an earlier version's stays one: who goes back to that version can. What comes back is why rows
    /// cannot be taken; removals still go behind.
    fn rotate_if_full(&self, tail: &mut Tail, requests: &[Request]) -> Option<Error> {
        let says_all = tail.tells_times || !requests.iter().any(Request::brings_rows);
        let has_room = tail.end < self.options().segment_bytes && says_all;
        if has_room || tail.poisoned.is_some() {
            return None;
        }
        self.rotate(tail).err()
    }

    /// Starts another segment.
    pub(super) fn rotate(&self, tail: &mut Tail) -> Result<()> {
        tail.rotate()?;
        self.counters.syncs.add(2);
        self.live().start_file(tail.file.clone(), tail.state.next);
        Ok(())
    }

    /// Decides, writes, and makes durable what has to be.
    fn persist(
        &self,
        tail: &mut Tail,
        requests: &[Request],
        mut refused: Option<Error>,
        held: Option<&Live>,
    ) -> Result<Plan> {
        let (rows, said) = match held {
            Some(live) => live.index.rows_and_said(),
            None => self.live().index.rows_and_said(),
        };
        let times = (self.io.unix_s(), said);
        loop {
            let mut plan = Plan::new((&tail.state, times), requests, refused.as_ref(), held);
            let reserved = tail.reserve(plan.bytes, rows as u64, &self.options());
            let done = match reserved {
                // Removals may use what was kept for them, and free what is missing.
                Err(error) if plan.has_rows => Err(error),
                Ok(()) if self.options().fills() => {
                    let filled = tail.fill(plan.bytes);
                    // Without it all goes on as well, unless nobody knows what is on disk.
                    match filled.err().filter(|_| tail.poisoned.is_some()) {
                        Some(error) => Err(error),
                        None => self.put(tail, &mut plan, requests),
                    }
                }
                _ => self.put(tail, &mut plan, requests),
            };
            match done {
                Ok(()) => return Ok(plan),
                Err(error) if plan.has_rows && tail.poisoned.is_none() => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
    }

    fn put(&self, tail: &mut Tail, plan: &mut Plan, requests: &[Request]) -> Result<()> {
        let mut at = tail.end;
        let mut out = Vec::new();
        for (request, fate) in requests.iter().zip(&mut plan.fates) {
            if let Fate::Rows { times, .. } = fate {
                tail.say(&mut out, at, times);
            }
            if let (
                Request::Append { rows, source, .. },
                Fate::Rows {
                    first, at: place, ..
                },
            ) = (request, &mut *fate)
            {
                let kind = if source.is_some() {
                    FrameKind::Sourced
                } else {
                    FrameKind::Rows
                };
                let before = if source.is_some() { rows::SOURCE } else { 0 };
                *place = at + (out.len() + frame::HEADER + before) as u64;
                tail.frame(&mut out, at, (kind, *first, rows.len() as u32), |out| {
                    if let Some(source) = source {
                        rows::put_numbers(out, &[u64::from(source.slot), source.id]);
                    }
                    for (id, row) in (*first..).zip(rows) {
                        rows::put(out, id, row);
                    }
                });
            }
            request.put_copied(fate, &plan.state, tail, (&mut out, at));
            if out.len() > WRITE {
                tail.write(&out, at)?;
                at += out.len() as u64;
                out.clear();
            }
        }
        if !plan.removed.is_empty() {
            let count = plan.removed.len() as u32;
            tail.frame(&mut out, at, (FrameKind::Removed, 0, count), |out| {
                rows::put_ranges(out, &plan.removed);
            });
        }
        let has_removed = !plan.removed.is_empty();
        if !out.is_empty() {
            tail.write(&out, at)?;
            at += out.len() as u64;
        }
        tail.advance(at);
        let since = tail.synced_at.elapsed();
        let options = self.options();
        let closes = requests.iter().any(|one| matches!(one, Request::Close(_)));
        if closes
            || plan.has_rows && options.rows.is_due(since)
            || has_removed && options.removals.is_due(since)
        {
            tail.sync()?;
            self.counters.syncs.add(1);
        }
        Ok(())
    }

    /// Says behind everything that everything is durable: what is broken from now on was not torn.
    fn say_closed(&self, tail: &mut Tail) -> Result<()> {
        let mut out = Vec::new();
        let state = tail.state.clone();
        tail.frame(&mut out, tail.end, (FrameKind::State, 0, 0), |out| {
            state.put(out)
        });
        tail.write(&out, tail.end)?;
        tail.advance(tail.end + out.len() as u64);
        tail.cut()?;
        self.counters.syncs.add(1);
        tail.sync()
    }
}

impl Request {
    fn brings_rows(&self) -> bool {
        matches!(self, Self::Append { .. } | Self::Adopt { .. })
    }

    /// Writes the frame of what is copied from another table behind `out`, which starts at `from` in the
    /// file.
    fn put_copied(
        &self,
        fate: &mut Fate,
        state: &TableState,
        tail: &Tail,
        (out, from): (&mut Vec<u8>, u64),
    ) {
        match (self, fate) {
            (Self::Adopt { rows, .. }, Fate::Rows { first, at, .. }) => {
                *at = from + (out.len() + frame::HEADER) as u64;
                tail.frame(
                    out,
                    from,
                    (FrameKind::Kept, *first, rows.len() as u32),
                    |out| {
                        for row in rows {
                            rows::put_numbers(out, &[row.id]);
                            rows::put(out, row.id, &row.bytes);
                        }
                    },
                );
            }
            (Self::Inherit(_), _) => {
                tail.frame(out, from, (FrameKind::State, 0, 0), |out| state.put(out));
            }
            _ => {}
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Append { bytes, .. } | Self::Adopt { bytes, .. } => frame::size(*bytes),
            Self::Remove(ids) => ids.len() as u64 * 16,
            Self::Inherit(_) => frame::size(STATE as u64),
            _ => 0,
        }
    }
}

impl Plan {
    /// Decides. `now` is the time of rows that come, `said` that of those before them in the file. With `refused`
    /// rows are not taken, for that reason.
    fn new(
        (state, (now, said)): (&TableState, (u64, u64)),
        requests: &[Request],
        refused: Option<&Error>,
        live: Option<&Live>,
    ) -> Self {
        let mut plan = Self {
            fates: Vec::with_capacity(requests.len()),
            state: state.clone(),
            removed: Vec::new(),
            bytes: 0,
            has_rows: false,
            now,
            said,
        };
        let mut ids = Vec::new();
        for request in requests {
            let fate = match request {
                Request::Append { rows, source, .. } => plan.append(rows, *source, refused),
                Request::Remove(some) => {
                    ids.extend(some);
                    Fate::Done
                }
                Request::Adopt { rows, .. } => plan.adopt(rows, refused),
                Request::Inherit(state) => {
                    plan.state = (**state).clone();
                    plan.bytes += request.bytes();
                    Fate::Done
                }
                Request::Truncate | Request::Close(_) => Fate::Done,
            };
            if let Fate::Rows { times, .. } = &fate {
                plan.bytes += request.bytes();
                if !times.is_empty() {
                    plan.bytes += frame::size((times.len() * times::PAIR) as u64);
                }
                plan.has_rows = true;
            }
            plan.fates.push(fate);
        }
        plan.removed = rows::ranges(&mut ids);
        plan.removed
            .extend(live.and_then(|live| live.all(state.next)));
        if !plan.removed.is_empty() {
            plan.bytes += frame::size(plan.removed.len() as u64 * 16);
        }
        plan
    }

    fn append(
        &mut self,
        rows: &[Vec<u8>],
        source: Option<Source>,
        refused: Option<&Error>,
    ) -> Fate {
        let last = source.map(|source| self.state.sources[usize::from(source.slot)]);
        if source.is_some_and(|source| !source.is_reset && Some(source.id) <= last) {
            return Fate::Done;
        }
        if let Some(error) = refused {
            return Fate::Failed(error.clone());
        }
        if let Some(source) = source {
            self.state.sources[usize::from(source.slot)] = source.id;
        }
        let first = self.state.next;
        self.state.next += rows.len() as u64;
        let times = times::changes(&mut self.said, [(first, self.now)]);
        Fate::Rows {
            first,
            at: 0,
            times,
        }
    }

    fn adopt(&mut self, rows: &[Copied], refused: Option<&Error>) -> Fate {
        let ends = rows.first().zip(rows.last());
        let Some((first, last)) = ends.map(|(first, last)| (first.id, last.id)) else {
            return Fate::Done;
        };
        if let Some(error) = refused {
            return Fate::Failed(error.clone());
        }
        if first < self.state.next {
            return Fate::Failed(Error::OutOfOrder(first));
        }
        self.state.next = last + 1;
        let each = rows.iter().map(|row| (row.id, row.came));
        let times = times::changes(&mut self.said, each);
        Fate::Rows {
            first,
            at: 0,
            times,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Io;
    use crate::io::simulated::{Fault, Simulated};
    use crate::table::Options;
    use std::path::Path;
    use std::sync::Arc;

    fn append(len: usize) -> Request {
        Request::Append {
            rows: vec![vec![7; len]],
            bytes: len as u64,
            source: None,
        }
    }

    fn open(disk: &Simulated) -> Queue {
        let io: Arc<dyn Io> = Arc::new(disk.clone());
        let opened = Queue::open(&io, Path::new("/q"), 5, Options::default(), false);
        opened.unwrap().0
    }

    #[test]
    fn of_a_group_that_failed_in_the_middle_nothing_is_left() {
        let disk = Simulated::new();
        Queue::create(&disk, Path::new("/q"), 5).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        let table = open(&disk);
        table.append(vec![vec![1; 10]], None).unwrap();
        disk.fail_after(0, Fault::Half, false);
        // The first of them is whole in the half that is written.
        let answers = table.lead(vec![append(10), append(1000)]);
        assert!(answers.iter().all(Result::is_err), "{answers:?}");
        drop(table);
        assert_eq!(open(&disk).stats().rows, 1);
        let cut = disk.power_cut_now(&mut fastrand::Rng::with_seed(1));
        assert_eq!(open(&cut).stats().rows, 1);
    }

    #[test]
    fn a_failed_sync_ends_writing_and_nothing_else() {
        let disk = Simulated::new();
        Queue::create(&disk, Path::new("/q"), 5).unwrap();
        let table = open(&disk);
        table.append(vec![vec![1; 10]], None).unwrap();
        disk.fail_after(1, Fault::Refused, false);
        let failed = table.append(vec![vec![2; 10]], None);
        assert!(matches!(failed, Err(Error::Poisoned(_))), "{failed:?}");
        let later = table.append(vec![vec![3; 10]], None);
        assert!(matches!(later, Err(Error::Poisoned(_))), "{later:?}");
        assert_eq!(table.read(1).unwrap().unwrap(), vec![1; 10]);
        assert_eq!(table.stats().rows, 1);
    }

    #[test]
    fn requests_that_came_together_are_written_and_synced_once() {
        let disk = Simulated::new();
        Queue::create(&disk, Path::new("/q"), 5).unwrap();
        let table = open(&disk);
        // Space is filled with the first.
        table.append(vec![vec![7; 10]], None).unwrap();
        let before = disk.calls();
        let answers = table.lead((0..50).map(append).collect());
        let firsts: Vec<u64> = answers
            .into_iter()
            .map(|answer| answer.unwrap().unwrap())
            .collect();
        assert_eq!(firsts, (2..=51).collect::<Vec<u64>>());
        assert_eq!(disk.calls() - before, 2);
    }
}
