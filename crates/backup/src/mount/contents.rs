//! What the files of generations hold: read where it is asked for, and a little ahead.

use super::listing::{Listing, What};
use crossbeam_channel::{Receiver, Sender, bounded};
use evenkeel_mount::Origin;
use evenkeel_op::{Context, Result};
use evenkeel_repository::{FileReader, Reader};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Generations whose names are kept.
const GENERATIONS_KEPT: usize = 4;
/// Files that are kept open: some ten KiB each.
const FILES_KEPT: usize = 512;
/// How far ahead of whoever reads in order.
const AHEAD: u64 = 4 << 20;
/// One read in this many bytes brings everything: what lies together was stored together.
const STRIDE: u64 = 256 << 10;
/// A read that begins so near to where the last one ended continues from it: the kernel asks for
/// several pieces at once, in any order.
const NEAR: u64 = 512 << 10;
/// Who reads ahead, and how much may wait for them.
const AHEAD_THREADS: usize = 2;
const AHEAD_QUEUE: usize = 8;
/// What went wrong, until somebody asks.
const COMPLAINTS: usize = 64;

/// A generation and its names.
pub(super) struct Opened {
    pub(super) reader: Reader,
    pub(super) listing: Listing,
}

/// A file that is being read.
struct OpenFile {
    reader: FileReader,
    /// Where who reads in order comes next.
    next: AtomicU64,
    /// Up to where was read ahead.
    ahead: AtomicU64,
}

/// Generation and number in its listing.
type FileKey = (u32, u32);

/// The content of all generations, from one repository.
pub(super) struct Contents {
    base: Reader,
    generations: Mutex<Vec<(u32, Arc<Opened>)>>,
    files: Mutex<HashMap<FileKey, (Arc<OpenFile>, u64)>>,
    clock: AtomicU64,
    ahead: Sender<(Arc<OpenFile>, std::ops::Range<u64>)>,
    complaints: Sender<String>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Caches: whatever is in them is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Contents {
    /// Reads through `base` and its siblings. What cannot be read is said in the channel.
    pub(super) fn new(base: Reader) -> Result<(Arc<Self>, Receiver<String>)> {
        let (complaints, said) = bounded(COMPLAINTS);
        let (ahead, waiting) = bounded(AHEAD_QUEUE);
        for _ in 0..AHEAD_THREADS {
            let waiting = Receiver::clone(&waiting);
            std::thread::Builder::new()
                .name("read-ahead".to_owned())
                .spawn(move || read_ahead(&waiting))
                .context(|| "failed to start a thread")?;
        }
        let contents = Self {
            base,
            generations: Mutex::default(),
            files: Mutex::default(),
            clock: AtomicU64::new(0),
            ahead,
            complaints,
        };
        Ok((Arc::new(contents), said))
    }

    /// Returns a generation and its names.
    pub(super) fn generation(&self, generation: u32) -> Result<Arc<Opened>> {
        let mut kept = held(&self.generations);
        if let Some(at) = kept.iter().position(|(one, _)| *one == generation) {
            let found = kept.remove(at);
            kept.push(found.clone());
            return Ok(found.1);
        }
        let reader = self.base.sibling(generation)?;
        let listing = Listing::read(&reader)?;
        let opened = Arc::new(Opened { reader, listing });
        if kept.len() == GENERATIONS_KEPT {
            kept.remove(0);
        }
        kept.push((generation, Arc::clone(&opened)));
        Ok(opened)
    }

    fn file(&self, key: FileKey) -> Result<Option<Arc<OpenFile>>> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        if let Some((file, used)) = held(&self.files).get_mut(&key) {
            *used = now;
            return Ok(Some(Arc::clone(file)));
        }
        let opened = self.generation(key.0)?;
        let Some(What::File(record)) = opened.listing.get(key.1).map(|listed| &listed.what) else {
            return Ok(None);
        };
        let file = Arc::new(OpenFile {
            reader: opened.reader.open_file(record)?,
            next: AtomicU64::new(0),
            ahead: AtomicU64::new(0),
        });
        let mut files = held(&self.files);
        if files.len() >= FILES_KEPT {
            let oldest = files.iter().min_by_key(|(_, (_, used))| *used);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                files.remove(&oldest);
            }
        }
        files.insert(key, (Arc::clone(&file), now));
        Ok(Some(file))
    }

    /// Reads a file of a generation; returns how many bytes there were.
    pub(super) fn read(&self, key: FileKey, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file(key).and_then(|file| match file {
            Some(file) => {
                self.look_ahead(&file, offset, buffer.len() as u64);
                file.reader.read_at(offset, buffer).map(Some)
            }
            None => Ok(None),
        });
        match read {
            Ok(Some(length)) => Ok(length),
            Ok(None) => Err(rustix::io::Errno::ISDIR.into()),
            Err(error) => Err(self.complain(&error)),
        }
    }

    /// Says why something cannot be read, where it can be heard: whoever reads learns only that.
    pub(super) fn complain(&self, error: &evenkeel_op::Error) -> io::Error {
        // When nobody listens, the first complaints are the ones to keep.
        let _ = self.complaints.try_send(error.chain());
        rustix::io::Errno::IO.into()
    }

    fn look_ahead(&self, file: &Arc<OpenFile>, offset: u64, length: u64) {
        let end = offset + length;
        let expected = file.next.swap(end, Ordering::Relaxed);
        if offset == 0 || offset.abs_diff(expected) > NEAR {
            return;
        }
        let reached = file.ahead.load(Ordering::Relaxed);
        let begun = if reached.abs_diff(end) > 2 * AHEAD {
            end
        } else {
            reached.max(end)
        };
        let until = (end + AHEAD).min(file.reader.meta().size);
        if until > begun && begun < end + AHEAD / 2 {
            file.ahead.store(until, Ordering::Relaxed);
            // When all are busy, what is asked for comes first.
            let _ = self.ahead.try_send((Arc::clone(file), begun..until));
        }
    }
}

fn read_ahead(waiting: &Receiver<(Arc<OpenFile>, std::ops::Range<u64>)>) {
    while let Ok((file, range)) = waiting.recv() {
        for at in range.step_by(STRIDE as usize) {
            // Who asks for it in earnest learns what is wrong.
            if file.reader.read_at(at, &mut [0]).is_err() {
                break;
            }
        }
    }
}

/// One generation, for a scratch.
pub(super) struct OneGeneration {
    pub(super) contents: Arc<Contents>,
    pub(super) generation: u32,
}

impl Origin for OneGeneration {
    fn read_at(&self, file: u64, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let number = u32::try_from(file).map_err(|_| io::Error::from(rustix::io::Errno::NOENT))?;
        let key = (self.generation, number);
        match self.contents.read(key, offset, buffer)? {
            length if length == buffer.len() => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
