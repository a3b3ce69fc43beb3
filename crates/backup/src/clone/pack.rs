//! What is sent of files: many steps in one object, so that ten thousand small files do not cost ten thousand
//! round trips.
//!
//! ```text
//! 1  file 4  block 8  hash 16  parts 2  (start 4  end 4) per part  zstd 1  length 4  bytes     a block
//! 2  file 4  first block 8  blocks 4                                                           holes
//! 3  file 4  stretch 8  hash 16                                                                a stretch ends
//! ```

use super::list::{BLOCK, Hash, STRETCH};
use std::io;
use std::ops::Range;

/// Bytes after which a pack is sent.
pub(super) const PACK: usize = 4 << 20;
/// A pack is never longer than this.
pub(super) const PACK_MAX: usize = 8 << 20;

/// One step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// A block that differs.
    Block {
        file: u32,
        block: u64,
        hash: Hash,
        /// What of the block is no hole; all of it if there is none.
        parts: Vec<Range<u32>>,
        zstd: bool,
        bytes: &'a [u8],
    },
    /// Blocks that are holes, all of them.
    Holes { file: u32, blocks: Range<u64> },
    /// All of a stretch was said, and this is the hash of its blocks' hashes.
    End { file: u32, stretch: u64, hash: Hash },
}

impl Step<'_> {
    /// Appends it.
    pub(super) fn write(&self, to: &mut Vec<u8>) {
        match self {
            Step::Block {
                file,
                block,
                hash,
                parts,
                zstd,
                bytes,
            } => {
                to.push(1);
                to.extend(file.to_le_bytes());
                to.extend(block.to_le_bytes());
                to.extend(hash);
                to.extend((parts.len() as u16).to_le_bytes());
                for part in parts {
                    to.extend(part.start.to_le_bytes());
                    to.extend(part.end.to_le_bytes());
                }
                to.push(u8::from(*zstd));
                to.extend((bytes.len() as u32).to_le_bytes());
                to.extend_from_slice(bytes);
            }
            Step::Holes { file, blocks } => {
                to.push(2);
                to.extend(file.to_le_bytes());
                to.extend(blocks.start.to_le_bytes());
                to.extend(((blocks.end - blocks.start) as u32).to_le_bytes());
            }
            Step::End {
                file,
                stretch,
                hash,
            } => {
                to.push(3);
                to.extend(file.to_le_bytes());
                to.extend(stretch.to_le_bytes());
                to.extend(hash);
            }
        }
    }

    /// Takes the next step off the front of `from`; an error where that is none.
    pub(super) fn read<'a>(from: &mut &'a [u8]) -> io::Result<Step<'a>> {
        let [kind] = fixed(from)?;
        let file = u32::from_le_bytes(fixed(from)?);
        let number = u64::from_le_bytes(fixed(from)?);
        match kind {
            1 => {
                let hash = fixed(from)?;
                let mut parts = Vec::new();
                for _ in 0..u16::from_le_bytes(fixed(from)?) {
                    let start = u32::from_le_bytes(fixed(from)?);
                    let end = u32::from_le_bytes(fixed(from)?);
                    parts.push(start..end);
                }
                let [zstd] = fixed(from)?;
                let length = u32::from_le_bytes(fixed(from)?);
                // What is longer than the block itself was never compressed.
                if zstd > 1 || u64::from(length) > BLOCK {
                    return Err(broken());
                }
                let (bytes, rest) = from.split_at_checked(length as usize).ok_or_else(broken)?;
                *from = rest;
                Ok(Step::Block {
                    file,
                    block: number,
                    hash,
                    parts,
                    zstd: zstd == 1,
                    bytes,
                })
            }
            2 => {
                let count = u64::from(u32::from_le_bytes(fixed(from)?));
                let end = number.checked_add(count).filter(|_| count <= STRETCH);
                let blocks = number..end.ok_or_else(broken)?;
                Ok(Step::Holes { file, blocks })
            }
            3 => Ok(Step::End {
                file,
                stretch: number,
                hash: fixed(from)?,
            }),
            _ => Err(broken()),
        }
    }
}

fn fixed<const N: usize>(from: &mut &[u8]) -> io::Result<[u8; N]> {
    let (first, rest) = from.split_first_chunk().ok_or_else(broken)?;
    *from = rest;
    Ok(*first)
}

fn broken() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "what was sent is no pack of blocks",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_back_and_what_is_cut_short_is_refused() {
        let block = |parts| Step::Block {
            file: 7,
            block: 1 << 40,
            hash: [3; 16],
            parts,
            zstd: true,
            bytes: b"compressed",
        };
        let steps = [
            block(vec![0..4096, 8192..65536]),
            block(Vec::new()),
            Step::Holes {
                file: 1,
                blocks: 5..9,
            },
            Step::End {
                file: 1,
                stretch: 2,
                hash: [9; 16],
            },
        ];
        let mut pack = Vec::new();
        for step in &steps {
            step.write(&mut pack);
        }
        let mut rest = pack.as_slice();
        for step in &steps {
            assert_eq!(Step::read(&mut rest).unwrap(), *step);
        }
        assert!(rest.is_empty());
        for step in &steps {
            let mut one = Vec::new();
            step.write(&mut one);
            for length in 0..one.len() {
                assert!(
                    Step::read(&mut &one[..length]).is_err(),
                    "{step:?} {length}"
                );
            }
        }
    }

    #[test]
    fn nothing_that_no_sender_says_is_read() {
        let mut far = vec![2, 0, 0, 0, 0];
        far.extend(u64::MAX.to_le_bytes());
        far.extend(1u32.to_le_bytes());
        assert!(Step::read(&mut far.as_slice()).is_err());
        let mut long = vec![2, 0, 0, 0, 0];
        long.extend(0u64.to_le_bytes());
        long.extend(u32::MAX.to_le_bytes());
        assert!(Step::read(&mut long.as_slice()).is_err());
        assert!(Step::read(&mut [9u8; 40].as_slice()).is_err());
    }
}
