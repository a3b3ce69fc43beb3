//! Reads what may have changed, checks it and stores what did: many threads, one leaf at a time.
//!
//! One thread plans files and announces ranges to the kernel; the workers read, check, hash and
//! compress. At most [`QUEUE`] leaves wait in between, so memory does not depend on the database.

pub(super) mod ahead;
pub(crate) mod give_way;
mod pace;
pub(crate) mod pages;
mod plan;
pub(crate) mod read_file;
pub(super) mod turns;

use super::freeze::Frozen;
use super::request::BackupRequest;
use super::source_file::source;
use ahead::Ahead;
use crossbeam_channel::{Receiver, Sender, bounded};
use evenkeel_op::rate::RateLimit;
use evenkeel_op::workers::first_error;
use evenkeel_op::{Cancel, Context, Error, Result, Run, Unit};
use evenkeel_repository::{Change, FileBuilder, Worker, Writer};
use evenkeel_server::files::{FileClass, FoundFile};
use evenkeel_snapshot::{Changed, Sealed};
use give_way::SessionGivesWay;
use pages::{Findings, PageCheck, SystemSpace};
use plan::LeafPlan;
use read_file::Source;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use turns::Turns;

/// Leaves that are planned and announced ahead of the workers.
const QUEUE: usize = 64;
/// Bytes read in one go.
const CHUNK: u64 = 1 << 20;
/// Block size of files that are not InnoDB's.
const PLAIN_BLOCK: u32 = 16 << 10;

/// What reading came to, besides what is in the repository.
#[derive(Debug, Default)]
pub(super) struct ReadTotals {
    pub(super) bytes_read: AtomicU64,
    pub(super) bytes_changed: AtomicU64,
    pub(super) findings: Findings,
    /// How long reading left the server alone.
    pub(super) rested: Duration,
    /// Changes outside the candidates, when auditing.
    missed: Mutex<Vec<String>>,
}

/// A file being read. The last worker to let go of it finishes it.
struct Open {
    file: FoundFile,
    source: Source,
    builder: Mutex<Option<Arc<FileBuilder>>>,
    check: Option<PageCheck>,
    leaves_left: AtomicU64,
    /// As it is announced; the only block of a small file is shorter.
    block_size: u32,
}

struct Item {
    open: Arc<Open>,
    plan: LeafPlan,
}

/// What all workers share.
struct Shop<'a> {
    totals: &'a ReadTotals,
    rate: RateLimit,
    ahead: Ahead,
    turns: Turns,
    /// Set by the first error, so that everybody else stops.
    failed: Cancel,
    snapshot: &'a Sealed,
    run: Run<'a>,
}

impl Shop<'_> {
    /// Waits as the rate says, unless everybody must stop.
    fn pace(&self, bytes: u64) {
        let stops = || self.failed.is_cancelled() || self.run.cancel.is_cancelled();
        self.rate.pace(bytes, stops);
    }

    /// Tells the kernel what will be read next, when it is reading's turn and there is room.
    fn announce(&self, open: &Open, plan: &LeafPlan) -> Result<()> {
        self.turns.wait(&self.ahead, &self.failed, self.run)?;
        let whole = announced(plan, open.block_size);
        self.ahead.announce(whole, &self.failed, self.run.cancel)?;
        for blocks in &plan.blocks {
            open.source.announce(bytes(blocks, open.block_size));
        }
        Ok(())
    }
}

/// Reads and stores all files of a frozen image.
pub(super) fn read(
    frozen: &Frozen,
    writer: &Writer,
    request: &BackupRequest,
    run: Run<'_>,
) -> Result<ReadTotals> {
    let mut totals = ReadTotals::default();
    let _polite = SessionGivesWay::to(frozen.files.pid);
    let shop = Shop {
        totals: &totals,
        rate: RateLimit::new(request.rate_bytes_per_s),
        ahead: Ahead::default(),
        turns: Turns::begin(request, run),
        failed: Cancel::new(),
        snapshot: &frozen.snapshot,
        run,
    };
    let (send, receive) = bounded::<Item>(QUEUE);
    let outcome = std::thread::scope(|scope| -> Result<()> {
        let mut workers = Vec::new();
        for _ in 0..request.workers.max(1) {
            let worker = writer.worker()?;
            let (receive, shop) = (receive.clone(), &shop);
            workers.push(scope.spawn(move || work(worker, &receive, shop)));
        }
        drop(receive);
        let planned = announce(frozen, writer, request, &shop, send);
        if planned.is_err() {
            shop.failed.cancel(2);
        }
        let first = first_error(planned, workers);
        run.cancel.check()?;
        first
    });
    outcome?;
    let rested = shop.turns.end(run);
    totals.rested = rested;
    let missed = std::mem::take(&mut *totals.missed.lock().unwrap_or_else(|e| e.into_inner()));
    if !missed.is_empty() {
        return Err(Error::failed(format!(
            "the audit found {} changed blocks that the snapshot's change list does not name: {}",
            missed.len(),
            missed
                .iter()
                .take(5)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ")
        ))
        .hint("take a full generation (--full) and report this: the change list must never miss"));
    }
    Ok(totals)
}

/// Plans file after file and hands out leaves.
fn announce(
    frozen: &Frozen,
    writer: &Writer,
    request: &BackupRequest,
    shop: &Shop<'_>,
    send: Sender<Item>,
) -> Result<()> {
    let mut system = SystemSpace::of(&frozen.files);
    // By bytes: a minute goes into one large file, and none into a thousand small ones.
    let total = frozen.files.files.iter().map(|found| found.size).sum();
    shop.run.progress.phase("reading", Some(total), Unit::Bytes);
    for found in &frozen.files.files {
        shop.failed.check()?;
        shop.run.cancel.check()?;
        let wanted = source(found);
        let path = frozen.snapshot.frozen_path(&wanted);
        let opened = Source::open(&path, found)
            .context(|| format!("failed to open the frozen copy of {}", found.path.display()))?;
        let page_size = frozen.files.page_size;
        let innodb = found.class == FileClass::InnodbData;
        let block_size = if innodb { page_size } else { PLAIN_BLOCK };
        let meta = read_file::meta(found, &opened, block_size)?;
        let size = meta.size;
        let base = writer.base_file(&meta.name)?;
        let changed = match &base {
            Some(_) => frozen.snapshot.changed(&wanted)?,
            None => Changed::Unknown,
        };
        let builder = writer.file_builder(meta, base)?;
        // Also of a file without changes: the pages of later files of its tablespace count on.
        let check = if innodb {
            system.check(found, opened.file(), opened.size(), page_size)?
        } else {
            None
        };
        let plans = plan::leaves(&builder, size, block_size, &changed, request.audit);
        // What is known to be as it was is done already.
        let to_read = plans.iter().map(|plan| announced(plan, block_size)).sum();
        shop.run.progress.advance(size.saturating_sub(to_read));
        if plans.is_empty() {
            builder.finish()?;
            continue;
        }
        let open = Arc::new(Open {
            file: found.clone(),
            source: opened,
            builder: Mutex::new(Some(Arc::new(builder))),
            check,
            leaves_left: AtomicU64::new(plans.len() as u64),
            block_size,
        });
        for plan in plans {
            shop.announce(&open, &plan)?;
            if send
                .send(Item {
                    open: Arc::clone(&open),
                    plan,
                })
                .is_err()
            {
                // Every worker has ended, so one has failed; its error is reported.
                return Err(Error::new(
                    evenkeel_op::ErrorKind::Interrupted,
                    "the workers ended",
                ));
            }
        }
    }
    Ok(())
}

fn bytes(blocks: &Range<u64>, block_size: u32) -> Range<u64> {
    blocks.start * u64::from(block_size)..blocks.end * u64::from(block_size)
}

/// How many bytes of a leaf are announced.
fn announced(plan: &LeafPlan, block_size: u32) -> u64 {
    plan.blocks
        .iter()
        .map(|blocks| blocks.end - blocks.start)
        .sum::<u64>()
        * u64::from(block_size)
}

fn work(mut worker: Worker, items: &Receiver<Item>, shop: &Shop<'_>) -> Result<()> {
    give_way::thread();
    let mut buffer = Vec::with_capacity(CHUNK as usize);
    while let Ok(item) = items.recv() {
        let done = shop
            .failed
            .check()
            .and_then(|()| shop.run.cancel.check())
            .and_then(|()| shop.snapshot.holds())
            .and_then(|()| {
                let Item { open, plan } = item;
                leaf(&mut worker, &open, &plan, &mut buffer, shop)
                    .context(|| format!("failed to back up {}", open.file.path.display()))?;
                finish_if_last(&open)
            });
        if let Err(error) = done {
            shop.failed.cancel(2);
            return Err(error);
        }
    }
    worker.finish()
}

/// Reads and stores the blocks of one leaf.
fn leaf(
    worker: &mut Worker,
    open: &Open,
    plan: &LeafPlan,
    buffer: &mut Vec<u8>,
    shop: &Shop<'_>,
) -> Result<()> {
    let builder = open
        .builder
        .lock()
        .unwrap_or_else(|e| e.into_inner())
        .clone();
    let builder = builder.ok_or_else(|| Error::failed("a file was finished too early"))?;
    let mut leaf = builder.leaf(plan.leaf)?;
    let block_size = leaf.byte_range(leaf.blocks().start);
    let block_size = (block_size.end - block_size.start).max(1);
    for run in &plan.blocks {
        let per_chunk = (CHUNK / block_size).max(1);
        let mut at = run.start;
        while at < run.end {
            let part = at..run.end.min(at + per_chunk);
            at = part.end;
            let range = leaf.byte_range(part.start).start..leaf.byte_range(part.end - 1).end;
            let shape = open.source.read(range.clone(), buffer)?;
            shop.ahead
                .read((part.end - part.start) * u64::from(open.block_size));
            shop.run.progress.advance(range.end - range.start);
            shop.pace(shape.bytes_read());
            shop.totals
                .bytes_read
                .fetch_add(shape.bytes_read(), Ordering::Relaxed);
            for block in part {
                let whole = leaf.byte_range(block);
                let front = (whole.start - range.start) as usize;
                let data = front..front + (whole.end - whole.start) as usize;
                let mut allocated = shape.allocated(&whole);
                if open.source.is_device() && buffer[data.clone()].iter().all(|byte| *byte == 0) {
                    // The nearest that a device has to a hole: restored as one.
                    allocated = 0;
                }
                // The buffer is empty where the whole chunk is a hole.
                // Zeros that became a hole, or the reverse, are no other content.
                let mut maybe_same = leaf.base_is_zero(block);
                let change = if allocated == 0 {
                    leaf.hole(worker, block)?
                } else {
                    let data = &buffer[data];
                    // The same goes for zeros at the end of a block. Pages never end in zeros.
                    maybe_same = data.iter().rev().take(512).all(|byte| *byte == 0);
                    check(open, whole.start, data, shop);
                    match allocated < data.len() as u64 {
                        true => {
                            leaf.put_with_tail_hole(worker, block, &data[..allocated as usize])?
                        }
                        false => leaf.put(worker, block, data)?,
                    }
                };
                if change == Change::Changed {
                    note_change(open, plan, block, allocated, maybe_same, shop);
                }
            }
        }
        open.source.forget(bytes(run, block_size as u32));
    }
    builder.set_leaf(leaf)
}

fn check(open: &Open, offset: u64, data: &[u8], shop: &Shop<'_>) {
    if let Some(check) = &open.check {
        check.block(&open.file.name, offset, data, &shop.totals.findings);
    }
}

fn note_change(
    open: &Open,
    plan: &LeafPlan,
    block: u64,
    bytes: u64,
    maybe_same: bool,
    shop: &Shop<'_>,
) {
    shop.totals
        .bytes_changed
        .fetch_add(bytes, Ordering::Relaxed);
    if let Some(candidates) = &plan.candidates
        && !maybe_same
        && !candidates.iter().any(|range| range.contains(&block))
    {
        let mut missed = shop.totals.missed.lock().unwrap_or_else(|e| e.into_inner());
        missed.push(format!("{} block {block}", open.file.name));
    }
}

fn finish_if_last(open: &Open) -> Result<()> {
    if open.leaves_left.fetch_sub(1, Ordering::AcqRel) > 1 {
        return Ok(());
    }
    let builder = open
        .builder
        .lock()
        .unwrap_or_else(|e| e.into_inner())
        .take();
    let builder = builder
        .and_then(Arc::into_inner)
        .ok_or_else(|| Error::failed("a file was finished twice"))?;
    builder.finish()?;
    Ok(())
}
