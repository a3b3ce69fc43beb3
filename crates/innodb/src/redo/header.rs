//! Reading the header and the two checkpoint blocks.

use super::RedoFormat;
use crate::bytes::{be32, be64};
use crate::space::read_up_to;
use crc32c::crc32c;
use evenkeel_op::{Context, Error, Result};
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

/// MariaDB from 10.8.
const FORMAT_PHYS: u32 = 0x5068_7973;
/// The same with encrypted records, in newer maintenance releases (10.11.19 for one). Before them
/// the format was the plain one, and recognized by what follows the creator's name.
const FORMAT_ENCRYPTED: u32 = 0xf09f_979d;
/// Where MariaDB says how records are encrypted: key id (4, 0 for not at all), key version (4),
/// what the key is derived from (16), nonce (4).
const ENCRYPTION: usize = 48;
/// MySQL 5.7.9, 8.0.3, 8.0.19, 8.0.28; the next one has another layout.
const CLASSIC_FORMATS: [u32; 4] = [1, 3, 4, 5];
/// How often a header is read when the server is just writing it, and how long between.
const READS_MAX: u32 = 50;
const READ_AGAIN_AFTER: Duration = Duration::from_millis(2);

/// The header of a redo log as it was at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedoHeader {
    pub(super) layout: RedoFormat,
    pub(super) bytes: Vec<u8>,
    pub(super) checkpoint: Checkpoint,
}

/// A valid checkpoint block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Checkpoint {
    pub(super) lsn: u64,
    /// Classic: where that LSN is in all files put together.
    pub(super) offset: u64,
}

/// What is in the place of a checkpoint block.
enum Block {
    Valid(Checkpoint),
    NeverWritten,
    /// The server is writing it, or it is damaged.
    Torn,
}

impl RedoHeader {
    /// Reads the header of the first log file of a server that may be running. A block that the
    /// server is just writing is read again, a bounded number of times; one whole checkpoint is
    /// enough in the end, as it is for the server. Refuses formats it does not know.
    pub fn read(first_log_file: &Path, layout: RedoFormat) -> Result<Self> {
        layout.check()?;
        let what = || format!("failed to read the redo log {}", first_log_file.display());
        let file = File::open(first_log_file).context(what)?;
        let mut bytes = vec![0; layout.header_bytes() as usize];
        for round in 1.. {
            let got = read_up_to(&file, &mut bytes, 0).context(what)?;
            if got < bytes.len() {
                return Err(Error::failed(format!(
                    "{}: only {got} bytes, which is not a redo log",
                    first_log_file.display()
                )));
            }
            let last = round == READS_MAX;
            match Self::parse(&bytes, layout, last) {
                Err(Unreadable::Torn) if !last => std::thread::sleep(READ_AGAIN_AFTER),
                Err(Unreadable::Torn) => {
                    return Err(
                        Error::failed("neither checkpoint is intact").because(format!(
                            "{} is damaged, or has an unknown format",
                            first_log_file.display()
                        )),
                    );
                }
                Err(Unreadable::Refused(error)) => return Err(error).context(what),
                Ok(header) => return Ok(header),
            }
        }
        unreachable!("the last round returns")
    }

    /// Takes a header apart. Unless `one_is_enough`, both checkpoints have to be whole.
    pub(super) fn parse(
        bytes: &[u8],
        layout: RedoFormat,
        one_is_enough: bool,
    ) -> std::result::Result<Self, Unreadable> {
        check_format(be32(bytes, 0), layout).map_err(Unreadable::Refused)?;
        if !header_is_whole(bytes) {
            return Err(Unreadable::Torn);
        }
        let mut newest: Option<Checkpoint> = None;
        for block in blocks(layout) {
            match read_block(&bytes[block], layout) {
                Block::Valid(found) if newest.is_none_or(|seen| seen.lsn < found.lsn) => {
                    newest = Some(found);
                }
                Block::Torn if !one_is_enough => return Err(Unreadable::Torn),
                Block::Valid(_) | Block::NeverWritten | Block::Torn => {}
            }
        }
        Ok(Self {
            layout,
            bytes: bytes.to_vec(),
            checkpoint: newest.ok_or(Unreadable::Torn)?,
        })
    }

    /// Returns how the log is laid out.
    #[must_use]
    pub fn layout(&self) -> RedoFormat {
        self.layout
    }

    /// Returns the LSN that recovery starts from.
    #[must_use]
    pub fn checkpoint_lsn(&self) -> u64 {
        self.checkpoint.lsn
    }

    /// Returns the LSN of the first record behind the header, when the file was made (SingleFile)
    /// or last begun (Classic).
    #[must_use]
    pub fn first_lsn(&self) -> u64 {
        be64(&self.bytes, 8)
    }

    /// Returns the server that made the file: `MariaDB 10.11.19`.
    #[must_use]
    pub fn creator(&self) -> String {
        let name = &self.bytes[16..48];
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(32);
        String::from_utf8_lossy(&name[..end]).into_owned()
    }

    /// Returns where [`RedoHeader::bytes`] belong in the first log file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.spliced().start as u64
    }

    /// Returns the bytes to put over the clone of the first log file: both checkpoint blocks and
    /// what lies between, but not the file header, which has to go with the clone's records.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.spliced()]
    }

    /// Returns whether the records of the log are encrypted (MariaDB).
    pub(super) fn is_encrypted(&self) -> bool {
        self.layout == RedoFormat::SingleFile
            && (be32(&self.bytes, 0) == FORMAT_ENCRYPTED || be32(&self.bytes, ENCRYPTION) != 0)
    }

    /// Returns whether `other` can be the header of the same log at another moment: a log that was
    /// resized in between has another one.
    pub fn is_same_log(&self, other: &Self) -> bool {
        // A classic file gets a new first LSN whenever the log comes round.
        let fixed = match self.layout {
            RedoFormat::SingleFile => 512,
            RedoFormat::Classic | RedoFormat::Directory => 4,
        };
        self.layout == other.layout && self.bytes[..fixed] == other.bytes[..fixed]
    }

    fn spliced(&self) -> Range<usize> {
        match self.layout {
            RedoFormat::SingleFile => 4096..12288,
            RedoFormat::Classic | RedoFormat::Directory => 512..2048,
        }
    }
}

/// Why bytes are not a header.
pub(super) enum Unreadable {
    /// A checksum does not match: maybe the server is just writing.
    Torn,
    /// It is something else.
    Refused(Error),
}

fn check_format(format: u32, layout: RedoFormat) -> Result<()> {
    let known = match layout {
        RedoFormat::SingleFile => matches!(format, FORMAT_PHYS | FORMAT_ENCRYPTED),
        RedoFormat::Classic => CLASSIC_FORMATS.contains(&format),
        RedoFormat::Directory => false,
    };
    if known {
        return Ok(());
    }
    Err(
        Error::refused(format!("redo log format {format:#x} is not known"))
            .hint("use an atomic snapshot (btrfs), or pause the server for the clone"),
    )
}

/// Returns whether the checksum of a file's header is right.
pub(super) fn header_is_whole(bytes: &[u8]) -> bool {
    be32(bytes, 508) == crc32c(&bytes[..508])
}

/// Returns the LSN of the newest whole checkpoint in a header.
pub(super) fn checkpoint_of(bytes: &[u8], layout: RedoFormat) -> Option<u64> {
    let each = blocks(layout).into_iter();
    each.filter_map(|block| match read_block(&bytes[block], layout) {
        Block::Valid(found) => Some(found.lsn),
        Block::NeverWritten | Block::Torn => None,
    })
    .max()
}

fn blocks(layout: RedoFormat) -> [Range<usize>; 2] {
    match layout {
        RedoFormat::SingleFile => [4096..4160, 8192..8256],
        RedoFormat::Classic | RedoFormat::Directory => [512..1024, 1536..2048],
    }
}

fn read_block(block: &[u8], layout: RedoFormat) -> Block {
    if crate::bytes::all_zero(block) {
        return Block::NeverWritten;
    }
    let summed = block.len() - 4;
    if be32(block, summed) != crc32c(&block[..summed]) {
        return Block::Torn;
    }
    Block::Valid(match layout {
        RedoFormat::SingleFile => Checkpoint {
            lsn: be64(block, 0),
            offset: 0,
        },
        RedoFormat::Classic | RedoFormat::Directory => Checkpoint {
            lsn: be64(block, 8),
            offset: be64(block, 16),
        },
    })
}
