//! The receiver as a store of a few objects: `list`, `here`, `have/FILE-STRETCH`, `put/NUMBER` and `end`. There
//! is nothing to list or remove, and no lock.

use super::file::SentBlock;
use super::judge::{LIST_MAX, unsound};
use super::listed::Listed;
use super::{Receiver, Receiving};
use crate::clone::list::{END, HAVE, HERE, LIST, PUT};
use crate::clone::pack::{PACK_MAX, Step};
use crate::clone::receive::file::There;
use evenkeel_op::Result;
use evenkeel_repository::store::{
    Existing, Listed as Entry, Lock, LockMode, NewObject, Store, StoredObject,
};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes of packs that may be on their way at a time, of all threads of a sender.
const BUFFERED_MAX: u64 = 32 * PACK_MAX as u64;
/// Bytes of answers that a sender may keep at a time: all its threads need an eighth of that.
const ANSWERED_MAX: u64 = 64 << 20;
/// The longest end.
const END_MAX: u64 = 16 << 20;

impl Store for Receiver {
    fn create(&self, name: &str, _existing: Existing) -> io::Result<Box<dyn NewObject>> {
        let what = match name.split_once('/') {
            None if name == LIST => Sent::List,
            None if name == END => Sent::End,
            Some((PUT, number)) if number.parse::<u64>().is_ok() => Sent::Pack,
            _ => return Err(denied(name)),
        };
        Ok(Box::new(Arriving {
            to: Arc::clone(&self.0),
            what,
            bytes: Vec::new(),
        }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StoredObject>> {
        let numbers = |text: &str| {
            let (file, stretch) = text.split_once('-')?;
            Some((file.parse::<usize>().ok()?, stretch.parse::<u64>().ok()?))
        };
        let asked = match name.split_once('/') {
            None if name == HERE => self.0.here(),
            Some((HAVE, text)) => match numbers(text) {
                Some((file, stretch)) => self.0.have(file, stretch),
                None => return Err(denied(name)),
            },
            _ => return Err(denied(name)),
        };
        let said = asked.and_then(|bytes| Said::of(&self.0, bytes));
        Ok(Box::new(self.0.noted(said)?))
    }

    fn list(&self, _folder: &str) -> io::Result<Vec<Entry>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Err(denied(name))
    }

    fn make_folder(&self, name: &str) -> io::Result<()> {
        Err(denied(name))
    }

    fn remove_folder(&self, name: &str) -> io::Result<()> {
        Err(denied(name))
    }

    fn sync_folder(&self, name: &str) -> io::Result<()> {
        Err(denied(name))
    }

    fn try_lock(&self, name: &str, _mode: LockMode) -> io::Result<Option<Box<dyn Lock>>> {
        Err(denied(name))
    }

    fn place(&self) -> String {
        self.0.wanted.target.display().to_string()
    }

    fn directory(&self) -> Option<&Path> {
        Some(&self.0.wanted.target)
    }
}

fn denied(name: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("a clone has no '{name}'"),
    )
}

/// An answer, until the sender lets go of it.
struct Said {
    to: Arc<Receiving>,
    bytes: Vec<u8>,
}

impl Said {
    fn of(to: &Arc<Receiving>, bytes: Vec<u8>) -> Result<Self> {
        let length = bytes.len() as u64;
        let together = to.answered.fetch_add(length, Ordering::Relaxed) + length;
        let said = Self {
            to: Arc::clone(to),
            bytes,
        };
        match together > ANSWERED_MAX {
            true => Err(unsound("asked for more at a time than it may")),
            false => Ok(said),
        }
    }
}

impl Drop for Said {
    fn drop(&mut self) {
        let length = self.bytes.len() as u64;
        self.to.answered.fetch_sub(length, Ordering::Relaxed);
    }
}

impl StoredObject for Said {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = self
            .bytes
            .get(start..)
            .and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

enum Sent {
    List,
    Pack,
    End,
}

/// An object that is being sent.
struct Arriving {
    to: Arc<Receiving>,
    what: Sent,
    bytes: Vec<u8>,
}

impl Arriving {
    fn take(&self) -> Result<()> {
        match self.what {
            Sent::List => self.to.list(&self.bytes),
            Sent::Pack => self.to.pack(&self.bytes),
            Sent::End => self.to.end(&self.bytes),
        }
    }
}

impl NewObject for Arriving {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (most, together) = match self.what {
            Sent::List => (LIST_MAX, LIST_MAX),
            Sent::Pack => (PACK_MAX as u64, BUFFERED_MAX),
            Sent::End => (END_MAX, LIST_MAX),
        };
        let length = bytes.len() as u64;
        let buffered = self.to.buffered.fetch_add(length, Ordering::Relaxed) + length;
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() as u64 > most || buffered > together {
            return self
                .to
                .noted(Err(unsound("sent more at a time than it may")));
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.to.noted(self.take())
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        let length = self.bytes.len() as u64;
        self.to.buffered.fetch_sub(length, Ordering::Relaxed);
    }
}

impl Receiving {
    /// Keeps the first error, and passes it on in words.
    fn noted<T>(&self, outcome: Result<T>) -> io::Result<T> {
        outcome.map_err(|error| {
            let text = error.chain();
            let mut failed = self.failed();
            failed.get_or_insert(error);
            io::Error::other(text)
        })
    }

    /// Says of which files something is there.
    fn here(&self) -> Result<Vec<u8>> {
        let listed = self.listed()?;
        let files = listed.files.iter();
        Ok(files
            .map(|file| u8::from(file.there != There::Nothing))
            .collect())
    }

    fn have(&self, file: usize, stretch: u64) -> Result<Vec<u8>> {
        let listed = self.listed()?;
        let file = listed.files.get(file);
        let file = file.ok_or_else(|| unsound("asked for a file that it did not list"))?;
        let hashes = file.have(stretch, self.like.as_ref())?;
        Ok(hashes.concat())
    }

    /// Does what a pack says.
    fn pack(&self, bytes: &[u8]) -> Result<()> {
        let listed = self.listed()?;
        let mut rest = bytes;
        while !rest.is_empty() {
            let step = Step::read(&mut rest).map_err(|_| unsound("sent no pack of blocks"))?;
            self.step(&listed, step)?;
        }
        listed.count_sent(bytes.len() as u64);
        fail::fail_point!("clone::received");
        Ok(())
    }

    fn step(&self, listed: &Listed, step: Step<'_>) -> Result<()> {
        let like = self.like.as_ref();
        let file = |number: u32| {
            let file = listed.files.get(number as usize);
            file.ok_or_else(|| unsound("sent a file that it did not list"))
        };
        match step {
            Step::Block {
                file: number,
                block,
                hash,
                parts,
                zstd,
                bytes,
            } => {
                let sent = SentBlock {
                    block,
                    hash,
                    parts,
                    zstd,
                    bytes,
                };
                file(number)?.block(&sent, like)?;
                listed.blocks_sent.fetch_add(1, Ordering::Relaxed);
            }
            Step::Holes {
                file: number,
                blocks,
            } => file(number)?.holes(blocks, like)?,
            Step::End {
                file: number,
                stretch,
                hash,
            } => {
                let reused = file(number)?.end(stretch, hash)?;
                listed.blocks_reused.fetch_add(reused, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}
