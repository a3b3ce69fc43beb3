//! Brings a stream into the repository: one thread reads the pipe and cuts files into leaves, the
//! workers check, compare and compress.
//!
//! In memory are the leaves that wait ([`QUEUE`]), those that are worked on, and one unfinished leaf
//! of each file that is open: the tool has as many open as it has threads.

use super::super::read::ReadTotals;
use super::super::read::ahead::Ahead;
use super::super::read::give_way::{self, SessionGivesWay};
use super::super::read::pages::PageCheck;
use super::super::read::turns::Turns;
use super::super::request::BackupRequest;
use super::super::survey::Survey;
use super::files::{self, Known};
use super::notes;
use super::xbstream::{self, Sink};
use crate::engine::{Output, Reported};
use crossbeam_channel::{Receiver, Sender, bounded};
use evenkeel_op::rate::RateLimit;
use evenkeel_op::workers::first_error;
use evenkeel_op::{Cancel, Context, Error, ErrorKind, Result, Run};
use evenkeel_repository::{Change, GrowingBuilder, Worker, Writer};
use evenkeel_server::files::generation_name;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Leaves that wait for a worker.
const QUEUE: usize = 8;
/// Bytes of unfinished leaves, of all files together. What a tool really has open is far less.
const PARTIAL_MAX: u64 = 512 << 20;
/// Unit in which filesystems allocate; what of a page-compressed page is not needed is a hole.
const ALLOCATED: usize = 4096;
/// Types of pages that are compressed in place, with a hole behind: all of MariaDB's have this bit
/// (34354, 37401 when encrypted, and with full_crc32 the length in the others),
const WITH_HOLE_MARIADB: u16 = 1 << 15;
/// and MySQL's are these, the second of them encrypted.
const WITH_HOLE_MYSQL: [u16; 2] = [14, 16];

/// What a stream came to, besides what is in the repository.
pub(super) struct Streamed {
    pub(super) totals: ReadTotals,
    /// The tool's notes, by path.
    pub(super) notes: BTreeMap<String, Vec<u8>>,
    /// Names of the directories that its files are in.
    pub(super) dirs: BTreeSet<String>,
    /// Names of the files.
    pub(super) names: BTreeSet<String>,
}

/// A file that comes. The last to let go of it finishes it.
struct Open {
    name: String,
    builder: Mutex<Option<Arc<GrowingBuilder>>>,
    check: Option<PageCheck>,
    block_size: usize,
    /// Leaves not done, and one for the reading thread.
    left: AtomicU64,
    size: AtomicU64,
}

struct Item {
    open: Arc<Open>,
    index: u64,
    bytes: Vec<u8>,
}

/// Stores a whole stream.
pub(super) fn store(
    pipe: Output<'_>,
    noted: &Reported,
    survey: &Survey,
    writer: &Writer,
    request: &BackupRequest,
    run: Run<'_>,
) -> Result<Streamed> {
    let _polite = SessionGivesWay::to(survey.files.pid);
    let mut totals = ReadTotals::default();
    let failed = Cancel::new();
    let (send, items) = bounded::<Item>(QUEUE);
    let (give_back, spare) = bounded::<Vec<u8>>(QUEUE + request.workers.max(1));
    let (read, streamed) = std::thread::scope(|scope| -> Result<_> {
        let mut workers = Vec::new();
        for _ in 0..request.workers.max(1) {
            let worker = writer.worker()?;
            let (items, give_back) = (items.clone(), give_back.clone());
            let (totals, failed) = (&totals, &failed);
            workers.push(scope.spawn(move || work(worker, &items, &give_back, totals, failed)));
        }
        drop(items);
        let mut feeder = Feeder {
            known: Known::of(&survey.files)?,
            writer,
            noted,
            run,
            failed: &failed,
            totals: &totals,
            pace: Some((
                RateLimit::new(request.rate_bytes_per_s),
                Turns::begin(request, run),
            )),
            ahead: Ahead::new(0),
            send,
            spare,
            open: HashMap::new(),
            partial: 0,
            notes: BTreeMap::new(),
            dirs: BTreeSet::new(),
            names: BTreeSet::new(),
            rested: std::time::Duration::ZERO,
        };
        let first = xbstream::read(pipe, super::maker(survey), &mut feeder).map(|_| ());
        feeder.hurry();
        if first.is_err() {
            failed.cancel(2);
        }
        let streamed = (feeder.notes, feeder.dirs, feeder.names, feeder.rested);
        drop(feeder.open);
        drop(feeder.send);
        let first = first_error(first, workers);
        run.cancel.check()?;
        Ok((first, streamed))
    })?;
    read?;
    let (notes, dirs, names, rested) = streamed;
    totals.rested = rested;
    Ok(Streamed {
        totals,
        notes,
        dirs,
        names,
    })
}

/// Cuts files into leaves, in the thread that reads the pipe.
struct Feeder<'a> {
    known: Known<'a>,
    writer: &'a Writer,
    noted: &'a Reported,
    run: Run<'a>,
    failed: &'a Cancel,
    totals: &'a ReadTotals,
    /// How slowly to read, until the tool has locks that others notice.
    pace: Option<(RateLimit, Turns)>,
    ahead: Ahead,
    send: Sender<Item>,
    spare: Receiver<Vec<u8>>,
    open: HashMap<String, Coming>,
    /// Bytes of unfinished leaves.
    partial: u64,
    notes: BTreeMap<String, Vec<u8>>,
    dirs: BTreeSet<String>,
    names: BTreeSet<String>,
    rested: std::time::Duration,
}

/// A file with more data to come.
struct Coming {
    /// `None` until its first leaf is there, which says how its pages are checked.
    open: Option<Arc<Open>>,
    name: String,
    builder: Arc<GrowingBuilder>,
    block_size: usize,
    leaf: u64,
    leaf_bytes: usize,
    bytes: Vec<u8>,
    /// The first leaf of what may be changed there until it ends.
    held: Option<Vec<u8>>,
}

impl Feeder<'_> {
    /// Does not wait any more from now on.
    fn hurry(&mut self) {
        if let Some((_, turns)) = self.pace.take() {
            self.rested = turns.end(self.run);
        }
    }

    fn begin(&mut self, path: &str) -> Result<()> {
        let name = generation_name(files::ROOT, Path::new(path));
        for (at, _) in name.match_indices('/') {
            self.dirs.insert(name[..at].to_owned());
        }
        self.names.insert(name.clone());
        let meta = self.known.meta(&name);
        let block_size = meta.block_size as usize;
        let base = self.writer.base_file(&name)?;
        let builder = Arc::new(self.writer.growing_builder(meta, base)?);
        let coming = Coming {
            open: None,
            leaf: 0,
            leaf_bytes: builder.leaf_bytes() as usize,
            builder,
            block_size,
            bytes: Vec::new(),
            held: None,
            name,
        };
        self.open.insert(path.to_owned(), coming);
        Ok(())
    }

    /// Takes bytes of a file: `None` is so many of a hole.
    fn take(&mut self, path: &str, bytes: Option<&[u8]>, mut left: usize) -> Result<()> {
        if !self.open.contains_key(path) {
            self.begin(path)?;
        }
        let mut bytes = bytes;
        while left > 0 {
            let Some(coming) = self.open.get_mut(path) else {
                return Err(Error::failed(format!("'{path}' was lost")));
            };
            if coming.bytes.capacity() == 0 {
                coming.bytes = self.spare.try_recv().unwrap_or_default();
            }
            let part = left.min(coming.leaf_bytes - coming.bytes.len());
            match bytes {
                Some(all) => {
                    coming.bytes.extend_from_slice(&all[..part]);
                    bytes = Some(&all[part..]);
                }
                None => coming.bytes.resize(coming.bytes.len() + part, 0),
            }
            left -= part;
            self.partial += part as u64;
            if coming.bytes.len() == coming.leaf_bytes {
                self.ship(path)?;
            }
        }
        match self.partial > PARTIAL_MAX {
            true => Err(Error::failed("the stream has too many files open at once")),
            false => Ok(()),
        }
    }

    /// Gives the gathered leaf of a file to the workers, or holds it back.
    fn ship(&mut self, path: &str) -> Result<()> {
        let Some(coming) = self.open.get_mut(path) else {
            return Ok(());
        };
        let bytes = std::mem::take(&mut coming.bytes);
        let index = coming.leaf;
        coming.leaf += 1;
        if index == 0 && files::is_aria_log(&coming.name) {
            coming.held = Some(bytes);
            return Ok(());
        }
        self.give(path, index, bytes)
    }

    fn give(&mut self, path: &str, index: u64, bytes: Vec<u8>) -> Result<()> {
        let Some(coming) = self.open.get_mut(path) else {
            return Ok(());
        };
        self.partial -= bytes.len() as u64;
        let open = coming.open.get_or_insert_with(|| {
            let first = &bytes[..bytes.len().min(coming.block_size)];
            Arc::new(Open {
                check: self.known.check(&coming.name, first),
                name: coming.name.clone(),
                builder: Mutex::new(Some(coming.builder.clone())),
                block_size: coming.block_size,
                left: AtomicU64::new(1),
                size: AtomicU64::new(0),
            })
        });
        fail::fail_point!("backup::engine::leaf");
        open.left.fetch_add(1, Ordering::AcqRel);
        let item = Item {
            open: open.clone(),
            index,
            bytes,
        };
        // Every worker has ended, so one has failed; its error is reported.
        self.send
            .send(item)
            .map_err(|_| Error::new(ErrorKind::Interrupted, "the workers ended"))
    }
}

impl Sink for Feeder<'_> {
    fn data(&mut self, path: &str, bytes: &[u8]) -> Result<()> {
        if notes::is_note(path) {
            let note = self.notes.entry(path.to_owned()).or_default();
            note.extend_from_slice(bytes);
            if note.len() > notes::NOTE_MAX {
                return Err(Error::failed(format!("{path} is too long")));
            }
        }
        let length = bytes.len() as u64;
        self.totals.bytes_read.fetch_add(length, Ordering::Relaxed);
        self.run.progress.advance(length);
        self.take(path, Some(bytes), bytes.len())
    }

    fn hole(&mut self, path: &str, bytes: u64) -> Result<()> {
        let bytes = usize::try_from(bytes).map_err(|_| Error::failed("a hole is too long"))?;
        self.take(path, None, bytes)
    }

    fn change(&mut self, path: &str, offset: u64, bytes: &[u8]) -> Result<()> {
        let length = bytes.len() as u64;
        self.totals.bytes_read.fetch_add(length, Ordering::Relaxed);
        let first = self
            .open
            .get_mut(path)
            .and_then(|coming| match coming.leaf {
                0 => Some(&mut coming.bytes),
                _ => coming.held.as_mut(),
            });
        let begin = usize::try_from(offset).unwrap_or(usize::MAX);
        let place = first
            .and_then(|first| first.get_mut(begin..)?.get_mut(..bytes.len()))
            .ok_or_else(|| {
                Error::failed(format!(
                    "'{path}' changes at byte {offset}, which is stored already"
                ))
            })?;
        place.copy_from_slice(bytes);
        Ok(())
    }

    fn end(&mut self, path: &str, size: u64) -> Result<()> {
        if !self.open.contains_key(path) {
            self.begin(path)?;
        }
        if self
            .open
            .get(path)
            .is_some_and(|coming| !coming.bytes.is_empty())
        {
            self.ship(path)?;
        }
        let held = self
            .open
            .get_mut(path)
            .and_then(|coming| coming.held.take());
        if let Some(first) = held {
            self.give(path, 0, first)?;
        }
        let Some(coming) = self.open.remove(path) else {
            return Ok(());
        };
        let Coming { open, builder, .. } = coming;
        match open {
            Some(open) => {
                drop(builder);
                open.size.store(size, Ordering::Release);
                finish_if_last(&open)
            }
            None => finish(builder, size),
        }
    }

    fn turn(&mut self) -> Result<()> {
        self.failed.check()?;
        self.run.cancel.check()?;
        // What waits for the tool's locks would wait for us.
        if self.pace.is_some() && self.noted.hurry() {
            fail::fail_point!("backup::engine::locks");
            self.hurry();
        }
        if let Some((rate, turns)) = &self.pace {
            turns.wait(&self.ahead, self.failed, self.run)?;
            rate.pace(xbstream::PIECE as u64, || {
                self.failed.is_cancelled() || self.run.cancel.is_cancelled()
            });
        }
        Ok(())
    }
}

fn work(
    mut worker: Worker,
    items: &Receiver<Item>,
    give_back: &Sender<Vec<u8>>,
    totals: &ReadTotals,
    failed: &Cancel,
) -> Result<()> {
    give_way::thread();
    while let Ok(Item {
        open,
        index,
        mut bytes,
    }) = items.recv()
    {
        let done = failed
            .check()
            .and_then(|()| leaf(&mut worker, &open, index, &bytes, totals))
            .context(|| format!("failed to back up {}", open.name))
            .and_then(|()| finish_if_last(&open));
        if let Err(error) = done {
            failed.cancel(2);
            return Err(error);
        }
        bytes.clear();
        // One too many is let go of.
        let _ = give_back.try_send(bytes);
    }
    worker.finish()
}

/// Checks, compares and stores the blocks of one leaf.
fn leaf(
    worker: &mut Worker,
    open: &Open,
    index: u64,
    bytes: &[u8],
    totals: &ReadTotals,
) -> Result<()> {
    let builder = open
        .builder
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
        .ok_or_else(|| Error::failed("a file was finished too early"))?;
    let mut leaf = builder.leaf(index, bytes.len() as u64)?;
    let blocks = leaf.blocks();
    for (block, data) in blocks.zip(bytes.chunks(open.block_size)) {
        let mut kept = data.len();
        if let Some(check) = &open.check {
            let offset = leaf.byte_range(block).start;
            check.block(&open.name, offset, data, &totals.findings);
            kept = without_hole(data);
            // A page that was never written is none of the space that such a file takes.
            if check.has_holes() && data.iter().all(|byte| *byte == 0) {
                kept = 0;
            }
        }
        let change = match kept {
            0 => leaf.hole(worker, block)?,
            _ if kept < data.len() => leaf.put_with_tail_hole(worker, block, &data[..kept])?,
            _ => leaf.put(worker, block, data)?,
        };
        if change == Change::Changed {
            totals
                .bytes_changed
                .fetch_add(kept as u64, Ordering::Relaxed);
        }
    }
    builder.set_leaf(leaf)
}

/// Returns how much of a page is allocated where the server keeps it: the tool sends what lies behind
/// a page that was compressed in place as zeros.
fn without_hole(page: &[u8]) -> usize {
    let kind = match page.get(24..26) {
        Some(kind) => u16::from_be_bytes([kind[0], kind[1]]),
        None => return page.len(),
    };
    if kind & WITH_HOLE_MARIADB == 0 && !WITH_HOLE_MYSQL.contains(&kind) {
        return page.len();
    }
    let used = page
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    used.next_multiple_of(ALLOCATED).min(page.len())
}

fn finish_if_last(open: &Open) -> Result<()> {
    if open.left.fetch_sub(1, Ordering::AcqRel) > 1 {
        return Ok(());
    }
    let builder = open
        .builder
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take()
        .ok_or_else(|| Error::failed("a file was finished twice"))?;
    finish(builder, open.size.load(Ordering::Acquire))
}

fn finish(builder: Arc<GrowingBuilder>, size: u64) -> Result<()> {
    Arc::into_inner(builder)
        .ok_or_else(|| Error::failed("a file was finished while it was written"))?
        .finish(size)
        .map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_follows_a_compressed_page_is_a_hole() {
        let page = |kind: u16, used: usize| {
            let mut page = vec![0; 16384];
            page[..used].fill(7);
            page[24..26].copy_from_slice(&kind.to_be_bytes());
            page
        };
        assert_eq!(without_hole(&page(17855, 100)), 16384, "an index page");
        assert_eq!(without_hole(&page(34354, 100)), 4096);
        assert_eq!(without_hole(&page(34354, 4097)), 8192);
        assert_eq!(without_hole(&page(0x8000 | 33, 100)), 4096, "full_crc32");
        assert_eq!(without_hole(&page(14, 16384)), 16384);
        assert_eq!(without_hole(&[7; 10]), 10);
    }
}
