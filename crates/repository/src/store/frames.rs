//! Frames of packs: who compresses them.

use super::{MadeFrame, RawFrame};
use crate::crypt::Sealer;
use crate::format::frame::{self, TableEntry};
use evenkeel_op::{Context, Result};
use std::io;

impl MadeFrame {
    pub(crate) fn entry(self, frame: &RawFrame<'_>) -> TableEntry {
        TableEntry {
            offset: 0,
            length: self.length,
            raw_length: frame.raw.len() as u32,
            slots: frame.lengths.len() as u32,
            crc: self.crc,
        }
    }
}

/// A compressor and the buffer it compresses into.
pub struct FrameEncoder {
    level: i32,
    now: i32,
    compressor: zstd::bulk::Compressor<'static>,
    out: Vec<u8>,
}

impl FrameEncoder {
    /// Sets up compression of a zstd level.
    pub fn new(level: i32) -> Result<Self> {
        let compressor =
            zstd::bulk::Compressor::new(level).context(|| "failed to set up compression")?;
        Ok(Self {
            level,
            now: level,
            compressor,
            out: Vec::new(),
        })
    }

    /// Returns the zstd level that it was made with.
    #[must_use]
    pub fn level(&self) -> i32 {
        self.level
    }

    /// Compresses with another level from now on.
    pub(crate) fn compress_at(&mut self, level: i32) -> Result<()> {
        if level != self.now {
            let set = self.compressor.set_compression_level(level);
            set.context(|| "failed to change the compression")?;
            self.now = level;
        }
        Ok(())
    }

    /// Compresses a frame; returns its bytes and what should be remembered of them. The level is
    /// this encoder's, as it is now.
    pub fn encode(&mut self, frame: &RawFrame<'_>) -> io::Result<(&[u8], MadeFrame)> {
        self.encode_sealed(frame, None)
    }

    /// Compresses a frame and seals it.
    pub(crate) fn encode_sealed(
        &mut self,
        frame: &RawFrame<'_>,
        sealer: Option<&Sealer>,
    ) -> io::Result<(&[u8], MadeFrame)> {
        let Self {
            compressor, out, ..
        } = self;
        let RawFrame {
            seed,
            number,
            lengths,
            raw,
            ..
        } = *frame;
        let entry = frame::encode(out, compressor, (seed, sealer), number, lengths, raw)?;
        let made = MadeFrame {
            length: entry.length,
            crc: entry.crc,
        };
        Ok((out, made))
    }
}
