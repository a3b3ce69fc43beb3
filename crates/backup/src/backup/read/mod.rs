//! Reads what may have changed, checks it and stores what did: many threads, one leaf at a time.
//!
//! One thread plans files and orders pieces of them, in the order in which they are stored; the readers wait
//! for the device; the workers check, hash and compress. What is ordered and not yet stored is bounded, so
//! memory does not depend on the database.

pub(super) mod ahead;
mod buffers;
pub(crate) mod give_way;
mod leaf;
mod pace;
pub(crate) mod pages;
mod pieces;
mod plan;
pub(crate) mod read_file;
mod readers;
pub(super) mod turns;

pub(crate) use buffers::Buffer;

use super::freeze::Frozen;
use super::request::BackupRequest;
use super::source_file::source;
use ahead::Ahead;
use buffers::Buffers;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use evenkeel_op::rate::RateLimit;
use evenkeel_op::workers::first_error;
use evenkeel_op::{Cancel, Context, Error, ErrorKind, Result, Run, Unit};
use evenkeel_repository::{FileBuilder, Worker, Writer};
use evenkeel_server::files::{FileClass, FoundFile};
use evenkeel_snapshot::{Changed, Sealed};
use give_way::SessionGivesWay;
use pages::{Findings, PageCheck, SystemSpace};
use pieces::Filled;
use plan::LeafPlan;
use read_file::Source;
use readers::{Order, READERS};
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use turns::Turns;

/// Leaves that are planned ahead of the workers.
const QUEUE: usize = 64;
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
    /// The last block of a file may be shorter.
    block_size: u32,
}

/// A leaf whose pieces are being read.
struct Item {
    open: Arc<Open>,
    leaf: u64,
    /// In the order of their blocks.
    pieces: Vec<Receiver<Result<Filled>>>,
    candidates: Option<Vec<Range<u64>>>,
}

/// Where the planning thread sends what it planned.
struct Sending {
    items: Sender<Item>,
    orders: Sender<Order>,
}

/// What all workers share.
struct Shop<'a> {
    totals: &'a ReadTotals,
    rate: RateLimit,
    ahead: Ahead,
    /// What readers wait for.
    device: Ahead,
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

    /// Has a leaf read and stored, when it is reading's turn and there is room.
    fn order(&self, open: &Arc<Open>, plan: LeafPlan, sending: &Sending) -> Result<()> {
        let pieces = pieces::cut(&plan.blocks, open.block_size);
        let pieces = pieces.into_iter().map(|piece| readers::order(open, piece));
        let (orders, pieces): (Vec<_>, Vec<_>) = pieces.unzip();
        let item = Item {
            open: Arc::clone(open),
            leaf: plan.leaf,
            pieces,
            candidates: plan.candidates,
        };
        // Every worker has ended, so one has failed; its error is reported.
        let ended = || Error::new(ErrorKind::Interrupted, "the workers ended");
        // First: there may be room for the last pieces only when the first ones are stored.
        sending.items.send(item).map_err(|_| ended())?;
        for order in orders {
            self.turns.wait(&self.ahead, &self.failed, self.run)?;
            self.ahead
                .order(order.length(), &self.failed, self.run.cancel)?;
            sending.orders.send(order).map_err(|_| ended())?;
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
        ahead: Ahead::of(
            request.workers,
            frozen.files.page_size,
            request.rate_bytes_per_s,
        ),
        device: Ahead::new(readers::IN_DEVICE),
        turns: Turns::begin(request, run),
        failed: Cancel::new(),
        snapshot: &frozen.snapshot,
        run,
    };
    let buffers = Buffers::default();
    let (items, receive) = bounded::<Item>(QUEUE);
    let (orders, ordered) = unbounded::<Order>();
    let outcome = std::thread::scope(|scope| -> Result<()> {
        let (buffers, shop) = (&buffers, &shop);
        let mut workers = Vec::new();
        for _ in 0..request.workers.max(1) {
            let worker = writer.worker()?;
            let receive = receive.clone();
            workers.push(scope.spawn(move || work(worker, &receive, buffers, shop)));
        }
        drop(receive);
        for _ in 0..READERS {
            let ordered = ordered.clone();
            workers.push(scope.spawn(move || readers::read(&ordered, buffers, shop)));
        }
        drop(ordered);
        let planned = plan_all(frozen, writer, request, shop, Sending { items, orders });
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
fn plan_all(
    frozen: &Frozen,
    writer: &Writer,
    request: &BackupRequest,
    shop: &Shop<'_>,
    sending: Sending,
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
        let to_read = plans.iter();
        let to_read = to_read
            .map(|plan| pieces::length(&plan.blocks, block_size))
            .sum();
        shop.run.progress.advance(size.saturating_sub(to_read));
        if plans.is_empty() {
            builder.finish()?;
            continue;
        }
        let open = Arc::new(Open {
            file: found.clone(),
            source: opened.past_the_cache(),
            builder: Mutex::new(Some(Arc::new(builder))),
            check,
            leaves_left: AtomicU64::new(plans.len() as u64),
            block_size,
        });
        for plan in plans {
            shop.order(&open, plan, &sending)?;
        }
    }
    Ok(())
}

/// Everybody waits for everybody else, so who panics has to say so.
struct Panics<'a>(&'a Cancel);

impl Drop for Panics<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.cancel(2);
        }
    }
}

fn work(
    mut worker: Worker,
    items: &Receiver<Item>,
    buffers: &Buffers,
    shop: &Shop<'_>,
) -> Result<()> {
    give_way::thread();
    let _panics = Panics(&shop.failed);
    while let Ok(item) = items.recv() {
        let done = shop
            .failed
            .check()
            .and_then(|()| shop.run.cancel.check())
            .and_then(|()| shop.snapshot.holds())
            .and_then(|()| {
                leaf::store(&mut worker, &item, buffers, shop)
                    .context(|| format!("failed to back up {}", item.open.file.path.display()))?;
                leaf::finish_if_last(&item.open)
            });
        if let Err(error) = done {
            shop.failed.cancel(2);
            return Err(error);
        }
    }
    worker.finish()
}
