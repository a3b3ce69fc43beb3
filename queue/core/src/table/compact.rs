//! Compaction: the oldest files, when most of their rows are dead, become fewer. Each slice copies a
//! little; in between everybody reads, writes and consumes as ever. Files whose rows are all dead
//! are only removed.

use super::Queue;
use super::checkpoint::Checkpoint;
use super::compaction::Running;
use super::file::DataFile;
use super::index::{Index, Rows};
use super::live::Live;
use crate::error::{During, Error, Result};
use crate::log::Name;
use crate::log::frame::Origin;
use crate::log::kept;
use crate::log::rows;
use crate::log::segment::{self, START};
use crate::log::times;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of one part, roughly.
const PART: u64 = 64 << 20;

/// The longest rest after a slice.
const REST: Duration = Duration::from_millis(20);

/// Rows that are looked up at once.
const ROWS: usize = 4096;

impl Queue {
    /// Does all that compaction has to do. With `forced` it is done however few rows are dead.
    ///
    /// # Errors
    ///
    /// As with [`compact_slice`](Self::compact_slice).
    pub fn compact(&self, forced: bool) -> Result<()> {
        if forced {
            let mut tail = self.tail();
            self.writable(&tail)?;
            self.rotate(&mut tail)?;
        }
        loop {
            let begun = Instant::now();
            if !self.slice(forced)? {
                return Ok(());
            }
            rest(begun);
        }
    }

    /// Does a bounded piece of it, and says whether there is more to do. It is called from time to
    /// time by whoever has a thread for it.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written. Nothing has changed then; it starts over next time. On a full
    /// disk files whose rows are all dead have been removed all the same.
    pub fn compact_slice(&self) -> Result<bool> {
        self.slice(false)
    }

    fn slice(&self, forced: bool) -> Result<bool> {
        let mut compaction = self.compaction();
        if self.is_gone() {
            return Err(Error::Dropped);
        }
        if compaction.running.is_none() {
            compaction.running = self.begin(forced, compaction.is_cramped);
            compaction.generation += u32::from(compaction.running.is_some());
        }
        let generation = compaction.generation;
        let Some(running) = compaction.running.as_mut() else {
            let was_cramped = std::mem::take(&mut compaction.is_cramped);
            return if was_cramped {
                Err(Error::Full)
            } else {
                Ok(false)
            };
        };
        let copied = self.copy(running, generation);
        match copied {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(error) => {
                let parts = compaction.running.take().map(|running| running.parts);
                self.live().building = Index::default();
                let io = &*self.io;
                for (file, _) in parts.into_iter().flatten() {
                    let _ = io.unlink(&file.path);
                }
                // Where nothing can be copied, files of dead rows can still be removed.
                compaction.is_cramped = error == Error::Full && !compaction.is_cramped;
                return if compaction.is_cramped {
                    Ok(true)
                } else {
                    Err(error)
                };
            }
        }
        let running = compaction.running.take();
        let done = running.map_or(Ok(()), |running| self.switch(running, generation));
        compaction.is_cramped = false;
        self.live().building = Index::default();
        // What is left may be worth another round, unless this one was on demand.
        done.map(|()| !forced)
    }

    /// Decides which files are worth it: as many of the oldest as are dead enough together.
    fn begin(&self, forced: bool, only_dead: bool) -> Option<Running> {
        let options = self.options();
        let live = self.live();
        let sealed = live.index.files.len().saturating_sub(1);
        let (mut bytes, mut dead, mut files) = (0, 0, 0);
        for (at, rows) in live.index.files.range(..sealed).enumerate() {
            let len = rows.file.sealed_len().unwrap_or(0);
            bytes += len;
            dead += match rows.len() {
                0 => len,
                all => len * (all - rows.live()) as u64 / all as u64,
            };
            let worth = bytes >= options.compact_from
                && dead * 100 >= bytes * u64::from(options.compact_dead);
            if worth && !only_dead || dead == bytes {
                files = at + 1;
            }
        }
        if forced && !only_dead {
            files = sealed;
        }
        (files > 0).then(|| Running {
            files,
            next: 0,
            last: live.index.last_of(files),
            parts: Vec::new(),
        })
    }

    /// Copies a slice. False when nothing is left to copy.
    fn copy(&self, running: &mut Running, generation: u32) -> Result<bool> {
        let places = places(&self.live(), running);
        let Some(last) = places.last() else {
            return Ok(false);
        };
        let mut next = last.id + 1;
        let slice_bytes = self.options().slice_bytes;
        let mut body = Vec::new();
        let mut copied = Vec::new();
        for place in &places {
            if body.len() as u64 >= slice_bytes {
                next = place.id;
                break;
            }
            let row = place.file.row(place.id, place.offset, &self.map_budget)?;
            rows::put_numbers(&mut body, &[place.id]);
            copied.push((place, body.len()));
            rows::put(&mut body, place.id, &row);
        }
        let at = self.part(running, generation)?;
        let mut said = self.live().building.said();
        let each = copied.iter().map(|(place, _)| (place.id, place.came));
        let times = times::changes(&mut said, each);
        let first = (places[0].id, copied.len() as u32);
        let (file, end) = &mut running.parts[at];
        let place = (Origin::new(self.id, file.name.id()), *end);
        let (out, rows_at) = kept::encode(place, &times, (first, &body));
        file.io.write_at(&out, *end).during("write", &file.path)?;
        file.io.sync().during("sync", &file.path)?;
        *end += out.len() as u64;
        running.next = next;
        let mut live = self.live();
        live.building.say(&times);
        for (MovedRow { id, .. }, at) in copied {
            let is_live = live.index.is_live(*id);
            live.building
                .push(*id, (rows_at as usize + at) as u32, is_live);
        }
        Ok(true)
    }

    /// The part to write to.
    fn part(&self, running: &mut Running, generation: u32) -> Result<usize> {
        if let Some((_, end)) = running.parts.last()
            && *end < PART
        {
            return Ok(running.parts.len() - 1);
        }
        let index = running.parts.len() as u32;
        let name = Name::Part { generation, index };
        let (io, dir) = (&*self.io, &self.dir);
        // One that an attempt left which failed.
        let _ = io.unlink(&dir.join(name.file()));
        let file = Arc::new(DataFile::create(io, dir, name)?);
        running.parts.push((file.clone(), START as u64));
        let header = segment::header(self.id, name, 0);
        file.io.write_at(&header, 0).during("write", &file.path)?;
        let mut live = self.live();
        if let Some(last) = live.building.files.back_mut() {
            last.seal();
        }
        live.building.push_file(Rows::new(file, running.next));
        Ok(running.parts.len() - 1)
    }

    /// Puts what was copied in the place of what it was copied from, on disk and then in memory.
    fn switch(&self, running: Running, generation: u32) -> Result<()> {
        let (io, dir) = (&*self.io, &self.dir);
        io.sync_dir(dir).during("sync", dir)?;
        let mut parts = Vec::new();
        for (file, end) in &running.parts {
            file.seal(*end);
            parts.push((file.name, *end));
        }
        let mut first_segment = None;
        for rows in self.live().index.files.range(running.files..) {
            match rows.file.name {
                part @ Name::Part { .. } => parts.push((part, rows.file.sealed_len().unwrap_or(0))),
                Name::Segment(number) => first_segment = first_segment.or(Some(number)),
            }
        }
        let checkpoint = Checkpoint {
            table: self.id,
            generation,
            first_segment: first_segment.expect("the newest file is a segment"),
            parts,
        };
        // If this fails either one may be on disk. Both are whole: nothing is removed yet.
        checkpoint.write(io, dir)?;
        let mut live = self.live();
        let built = std::mem::take(&mut live.building);
        let old = live.index.replace(running.files, built.files.into());
        drop(live);
        for rows in old {
            if self.is_gone() {
                // They go with the table, and whoever drops it waits.
                break;
            }
            let begun = Instant::now();
            self.release_map(rows.file.mapped_bytes());
            // Left over, it is swept when the table is opened.
            let _ = io.unlink(&rows.file.path);
            drop(rows);
            rest(begun);
        }
        Ok(())
    }
}

/// Rests as long as the work took, so that at most half of what the disk can do goes into it: those who
/// append wait for the same disk.
fn rest(begun: Instant) {
    std::thread::sleep(begun.elapsed().min(REST));
}

/// Where a row is, and when it came.
struct MovedRow {
    id: u64,
    file: Arc<DataFile>,
    offset: u32,
    came: u64,
}

/// Where the next rows are.
fn places(live: &Live, running: &Running) -> Vec<MovedRow> {
    let mut places = Vec::new();
    let mut from = running.next;
    while places.len() < ROWS {
        let Some(id) = live.index.next_live(from).filter(|id| *id <= running.last) else {
            break;
        };
        if let Some((file, offset)) = live.index.find(id) {
            let came = live.index.came(id);
            places.push(MovedRow {
                id,
                file,
                offset,
                came,
            });
        }
        from = id + 1;
    }
    places
}
