//! What is read together of a leaf, and what was read.

use super::buffers::{ALIGNMENT, Buffer, Buffers};
use super::read_file::{Shape, Source};
use evenkeel_op::Result;
use std::ops::Range;

/// Bytes that are read in one go: a device is kept busy by several of them, and a commit of the server waits
/// behind few.
pub(super) const CHUNK: u64 = 512 << 10;

/// Blocks of a leaf that one thread reads: sorted, disjoint ranges of block numbers, of [`CHUNK`] bytes at most,
/// or of one block.
pub(super) type Piece = Vec<Range<u64>>;

/// Cuts the ranges of a leaf into pieces.
pub(super) fn cut(blocks: &[Range<u64>], block_size: u32) -> Vec<Piece> {
    let most = (CHUNK / u64::from(block_size)).max(1);
    let mut pieces = Vec::new();
    let (mut piece, mut left) = (Piece::new(), most);
    for range in blocks {
        let mut at = range.start;
        while at < range.end {
            let part = at..range.end.min(at + left);
            at = part.end;
            left -= part.end - part.start;
            piece.push(part);
            if left == 0 {
                pieces.push(std::mem::take(&mut piece));
                left = most;
            }
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

/// One range of a piece that was read.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) blocks: Range<u64>,
    /// The range in bytes of the file, up to its end.
    pub(super) range: Range<u64>,
    pub(super) shape: Shape,
    /// Where its bytes begin in the buffer. It has none where all of it is a hole.
    at: usize,
}

/// A piece that was read.
#[derive(Debug)]
pub(super) struct Filled {
    pub(super) parts: Vec<Part>,
    buffer: Buffer,
    length: usize,
}

impl Filled {
    /// Returns what was read of bytes of the file within a part that is not only a hole.
    pub(super) fn bytes(&self, part: &Part, of: &Range<u64>) -> &[u8] {
        let at = part.at + (of.start - part.range.start) as usize;
        &self.buffer.bytes(self.length)[at..at + (of.end - of.start) as usize]
    }

    /// Gives its memory back.
    pub(super) fn end(self, buffers: &Buffers) {
        buffers.give(self.buffer, CHUNK as usize);
    }
}

/// Reads a piece of a file whose blocks are `block_size` bytes; `pace` waits before so many bytes are read.
///
/// Errors: those of the file.
pub(super) fn fill(
    source: &Source,
    piece: &Piece,
    block_size: u32,
    (buffers, pace): (&Buffers, &dyn Fn(u64)),
) -> Result<Filled> {
    let mut parts = Vec::with_capacity(piece.len());
    let mut length = 0;
    for blocks in piece {
        let range = bytes(blocks, block_size);
        let range = range.start..range.end.min(source.size());
        let shape = source.shape(&range)?;
        let at = length;
        // A terabyte of nothing is not worth a terabyte of zeros.
        if shape.bytes_read() > 0 {
            length += ((range.end - range.start) as usize).next_multiple_of(ALIGNMENT);
        }
        parts.push(Part {
            blocks: blocks.clone(),
            range,
            shape,
            at,
        });
    }
    pace(parts.iter().map(|part| part.shape.bytes_read()).sum());
    let mut buffer = buffers.take(length, CHUNK as usize);
    let room = buffer.room(length);
    for part in parts.iter().filter(|part| part.shape.bytes_read() > 0) {
        source.read(&part.range, &part.shape, &mut room[part.at..])?;
    }
    Ok(Filled {
        parts,
        buffer,
        length,
    })
}

/// Returns the bytes of blocks.
fn bytes(blocks: &Range<u64>, block_size: u32) -> Range<u64> {
    blocks.start * u64::from(block_size)..blocks.end * u64::from(block_size)
}

/// Returns how many bytes some blocks have.
pub(super) fn length(blocks: &[Range<u64>], block_size: u32) -> u64 {
    let blocks: u64 = blocks.iter().map(|range| range.end - range.start).sum();
    blocks * u64::from(block_size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::single_range_in_vec_init)]
    fn pieces_have_every_block_once_and_few_bytes() {
        assert_eq!(cut(&[], 16 << 10), Vec::<Piece>::new());
        assert_eq!(cut(&[3..4, 9..12], 16 << 10), [vec![3..4, 9..12]]);
        assert_eq!(
            cut(&[0..30, 40..80], 16 << 10),
            [vec![0..30, 40..42], vec![42..74], vec![74..80]]
        );
        // A block may be larger than all that is read in one go.
        assert_eq!(cut(&[0..2], 1 << 20), [vec![0..1], vec![1..2]]);
    }
}
