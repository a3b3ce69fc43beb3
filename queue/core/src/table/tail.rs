//! The end of the log: the one segment that is written to.

use super::file::DataFile;
use super::options::Options;
use crate::error::{During, Error, Result};
use crate::io::Io;
use crate::log::Name;
use crate::log::frame::{self, FrameKind, Header, Origin};
use crate::log::rows::TableState;
use crate::log::segment::{self, START};
use crate::log::times;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Room for removals that rows may not take, at most, in bytes: so much of a full disk's queue can be
/// consumed row by row.
const MARGIN: u64 = 8 << 20;

/// How much space is filled at once, in bytes.
const FILL: u64 = 512 << 10;

/// A group that is longer fills no space beforehand, in bytes: writing it twice would cost more.
const SMALL: u64 = 256 << 10;

/// What removing one row takes, in bytes, when it is removed alone, and some more.
const REMOVAL: u64 = 64;

/// Where the next frame goes.
pub(crate) struct Tail {
    pub(crate) io: Arc<dyn Io>,
    pub(crate) dir: PathBuf,
    pub(crate) table: u128,
    pub(crate) file: Arc<DataFile>,
    pub(crate) number: u64,
    pub(crate) end: u64,
    /// Up to here all is durable.
    pub(crate) durable: u64,
    /// Up to here the file system has promised space.
    pub(crate) reserved: u64,
    /// Up to here there are zeros behind the end, or what was written over them.
    pub(crate) filled: u64,
    /// Whether it may be said in this file when rows came.
    pub(crate) tells_times: bool,
    pub(crate) state: TableState,
    pub(crate) synced_at: Instant,
    pub(crate) poisoned: Option<String>,
}

impl Tail {
    /// Makes a segment that starts with the state, durable.
    pub(crate) fn start(
        io: &dyn Io,
        dir: &Path,
        table: u128,
        (number, previous_end): (u64, u64),
        state: &TableState,
    ) -> Result<(DataFile, u64)> {
        let name = Name::Segment(number);
        let mut bytes = segment::header(table, name, previous_end).to_vec();
        let header = Header {
            kind: FrameKind::State,
            len: 0,
            first: 0,
            count: 0,
            durable: 0,
        };
        let origin = Origin::new(table, name.id());
        frame::encode(&mut bytes, (origin, START as u64), header, |out| {
            state.put(out)
        });
        let file = DataFile::create(io, dir, name)?;
        let written = file.io.write_at(&bytes, 0).during("write", &file.path);
        let written = written.and_then(|()| file.io.sync().during("sync", &file.path));
        if let Err(error) = written.and_then(|()| io.sync_dir(dir).during("sync", dir)) {
            // It says where the one before it ended, which will not stay true: it must not be there.
            let gone = io.unlink(&file.path).and_then(|()| io.sync_dir(dir));
            return Err(match gone {
                Ok(()) => error,
                Err(_) => Error::Poisoned(error.to_string()),
            });
        }
        file.grew_to(bytes.len() as u64);
        Ok((file, bytes.len() as u64))
    }

    /// Goes on in a new segment.
    pub(crate) fn rotate(&mut self) -> Result<()> {
        if self.durable < self.end {
            self.sync()?;
        }
        let next = (self.number + 1, self.end);
        let started = Self::start(&*self.io, &self.dir, self.table, next, &self.state);
        if let Err(Error::Poisoned(why)) = &started {
            self.poisoned = Some(why.clone());
        }
        let (file, end) = started?;
        // What was reserved behind its end goes back to the disk.
        let _ = self.file.io.set_len(self.end);
        self.file.seal(self.end);
        self.file = Arc::new(file);
        self.number += 1;
        self.end = end;
        self.durable = end;
        self.reserved = end;
        self.filled = end;
        self.tells_times = true;
        Ok(())
    }

    /// Makes sure that `bytes` more fit and `live` rows can be removed afterwards.
    pub(crate) fn reserve(&mut self, bytes: u64, live: u64, options: &Options) -> Result<()> {
        let need = self.end + bytes + (live * REMOVAL).min(MARGIN);
        if need <= self.reserved {
            return Ok(());
        }
        let step = (options.segment_bytes / 16).clamp(4096, 1 << 20);
        let upto = need.next_multiple_of(step);
        let reserved = self.file.io.reserve(upto);
        reserved.during("reserve space in", &self.file.path)?;
        self.reserved = upto;
        Ok(())
    }

    /// Writes zeros where the next frames will stand. To make bytes durable that replace others takes
    /// one write; to make a file longer, the file system writes its journal each time as well.
    pub(crate) fn fill(&mut self, bytes: u64) -> Result<()> {
        let need = self.end + bytes;
        if need <= self.filled || bytes > SMALL {
            return Ok(());
        }
        let from = self.filled.max(self.end);
        let upto = need.next_multiple_of(FILL).min(self.reserved).max(need);
        self.write(&vec![0; (upto - from) as usize], from)?;
        self.sync()?;
        self.filled = upto;
        Ok(())
    }

    /// Encodes a frame that will stand `out.len()` bytes behind `from`.
    pub(crate) fn frame(
        &self,
        out: &mut Vec<u8>,
        from: u64,
        (kind, first, count): (FrameKind, u64, u32),
        body: impl FnOnce(&mut Vec<u8>),
    ) {
        let origin = Origin::new(self.table, Name::Segment(self.number).id());
        let header = Header {
            kind,
            len: 0,
            first,
            count,
            durable: self.durable as u32,
        };
        let offset = from + out.len() as u64;
        frame::encode(out, (origin, offset), header, body);
    }

    /// Encodes what is to be said of the rows behind it, as [`frame`](Self::frame) does.
    pub(crate) fn say(&self, out: &mut Vec<u8>, from: u64, pairs: &[(u64, u64)]) {
        if !pairs.is_empty() {
            let count = pairs.len() as u32;
            self.frame(out, from, (FrameKind::Times, 0, count), |out| {
                times::put(out, pairs);
            });
        }
    }

    /// Writes at `at`. If that fails, all that stands behind the end is cut off again, durably.
    pub(crate) fn write(&mut self, bytes: &[u8], at: u64) -> Result<()> {
        if at + bytes.len() as u64 > u64::from(u32::MAX) {
            return Err(Error::Full);
        }
        let written = self.file.io.write_at(bytes, at);
        if written.is_err() {
            let cut = self.file.io.set_len(self.end);
            (self.filled, self.reserved) = (self.end, self.end);
            if let Err(cause) = cut.and_then(|()| self.file.io.sync()) {
                self.poison("failed to take back half a write", &cause);
            }
        }
        written.during("write", &self.file.path)
    }

    /// Takes away what was filled beforehand.
    pub(crate) fn cut(&mut self) -> Result<()> {
        if self.filled > self.end {
            let done = self.file.io.set_len(self.end);
            done.during("cut", &self.file.path)?;
        }
        (self.filled, self.reserved) = (self.end, self.end);
        Ok(())
    }

    /// Takes what was written up to there for the log.
    pub(crate) fn advance(&mut self, end: u64) {
        self.end = end;
        self.file.grew_to(end);
    }

    /// Makes all that was written durable. If that fails nobody knows what is: no more is written.
    pub(crate) fn sync(&mut self) -> Result<()> {
        if let Err(cause) = self.file.io.sync() {
            let why = self.poison("failed to sync", &cause);
            return Err(Error::Poisoned(why));
        }
        self.durable = self.end;
        self.synced_at = Instant::now();
        Ok(())
    }

    fn poison(&mut self, what: &str, cause: &std::io::Error) -> String {
        let why = format!("{what} {}: {cause}", self.file.path.display());
        self.poisoned = Some(why.clone());
        why
    }
}
