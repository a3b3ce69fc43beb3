//! Decompressed frames, shared by all threads of a restore, within a limit of memory.

use crate::catalog::Catalog;
use crate::format::frame::Frame;
use crate::lru::Lru;
use crate::mutex::held;
use evenkeel_op::{Context, Result};
use std::sync::{Arc, Mutex};

/// Generation, pack, frame.
pub(crate) type FrameKey = (u32, u32, u32);

/// Filled by the first thread that needs the frame, while the others wait for it.
type Cell = Arc<Mutex<Option<Arc<Frame>>>>;

pub(crate) struct FrameCache {
    frames: Mutex<Lru<FrameKey, Cell>>,
    decompressors: Mutex<Vec<zstd::bulk::Decompressor<'static>>>,
}

/// What a frame weighs before it is read: most are of this size.
const WEIGHT_EXPECTED: usize = 1 << 20;

impl FrameCache {
    /// Makes a cache of at most about `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            frames: Mutex::new(Lru::new(bytes_max)),
            decompressors: Mutex::default(),
        }
    }

    /// Returns a frame, read and checked once while it stays in the cache.
    pub(crate) fn get(&self, catalog: &Catalog, key: FrameKey) -> Result<Arc<Frame>> {
        let cell = {
            let mut frames = held(&self.frames);
            match frames.get(&key) {
                Some(cell) => cell,
                None => {
                    let cell = Cell::default();
                    frames.put(key, cell.clone(), WEIGHT_EXPECTED);
                    cell
                }
            }
        };
        let mut content = held(&cell);
        if let Some(frame) = &*content {
            return Ok(frame.clone());
        }
        let frame = Arc::new(self.read(catalog, key)?);
        *content = Some(frame.clone());
        drop(content);
        held(&self.frames).put(key, cell, frame.weight());
        Ok(frame)
    }

    fn read(&self, catalog: &Catalog, (generation, pack, number): FrameKey) -> Result<Frame> {
        let idle = held(&self.decompressors).pop();
        let mut decompressor = match idle {
            Some(decompressor) => decompressor,
            None => zstd::bulk::Decompressor::new().context(|| "failed to set up decompression")?,
        };
        let frame = catalog.frame(generation, pack, number, &mut decompressor);
        held(&self.decompressors).push(decompressor);
        frame
    }
}
