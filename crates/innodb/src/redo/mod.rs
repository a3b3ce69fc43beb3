//! The redo log's header, its checkpoints, and where the log ends: what the checkpoint splice needs.
//!
//! The splice makes an image out of files that were cloned one after another while the server ran:
//! save the checkpoint blocks, clone the data files, clone the log last, put the saved blocks over
//! the log's clone. Every page in the image is at least as new as the saved checkpoint, every
//! change up to the log's end is in the log, so replaying from that checkpoint makes all pages
//! equally new. It holds as long as the log did not wrap past the saved checkpoint before it was
//! cloned: [`wrapped`] asks that from LSNs, [`log_end`] proves it from the clone.
//!
//! The caller keeps DDL out meanwhile (files that come and go are not in the argument), clones each
//! file at one point in time so that no page is torn, and counts undo tablespaces, the system tablespace
//! and MySQL 8.0's `mysql.ibd` among the data files. No page of a sound image has an LSN beyond
//! [`log_end`]. Proven on MariaDB 10.11, MySQL 8.0.15 and 5.7.22.
//!
//! MariaDB's encrypted log is no other case: header, checkpoints and the lengths of records are
//! plain, and what the records are encrypted with stays the same as long as the log is the same.
//!
//! ```text
//! SingleFile: MariaDB from 10.8, one ib_logfile0
//!      0  header: "Phys" (or F0 9F 97 9D), 4 zero bytes, first LSN (8), creator (32), how records
//!         are encrypted (28, zero: not); CRC-32C of [0, 508) at 508
//!   4096  checkpoint: its LSN (8), LSN of the FILE_CHECKPOINT record (8); CRC-32C of [0, 60) at 60
//!   8192  the other checkpoint
//!  12288  records, to the end of the file, then from here again
//! Classic: MySQL 5.7, 8.0 before 8.0.30; ib_logfile0, 1 …, each with this header
//!      0  header: format (4), 4 bytes, first LSN (8), creator (32); CRC-32C of [0, 508) at 508
//!    512  checkpoint (first file only): number (8), LSN (8), offset in all files put together (8),
//!         buffer size (8); CRC-32C of [0, 508) at 508
//!   1536  the other checkpoint
//!   2048  records in blocks of 512 bytes, to the end of the last file, then from here again
//! ```

mod directory;
mod end;
mod header;
mod records;

pub use end::{capacity, log_end, log_range};
pub use header::RedoHeader;

use evenkeel_op::{Error, Result};

/// How a server lays out its redo log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedoFormat {
    /// MariaDB from 10.8: one `ib_logfile0`.
    SingleFile,
    /// MySQL 5.7 and 8.0 before 8.0.30: `ib_logfile0`, `ib_logfile1` …
    Classic,
    /// MySQL from 8.0.30: a directory of log files that come and go. Not spliced.
    Directory,
}

impl RedoFormat {
    /// Fails for a layout that is not spliced, saying why.
    fn check(self) -> Result<()> {
        match self {
            Self::SingleFile | Self::Classic => Ok(()),
            Self::Directory => Err(Error::refused(
                "the redo log in #innodb_redo/ is not one fixed set of files",
            )
            .hint("use an atomic snapshot (btrfs), or pause the server for the clone")),
        }
    }

    /// Returns where records begin in each file.
    const fn header_bytes(self) -> u64 {
        match self {
            Self::SingleFile => 12288,
            Self::Classic | Self::Directory => 2048,
        }
    }
}

/// What a stopped server's log holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedoRange {
    /// The LSN that recovery starts from: every change before it is in the data files.
    pub checkpoint: u64,
    /// The LSN behind the last record: no page of this server is newer.
    pub end: u64,
}

/// How close to the saved checkpoint the log's head may come, in bytes: servers write ahead of the
/// last record, up to a block of 64 KiB.
const MARGIN: u64 = 64 << 10;

/// Returns whether a server whose log holds `capacity` bytes may have overwritten records that a
/// recovery from the saved checkpoint needs, given its LSN now.
#[must_use]
pub fn wrapped(saved: &RedoHeader, capacity: u64, lsn_now: u64) -> bool {
    let head = lsn_now.saturating_add(MARGIN);
    // A block is needed from its start on.
    head.saturating_sub(saved.checkpoint_lsn() & !511) >= capacity
}

#[cfg(test)]
mod tests;
