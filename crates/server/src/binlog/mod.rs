//! Reads how far a binary log file goes: the end of its last complete transaction, and its GTIDs.
//!
//! A frozen data directory carries its binary log, and crash recovery makes the engines agree with
//! it. So the coordinates of an image can be read from the image itself, without any lock on the
//! server it came from.
//!
//! Format: magic `fe 62 69 6e`, then events of a 19-byte header (`u32 time, u8 type, u32 server_id,
//! u32 length, u32 next position, u16 flags`, little endian) and a body; source: the binary log
//! pages of the MySQL internals manual and the MariaDB knowledge base.

mod gtid;
mod walk;

pub use gtid::{MariaDbGtids, MySqlGtids};

use evenkeel_op::{Context, Error, Result};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// How far a binary log file goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinlogEnd {
    /// Byte position after the last complete transaction.
    pub position: u64,
    /// GTIDs executed up to there, as the server prints them; `None` when it has none.
    pub gtid: Option<String>,
    /// Bytes after `position`: an event group that a crash cut off.
    pub cut_off: u64,
}

/// Reads the end of one binary log file.
///
/// Encrypted logs cannot be read and are refused; a file that is no binary log fails.
pub fn end_of_file(path: &Path) -> Result<BinlogEnd> {
    let file = File::open(path).context(|| format!("failed to open {}", path.display()))?;
    let size = file
        .metadata()
        .context(|| format!("failed to stat {}", path.display()))?
        .len();
    let mut reader = BufReader::with_capacity(256 << 10, file);
    let mut magic = [0u8; 4];
    reader
        .read_exact(&mut magic)
        .context(|| format!("failed to read {}", path.display()))?;
    match magic {
        [0xfe, b'b', b'i', b'n'] => walk::walk(&mut reader, size)
            .context(|| format!("failed to read the binary log {}", path.display())),
        [0xfd, b'b', b'i', b'n'] => Err(Error::refused(format!(
            "the binary log {} is encrypted, its coordinates cannot be read from the image",
            path.display()
        ))
        .hint("take the backup with a lock (--lock ftwrl), so that the server says them")),
        _ => Err(Error::failed(format!(
            "{} is not a binary log",
            path.display()
        ))),
    }
}

/// Returns the last log file that an index file lists, as the server wrote it (often relative to
/// the data directory), or `None` for an empty index.
pub fn last_in_index(index: &Path) -> Result<Option<PathBuf>> {
    let text = std::fs::read(index).context(|| format!("failed to read {}", index.display()))?;
    let text = String::from_utf8_lossy(&text);
    Ok(text
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .map(PathBuf::from))
}
