//! Where a frozen log ends, and with it: whether everything from the checkpoint on is there.

use super::records::{self, Step};
use super::{RedoFormat, RedoHeader, RedoRange};
use crate::space::read_up_to;
use evenkeel_op::{Context, Error, Result};
use std::fs::File;
use std::path::PathBuf;

/// How much of the log is read at a time, and the most that one record group may need (1 MiB and a
/// trailer).
const WINDOW: usize = 8 << 20;
const GROUP_MAX: usize = (1 << 20) + 64;

/// Returns how many bytes of records the log holds before it comes round. `files` are all of its
/// files in order.
pub fn capacity(files: &[PathBuf], header: &RedoHeader) -> Result<u64> {
    Ok(Log::open(files, header)?.capacity)
}

/// Returns the LSN up to which a frozen log has every record since the saved checkpoint. `frozen`
/// are the clones of all log files in order, before or after the splice.
///
/// Fails if records from the checkpoint on are gone: the log wrapped past it, was resized, or the
/// clone is older than the saved header. Reads the log from the checkpoint to its end, once.
pub fn log_end(frozen: &[PathBuf], saved: &RedoHeader) -> Result<u64> {
    let log = Log::open(frozen, saved)?;
    let own = RedoHeader::read(&frozen[0], saved.layout)?;
    if !saved.is_same_log(&own) {
        return Err(gone("the redo log was re-created while files were copied"));
    }
    let end = log.scan(saved)?;
    match end {
        None => Err(gone(
            "the redo log wrapped: records that recovery needs were overwritten",
        )),
        Some(end) if end < own.checkpoint_lsn() => Err(gone(
            "the copy of the redo log has a gap before its newest checkpoint",
        )),
        Some(end) => Ok(end),
    }
}

/// Returns from where to where the log of a stopped server, or of a frozen image, has records. `files`
/// are all of its files, in order. Reads from the checkpoint to the end, once.
///
/// Fails as [`log_end`] does.
pub fn log_range(files: &[PathBuf], layout: RedoFormat) -> Result<RedoRange> {
    if layout == RedoFormat::Directory {
        return super::directory::range(files);
    }
    let first = files
        .first()
        .ok_or_else(|| Error::failed("there is no redo log"))?;
    let header = RedoHeader::read(first, layout)?;
    let end = log_end(files, &header)?;
    let checkpoint = header.checkpoint_lsn();
    Ok(RedoRange { checkpoint, end })
}

fn gone(message: &str) -> Error {
    Error::failed(message).hint(
        "run the backup again; if it happens often, raise innodb_log_file_size or freeze faster",
    )
}

/// The files of a log as one ring of bytes addressed by LSN.
struct Log {
    files: Vec<File>,
    /// Record bytes in each file.
    file_bytes: u64,
    header_bytes: u64,
    capacity: u64,
    /// An LSN and where in the ring its byte is.
    anchor: (u64, u64),
}

impl Log {
    fn open(paths: &[PathBuf], header: &RedoHeader) -> Result<Self> {
        let header_bytes = header.layout.header_bytes();
        let mut files = Vec::new();
        let mut sizes = Vec::new();
        for path in paths {
            let what = || format!("failed to open the redo log {}", path.display());
            let file = File::open(path).context(what)?;
            sizes.push(file.metadata().context(what)?.len());
            files.push(file);
        }
        let size = sizes.first().copied().unwrap_or(0);
        let count_is_right = header.layout == RedoFormat::Classic || files.len() == 1;
        if size <= header_bytes || sizes.iter().any(|other| *other != size) || !count_is_right {
            return Err(Error::failed(format!(
                "the redo log files have sizes {sizes:?}, which does not fit this server"
            )));
        }
        let file_bytes = size - header_bytes;
        let anchor = match header.layout {
            RedoFormat::SingleFile => (header.first_lsn(), 0),
            RedoFormat::Classic | RedoFormat::Directory => {
                let offset = header.checkpoint.offset;
                // The offset counts the headers of this file and of those before it.
                let skipped = header_bytes * (offset / size + 1);
                (header.checkpoint.lsn, offset.saturating_sub(skipped))
            }
        };
        Ok(Self {
            capacity: file_bytes * files.len() as u64,
            files,
            file_bytes,
            header_bytes,
            anchor,
        })
    }

    /// Returns where in the ring an LSN is.
    fn position(&self, lsn: u64) -> u64 {
        let (anchor, position) = self.anchor;
        let forward = lsn.wrapping_sub(anchor) as i64;
        (position as i64 + forward).rem_euclid(self.capacity as i64) as u64
    }

    /// Fills `buffer` with the bytes from `lsn` on, round the ring.
    fn read(&self, lsn: u64, buffer: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            let at = self.position(lsn + done as u64);
            let (file, inside) = (at / self.file_bytes, at % self.file_bytes);
            let length = (self.file_bytes - inside).min((buffer.len() - done) as u64) as usize;
            let part = &mut buffer[done..done + length];
            let got = read_up_to(&self.files[file as usize], part, self.header_bytes + inside)
                .context(|| "failed to read the redo log")?;
            if got < length {
                return Err(Error::failed(
                    "the redo log became shorter while it was read",
                ));
            }
            done += length;
        }
        Ok(())
    }

    /// Walks the records from the checkpoint on; nothing if not even the first ones are there.
    fn scan(&self, saved: &RedoHeader) -> Result<Option<u64>> {
        let mut lsn = match saved.layout {
            RedoFormat::SingleFile => saved.checkpoint.lsn,
            RedoFormat::Classic | RedoFormat::Directory => saved.checkpoint.lsn & !511,
        };
        let start = lsn;
        let limit = start + self.capacity;
        let mut buffer = vec![0; WINDOW.min(self.capacity as usize)];
        'window: while lsn < limit {
            self.read(lsn, &mut buffer)?;
            let mut rest = &buffer[..];
            loop {
                match self.step(saved, rest, lsn) {
                    Step::Next(length) => {
                        lsn += length as u64;
                        rest = &rest[length..];
                        // Read on before a group could run over the end of the buffer.
                        if rest.len() < GROUP_MAX.min(buffer.len()) {
                            continue 'window;
                        }
                    }
                    Step::Last(length) => return Ok(Some(lsn + length as u64)),
                    Step::End => return Ok((lsn > start).then_some(lsn)),
                }
            }
        }
        Ok(Some(limit))
    }

    fn step(&self, saved: &RedoHeader, bytes: &[u8], lsn: u64) -> Step {
        match saved.layout {
            RedoFormat::SingleFile => {
                let round = |lsn: u64| lsn.saturating_sub(saved.first_lsn()) / self.capacity;
                records::group(bytes, saved.is_encrypted(), |at| {
                    u8::from(round(lsn + at as u64) & 1 == 0)
                })
            }
            RedoFormat::Classic | RedoFormat::Directory => records::block(bytes, lsn),
        }
    }
}
