//! One thread's own packs: blocks are gathered into frames, compressed and written here, without
//! waiting for anyone.

use super::effort::Effort;
use super::shared::Shared;
use crate::catalog::pack_hash;
use crate::crypt::{self, Key, Sealer};
use crate::fault::store_failed;
use crate::format::frame::{self, FRAME_RAW_MAX, FRAME_SLOTS_MAX, FRAMES_MAX, TableEntry};
use crate::format::header::{HEADER_LENGTH, Header, ObjectId};
use crate::manifest::ObjectInfo;
use crate::map::BlockAddress;
use crate::mutex::held;
use crate::store::{Existing, FrameEncoder, NewObject, RawFrame, Store};
use evenkeel_op::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Stores the blocks that one thread gives. Finish it when the thread has nothing left to do.
pub struct Worker {
    shared: Arc<Shared>,
    pack: Option<PackWriter>,
    /// Blocks of the frame being filled, one after another, and their lengths.
    raw: Vec<u8>,
    lengths: Vec<u32>,
    encoder: FrameEncoder,
    effort: Effort,
    pub(crate) counts: Counts,
    finished: bool,
}

/// What this worker has done.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) blocks_given: u64,
    pub(crate) bytes_given: u64,
    pub(crate) blocks_changed: u64,
    pub(crate) bytes_changed: u64,
}

/// Writes one pack, frame after frame.
pub(crate) struct PackWriter {
    id: ObjectId,
    header: Header,
    seed: u32,
    sealer: Option<Sealer>,
    object: Box<dyn NewObject>,
    offset: u64,
    table: Vec<TableEntry>,
}

impl PackWriter {
    /// Begins a pack, sealed with what is derived from `data`.
    pub(crate) fn create(store: &dyn Store, id: ObjectId, data: Option<&Key>) -> Result<Self> {
        let (header, sealer) = crypt::begin(id, data)?;
        let create = || {
            let mut object = store.create(&id.name(), Existing::Refuse)?;
            object.write(&header.encode())?;
            Ok(object)
        };
        let object = create().map_err(|error| store_failed("write", &id.name(), error))?;
        Ok(Self {
            id,
            header,
            seed: header.seed(),
            sealer,
            object,
            offset: HEADER_LENGTH as u64,
            table: Vec::new(),
        })
    }

    /// Returns the number of the next frame.
    pub(crate) fn next_frame(&self) -> u32 {
        self.table.len() as u32
    }

    pub(crate) fn push(
        &mut self,
        encoder: &mut FrameEncoder,
        lengths: &[u32],
        raw: &[u8],
    ) -> Result<()> {
        let frame = RawFrame {
            level: encoder.level(),
            seed: self.seed,
            number: self.next_frame(),
            lengths,
            raw,
        };
        let failed = |error| store_failed("write", &self.id.name(), error);
        // Whoever keeps the object has no key: what is sealed is compressed and sealed here.
        let elsewhere = match self.sealer {
            None => self.object.write_frame(&frame).map_err(failed)?,
            Some(_) => None,
        };
        let made = match elsewhere {
            Some(made) => made,
            None => {
                let encoded = encoder.encode_sealed(&frame, self.sealer.as_ref());
                let (bytes, made) = encoded.context(|| "failed to compress a frame")?;
                self.object.write(bytes).map_err(failed)?;
                made
            }
        };
        let mut entry = made.entry(&frame);
        entry.offset = self.offset;
        self.offset += u64::from(made.length);
        self.table.push(entry);
        Ok(())
    }

    /// Keeps a frame's number without its content.
    pub(crate) fn push_dropped(&mut self, slots: u32) {
        self.table.push(TableEntry {
            offset: 0,
            length: 0,
            raw_length: 0,
            slots,
            crc: 0,
        });
    }

    /// Makes the pack durable and returns what the manifest says of it.
    pub(crate) fn finish(mut self) -> Result<ObjectInfo> {
        let tail = frame::encode_tail(self.seed, self.offset, &self.table);
        let name = self.id.name();
        let size = self.offset + tail.len() as u64;
        self.object
            .write(&tail)
            .and_then(|()| self.object.finish())
            .map_err(|error| store_failed("write", &name, error))?;
        Ok(ObjectInfo {
            name: self.id.file_name(),
            size,
            hash: pack_hash(&self.header, &tail),
        })
    }
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>) -> Result<Self> {
        let effort = Effort::new(shared.compression);
        let encoder = FrameEncoder::new(shared.compression.usual_level())?;
        shared.opened();
        Ok(Self {
            shared,
            pack: None,
            raw: Vec::with_capacity(FRAME_RAW_MAX),
            lengths: Vec::new(),
            encoder,
            effort,
            counts: Counts::default(),
            finished: false,
        })
    }

    /// Stores a block's bytes and returns where they will lie.
    pub(crate) fn store(&mut self, bytes: &[u8]) -> Result<BlockAddress> {
        let full =
            self.raw.len() + bytes.len() > FRAME_RAW_MAX || self.lengths.len() == FRAME_SLOTS_MAX;
        if full && !self.lengths.is_empty() {
            self.flush()?;
        }
        let pack = match &mut self.pack {
            Some(pack) => pack,
            none => {
                let id = self.shared.pack_id(self.shared.next_pack());
                let created = PackWriter::create(&*self.shared.store, id, self.shared.data_key());
                none.insert(self.shared.watch(created)?)
            }
        };
        let place = BlockAddress {
            generation: self.shared.generation,
            pack: pack.id.number,
            frame: pack.next_frame(),
            slot: self.lengths.len() as u16,
        };
        self.raw.extend_from_slice(bytes);
        self.lengths.push(bytes.len() as u32);
        Ok(place)
    }

    fn flush(&mut self) -> Result<()> {
        let Some(pack) = &mut self.pack else {
            return Ok(());
        };
        if !self.lengths.is_empty() {
            self.encoder.compress_at(self.effort.level())?;
            let pushed = pack.push(&mut self.encoder, &self.lengths, &self.raw);
            self.shared.watch(pushed)?;
            self.raw.clear();
            self.lengths.clear();
        }
        if pack.offset >= self.shared.pack_bytes_max || pack.next_frame() >= FRAMES_MAX {
            self.close_pack()?;
        }
        Ok(())
    }

    fn close_pack(&mut self) -> Result<()> {
        if let Some(pack) = self.pack.take() {
            let info = self.shared.watch(pack.finish())?;
            held(&self.shared.packs).push(info);
        }
        Ok(())
    }

    /// Writes what is still held and makes it durable. A worker dropped without this spoils the
    /// run.
    pub fn finish(mut self) -> Result<()> {
        self.flush()?;
        self.close_pack()?;
        let totals = &self.shared.totals;
        let add = |total: &std::sync::atomic::AtomicU64, by| {
            total.fetch_add(by, Ordering::Relaxed);
        };
        add(&totals.blocks_given, self.counts.blocks_given);
        add(&totals.bytes_given, self.counts.bytes_given);
        add(&totals.blocks_changed, self.counts.blocks_changed);
        add(&totals.bytes_changed, self.counts.bytes_changed);
        self.finished = true;
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let unfinished = (!self.finished).then(|| "a worker".to_owned());
        self.shared.closed(unfinished);
    }
}
