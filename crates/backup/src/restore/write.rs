//! Writes one file from its blocks: neighbours in one go, zeros allocated, holes left out.

use evenkeel_op::{Context, Result};
use evenkeel_repository::BlockContent;
use rustix::fs::FallocateFlags;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes that are gathered before they are written.
const GATHER: usize = 1 << 20;

/// Writes blocks, given in ascending order, into a file that already has its length.
pub(super) struct BlockWriter<'a> {
    file: &'a File,
    buffer: Vec<u8>,
    /// Where `buffer` goes.
    start: u64,
    zeros: std::ops::Range<u64>,
    written: u64,
}

impl<'a> BlockWriter<'a> {
    pub(super) fn new(file: &'a File) -> Self {
        Self {
            file,
            buffer: Vec::with_capacity(GATHER),
            start: 0,
            zeros: 0..0,
            written: 0,
        }
    }

    /// Takes the block of `length` bytes at `offset`.
    pub(super) fn block(
        &mut self,
        offset: u64,
        length: u64,
        content: BlockContent<'_>,
    ) -> Result<()> {
        match content {
            BlockContent::Hole => Ok(()),
            BlockContent::Zero if self.zeros.end == offset => {
                self.zeros.end = offset + length;
                Ok(())
            }
            BlockContent::Zero => {
                self.flush_zeros()?;
                self.zeros = offset..offset + length;
                Ok(())
            }
            BlockContent::Data(bytes) => self.data(offset, bytes),
        }
    }

    fn data(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let follows = self.start + self.buffer.len() as u64 == offset;
        if !follows || self.buffer.len() + bytes.len() > GATHER {
            self.flush_data()?;
            self.start = offset;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes what is left and returns how many bytes were written in all.
    pub(super) fn finish(mut self) -> Result<u64> {
        self.flush_data()?;
        self.flush_zeros()?;
        Ok(self.written)
    }

    fn flush_data(&mut self) -> Result<()> {
        self.file
            .write_all_at(&self.buffer, self.start)
            .context(|| format!("failed to write at byte {}", self.start))?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Zeros that were allocated in the source are allocated again, so that the server does not
    /// run out of space where it had it.
    fn flush_zeros(&mut self) -> Result<()> {
        let range = std::mem::replace(&mut self.zeros, 0..0);
        let length = range.end - range.start;
        if length == 0 {
            return Ok(());
        }
        if rustix::fs::fallocate(self.file, FallocateFlags::KEEP_SIZE, range.start, length).is_ok()
        {
            return Ok(());
        }
        let zeros = vec![0u8; GATHER];
        let mut at = range.start;
        while at < range.end {
            let part = (range.end - at).min(GATHER as u64);
            self.file
                .write_all_at(&zeros[..part as usize], at)
                .context(|| format!("failed to write zeros at byte {at}"))?;
            at += part;
            self.written += part;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_land_where_they_belong() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(50_000).unwrap();
        let mut writer = BlockWriter::new(&file);
        writer
            .block(0, 10_000, BlockContent::Data(&[1; 10_000]))
            .unwrap();
        writer
            .block(10_000, 10_000, BlockContent::Data(&[2; 4_000]))
            .unwrap();
        writer.block(20_000, 10_000, BlockContent::Zero).unwrap();
        writer.block(30_000, 10_000, BlockContent::Hole).unwrap();
        writer
            .block(40_000, 10_000, BlockContent::Data(&[3; 10_000]))
            .unwrap();
        writer.finish().unwrap();
        let mut bytes = vec![9; 50_000];
        file.read_exact_at(&mut bytes, 0).unwrap();
        let expected = [
            vec![1; 10_000],
            vec![2; 4_000],
            vec![0; 26_000],
            vec![3; 10_000],
        ]
        .concat();
        assert!(bytes == expected);
    }
}
