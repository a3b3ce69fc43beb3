//! Threads that read stretches of files, and send what of them the other side lacks.

use super::files::{SentFile, SentFiles};
use crate::backup::read::Buffer;
use crate::backup::read::give_way::{self, SessionGivesWay};
use crate::backup::read::pages::Findings;
use crate::backup::read::read_file::Source;
use crate::backup::{BackupRequest, HeldImage};
use crate::clone::list::{
    BLOCK, HAVE, HOLE, Hash, PUT, STRETCH, blocks_of, bytes_of, hash, hash_all, stretches,
};
use crate::clone::pack::{PACK, Step};
use crossbeam_channel::{Receiver, Sender, bounded};
use evenkeel_op::rate::RateLimit;
use evenkeel_op::workers::first_error;
use evenkeel_op::{Cancel, Context, Error, ErrorKind, Result, Run, Unit};
use evenkeel_repository::store::{Store, StoredObject};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Blocks that are read in one go.
const CHUNK: u64 = 16;
/// Stretches that are asked for together, where they are small.
const TOGETHER: usize = 32;
/// More threads would only make the receiver hold more packs.
const THREADS_MAX: usize = 16;
/// Bunches that wait for a thread.
const QUEUE: usize = 2;

/// What all threads came to.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) findings: Findings,
    /// Of each stretch, by file and number.
    pub(super) hashes: BTreeMap<(u32, u64), Hash>,
}

/// A stretch of an open file.
struct Item<'a> {
    number: u32,
    file: &'a SentFile<'a>,
    open: Arc<Source>,
    stretch: u64,
}

/// What all threads share.
struct Shop<'a> {
    image: &'a HeldImage,
    store: &'a dyn Store,
    here: &'a [u8],
    level: Option<i32>,
    rate: RateLimit,
    findings: Findings,
    hashes: Mutex<BTreeMap<(u32, u64), Hash>>,
    packs: AtomicU64,
    /// Set by the first error, so that everybody else stops.
    failed: Cancel,
    run: Run<'a>,
}

/// Reads all files, and sends what of them is not there; `here` says of which something may be.
pub(super) fn work(
    image: &HeldImage,
    files: &SentFiles<'_>,
    here: &[u8],
    store: &dyn Store,
    (request, level): (&BackupRequest, Option<i32>),
    run: Run<'_>,
) -> Result<Done> {
    let _polite = SessionGivesWay::to(image.found().pid);
    let shop = Shop {
        image,
        store,
        here,
        level,
        rate: RateLimit::new(request.rate_bytes_per_s),
        findings: Findings::default(),
        hashes: Mutex::default(),
        packs: AtomicU64::new(0),
        failed: Cancel::new(),
        run,
    };
    run.progress
        .phase("cloning", Some(files.bytes()), Unit::Bytes);
    let (send, receive) = bounded(QUEUE);
    std::thread::scope(|scope| -> Result<()> {
        let workers = (0..request.workers.clamp(1, THREADS_MAX)).map(|_| {
            let (receive, shop) = (receive.clone(), &shop);
            scope.spawn(move || {
                let ended = Worker::new(shop).and_then(|worker| worker.work(&receive));
                if ended.is_err() {
                    shop.failed.cancel(2);
                }
                ended
            })
        });
        let workers: Vec<_> = workers.collect();
        drop(receive);
        let handed_out = hand_out(files, &shop, send);
        if handed_out.is_err() {
            shop.failed.cancel(2);
        }
        let first = first_error(handed_out, workers);
        run.cancel.check()?;
        first
    })?;
    Ok(Done {
        findings: shop.findings,
        hashes: shop
            .hashes
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner),
    })
}

/// Opens file after file and hands out their stretches, small ones in bunches.
fn hand_out<'a>(
    files: &'a SentFiles<'_>,
    shop: &Shop<'_>,
    send: Sender<Vec<Item<'a>>>,
) -> Result<()> {
    let mut bunch = Vec::new();
    let mut blocks = 0;
    let hand = |bunch: &mut Vec<Item<'a>>| {
        let whole = std::mem::take(bunch);
        // Every worker has ended, so one has failed; its error is reported.
        send.send(whole)
            .map_err(|_| Error::new(ErrorKind::Interrupted, "the workers ended"))
    };
    for (number, file) in files.iter() {
        shop.failed.check()?;
        shop.run.cancel.check()?;
        if file.size == 0 {
            continue;
        }
        let open = Arc::new(files.open(file.found)?);
        if open.size() != file.size {
            let path = file.found.path.display();
            return Err(Error::failed(format!("the frozen copy of {path} changed")));
        }
        for stretch in 0..stretches(file.size) {
            let range = blocks_of(stretch, file.size);
            bunch.push(Item {
                number,
                file,
                open: Arc::clone(&open),
                stretch,
            });
            blocks += range.end - range.start;
            if blocks >= STRETCH || bunch.len() == TOGETHER {
                hand(&mut bunch)?;
                blocks = 0;
            }
        }
    }
    match bunch.is_empty() {
        true => Ok(()),
        false => hand(&mut bunch),
    }
}

struct Worker<'a> {
    shop: &'a Shop<'a>,
    compressor: Option<zstd::bulk::Compressor<'static>>,
    compressed: Vec<u8>,
    buffer: Buffer,
    pack: Vec<u8>,
    /// Holes of a file that are not in the pack yet: neighbours are one step.
    holes: Option<(u32, Range<u64>)>,
}

impl<'a> Worker<'a> {
    fn new(shop: &'a Shop<'a>) -> Result<Self> {
        let compressor = shop.level.map(zstd::bulk::Compressor::new).transpose();
        Ok(Self {
            shop,
            compressor: compressor.context(|| "failed to begin compressing")?,
            compressed: vec![0; BLOCK as usize],
            buffer: Buffer::default(),
            pack: Vec::new(),
            holes: None,
        })
    }

    fn work(mut self, bunches: &Receiver<Vec<Item<'_>>>) -> Result<()> {
        give_way::thread();
        while let Ok(bunch) = bunches.recv() {
            let asked = bunch.iter().filter(|item| self.asks(item));
            let names: Vec<String> = asked.map(name).collect();
            let mut there = self.shop.store.open_all(&names).into_iter();
            for item in &bunch {
                let object = self.asks(item).then(|| there.next()).flatten();
                let have = object.map(|object| object.and_then(|object| hashes(item, &*object)));
                let have = have.transpose().context(|| {
                    format!("failed to ask for the hashes of {}", item.file.found.name)
                })?;
                self.stretch(item, have.as_deref())
                    .context(|| format!("failed to clone {}", item.file.found.path.display()))?;
            }
        }
        self.send()
    }

    /// Whether the other side has something of the file.
    fn asks(&self, item: &Item<'_>) -> bool {
        self.shop.here[item.number as usize] != 0
    }

    /// Reads a stretch; sends the blocks whose hashes are others than `have`.
    fn stretch(&mut self, item: &Item<'_>, have: Option<&[Hash]>) -> Result<()> {
        let range = blocks_of(item.stretch, item.file.size);
        let mut hashes = Vec::with_capacity((range.end - range.start) as usize);
        let mut at = range.start;
        while at < range.end {
            self.shop.failed.check()?;
            self.shop.run.cancel.check()?;
            self.shop.image.holds()?;
            let chunk = at..range.end.min(at + CHUNK);
            at = chunk.end;
            let have = have.map(|have| {
                &have[(chunk.start - range.start) as usize..(chunk.end - range.start) as usize]
            });
            self.chunk(item, &chunk, have, &mut hashes)?;
        }
        let bytes = bytes_of(range.start, item.file.size).start
            ..bytes_of(range.end - 1, item.file.size).end;
        item.open.forget(bytes);
        self.end_holes();
        let end = Step::End {
            file: item.number,
            stretch: item.stretch,
            hash: hash_all(&hashes),
        };
        end.write(&mut self.pack);
        let mut all = self
            .shop
            .hashes
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.insert((item.number, item.stretch), hash_all(&hashes));
        drop(all);
        self.send_if_full()
    }

    fn chunk(
        &mut self,
        item: &Item<'_>,
        chunk: &Range<u64>,
        have: Option<&[Hash]>,
        hashes: &mut Vec<Hash>,
    ) -> Result<()> {
        let size = item.file.size;
        let bytes = bytes_of(chunk.start, size).start..bytes_of(chunk.end - 1, size).end;
        let mut buffer = std::mem::take(&mut self.buffer);
        let shape = item.open.shape(&bytes)?;
        let length = (bytes.end - bytes.start) as usize;
        if shape.bytes_read() > 0 {
            item.open.read(&bytes, &shape, buffer.room(length))?;
        }
        let stops = || self.shop.failed.is_cancelled() || self.shop.run.cancel.is_cancelled();
        self.shop.rate.pace(shape.bytes_read(), stops);
        for (index, block) in chunk.clone().enumerate() {
            let place = bytes_of(block, size);
            let parts = parts(shape.within(&place), &place);
            let Some(parts) = parts else {
                hashes.push(HOLE);
                self.hole(item.number, block);
                continue;
            };
            let data = (place.start - bytes.start) as usize..(place.end - bytes.start) as usize;
            let data = &buffer.bytes(length)[data];
            if let Some(check) = &item.file.check {
                let name = &item.file.found.name;
                check.block(name, place.start, data, &self.shop.findings);
            }
            let own = hash(data);
            hashes.push(own);
            if have.is_none_or(|have| have[index] != own) {
                self.block(item.number, block, own, parts, data)?;
            }
        }
        self.buffer = buffer;
        self.shop.run.progress.advance(bytes.end - bytes.start);
        Ok(())
    }

    fn hole(&mut self, file: u32, block: u64) {
        match &mut self.holes {
            Some((_, blocks)) if blocks.end == block => blocks.end += 1,
            _ => {
                // What is between them is equal.
                self.end_holes();
                self.holes = Some((file, block..block + 1));
            }
        }
    }

    /// Packs the holes before anything else is.
    fn end_holes(&mut self) {
        if let Some((file, blocks)) = self.holes.take() {
            Step::Holes { file, blocks }.write(&mut self.pack);
        }
    }

    fn block(
        &mut self,
        file: u32,
        block: u64,
        hash: Hash,
        parts: Vec<Range<u32>>,
        data: &[u8],
    ) -> Result<()> {
        self.end_holes();
        let shorter = match &mut self.compressor {
            // Where that makes it no shorter, there is no room for it.
            Some(compressor) => compressor
                .compress_to_buffer(data, &mut self.compressed[..data.len()])
                .ok(),
            None => None,
        };
        let step = Step::Block {
            file,
            block,
            hash,
            parts,
            zstd: shorter.is_some(),
            bytes: shorter.map_or(data, |length| &self.compressed[..length]),
        };
        step.write(&mut self.pack);
        self.send_if_full()
    }

    fn send_if_full(&mut self) -> Result<()> {
        match self.pack.len() < PACK {
            true => Ok(()),
            false => self.send(),
        }
    }

    /// Sends what was gathered.
    fn send(&mut self) -> Result<()> {
        if self.pack.is_empty() {
            return Ok(());
        }
        let number = self.shop.packs.fetch_add(1, Ordering::Relaxed);
        super::put(self.shop.store, &format!("{PUT}/{number}"), &self.pack)?;
        self.pack.clear();
        fail::fail_point!("clone::sent");
        Ok(())
    }
}

/// Returns what of a block is no hole, nothing if all of it is; none where all of it is one.
fn parts(data: impl Iterator<Item = Range<u64>>, place: &Range<u64>) -> Option<Vec<Range<u32>>> {
    let part =
        |part: Range<u64>| (part.start - place.start) as u32..(part.end - place.start) as u32;
    let parts: Vec<_> = data.map(part).collect();
    let length = (place.end - place.start) as u32;
    match parts.as_slice() {
        [] => None,
        [whole] if *whole == (0..length) => Some(Vec::new()),
        _ => Some(parts),
    }
}

fn name(item: &Item<'_>) -> String {
    format!("{HAVE}/{}-{}", item.number, item.stretch)
}

/// Reads the hashes of a stretch, as the other side has it.
fn hashes(item: &Item<'_>, object: &dyn StoredObject) -> io::Result<Vec<Hash>> {
    let range = blocks_of(item.stretch, item.file.size);
    let length = (range.end - range.start) as usize * size_of::<Hash>();
    if object.size() != length as u64 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length];
    object.read_exact_at(0, &mut bytes)?;
    let (hashes, _) = bytes.as_chunks();
    Ok(hashes.to_vec())
}
