//! One file of the target: what is there of it, what comes, and whether that is all.

use super::judge::unsound;
use super::like::Like;
use crate::clone::list::{
    HOLE, Hash, LACKING, STRETCH, blocks, blocks_of, bytes_of, hash, hash_all, stretches,
};
use evenkeel_op::own_directory::shown;
use evenkeel_op::{Context, Error, Result};
use evenkeel_repository::FileMeta;
use rustix::fs::{FallocateFlags, OFlags, SeekFrom};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What there is of a file before anything is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum There {
    Nothing,
    /// What an interrupted run wrote.
    Staged,
    /// A file of that name in the directory that the target should be like.
    Like,
}

/// Such a file.
#[derive(Debug)]
pub(super) struct ReceivedFile {
    pub(super) meta: FileMeta,
    /// Where it is written.
    pub(super) path: PathBuf,
    /// Where it is below its root.
    pub(super) relative: PathBuf,
    pub(super) there: There,
    underway: Mutex<Underway>,
    /// Blocks of stretches of which not all was said, of all files.
    together: Arc<AtomicU64>,
}

/// Such blocks that there may be: sixteen threads with two stretches each have an eighth of them.
const TOGETHER_MAX: u64 = 256 * STRETCH;

#[derive(Debug, Default)]
struct Underway {
    open: Option<Arc<File>>,
    /// Stretches of which not all was said.
    stretches: BTreeMap<u64, Stretch>,
    /// The hashes of those of which all was said.
    done: BTreeMap<u64, Hash>,
}

#[derive(Debug)]
struct Stretch {
    hashes: Vec<Hash>,
    /// Blocks that were sent, or said to be holes.
    said: u64,
}

/// A block that was sent.
pub(super) struct SentBlock<'a> {
    pub(super) block: u64,
    pub(super) hash: Hash,
    pub(super) parts: Vec<Range<u32>>,
    pub(super) zstd: bool,
    pub(super) bytes: &'a [u8],
}

impl ReceivedFile {
    pub(super) fn new(
        meta: FileMeta,
        (path, relative): (PathBuf, PathBuf),
        there: There,
        together: &Arc<AtomicU64>,
    ) -> Self {
        Self {
            meta,
            path,
            relative,
            there,
            underway: Mutex::default(),
            together: Arc::clone(together),
        }
    }

    fn underway(&self) -> MutexGuard<'_, Underway> {
        self.underway.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the file to be written; makes it of what is there when that was not done yet.
    pub(super) fn open(&self, like: Option<&Like>) -> Result<Arc<File>> {
        let mut underway = self.underway();
        if let Some(file) = &underway.open {
            return Ok(Arc::clone(file));
        }
        let place = || shown(&self.path).display().to_string();
        // Nobody else enters the directory, and what is no file in it was removed.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&self.path)
            .context(|| format!("failed to create {}", place()))?;
        let found = file
            .metadata()
            .context(|| format!("failed to look at {}", place()))?;
        if !found.is_file() || found.nlink() > 1 {
            return Err(Error::refused(format!(
                "{} is not a separate file",
                place()
            )));
        }
        if let (There::Like, Some(like)) = (self.there, like) {
            like.give(&self.relative, &file, self.meta.size)?;
        }
        file.set_len(self.meta.size)
            .context(|| format!("failed to size {}", place()))?;
        let file = Arc::new(file);
        underway.open = Some(Arc::clone(&file));
        Ok(file)
    }

    /// Returns the hashes of the blocks of a stretch as they are there. Holes are worth no hash.
    pub(super) fn have(&self, stretch: u64, like: Option<&Like>) -> Result<Vec<Hash>> {
        let size = self.meta.size;
        let range = blocks_of(stretch, size);
        if range.is_empty() || self.underway().done.contains_key(&stretch) {
            return Err(self.unsound("asked for a stretch that there is not to be sent"));
        }
        let file = self.open(like)?;
        let mut buffer = Vec::new();
        let mut hashes = Vec::with_capacity((range.end - range.start) as usize);
        for block in range {
            let place = bytes_of(block, size);
            if is_hole(&file, &place) {
                hashes.push(LACKING);
                continue;
            }
            buffer.resize((place.end - place.start) as usize, 0);
            file.read_exact_at(&mut buffer, place.start)
                .context(|| format!("failed to read {}", shown(&self.path).display()))?;
            hashes.push(hash(&buffer));
        }
        *self.begun(&mut self.underway(), stretch)? = Stretch {
            hashes: hashes.clone(),
            said: 0,
        };
        Ok(hashes)
    }

    /// Writes a block that was sent.
    pub(super) fn block(&self, sent: &SentBlock<'_>, like: Option<&Like>) -> Result<()> {
        let place = self.place(sent.block..sent.block.saturating_add(1))?;
        let length = (place.end - place.start) as usize;
        let data = match sent.zstd {
            true => zstd::bulk::decompress(sent.bytes, length)
                .map(Cow::Owned)
                .map_err(|_| self.unsound("sent a block that is not what it is said to be"))?,
            false => Cow::Borrowed(sent.bytes),
        };
        if data.len() != length || hash(&data) != sent.hash || [HOLE, LACKING].contains(&sent.hash)
        {
            return Err(self.unsound("sent a block that is not what it is said to be"));
        }
        let file = self.open(like)?;
        let failed = || format!("failed to write {}", shown(&self.path).display());
        let is_sparse = !sent.parts.is_empty();
        if is_sparse {
            self.refuse_strange(&sent.parts, &data)?;
            empty(&file, &place).context(failed)?;
        }
        let whole = 0..length as u32;
        let parts = match is_sparse {
            true => sent.parts.as_slice(),
            false => std::slice::from_ref(&whole),
        };
        for part in parts {
            let bytes = &data[part.start as usize..part.end as usize];
            file.write_all_at(bytes, place.start + u64::from(part.start))
                .context(failed)?;
        }
        self.said(sent.block..sent.block + 1, sent.hash)
    }

    /// Parts that are no holes come one after the other, and what is between them is nothing.
    fn refuse_strange(&self, parts: &[Range<u32>], data: &[u8]) -> Result<()> {
        let strange = || self.unsound("sent a block whose holes are not empty");
        let mut at = 0;
        for part in parts {
            let gap = data.get(at as usize..part.start as usize);
            if gap.is_none_or(|gap| gap.iter().any(|byte| *byte != 0)) || part.start >= part.end {
                return Err(strange());
            }
            at = part.end;
        }
        let rest = data.get(at as usize..).ok_or_else(strange)?;
        match rest.iter().all(|byte| *byte == 0) {
            true => Ok(()),
            false => Err(strange()),
        }
    }

    /// Makes blocks holes.
    pub(super) fn holes(&self, blocks: Range<u64>, like: Option<&Like>) -> Result<()> {
        let place = self.place(blocks.clone())?;
        let file = self.open(like)?;
        empty(&file, &place)
            .context(|| format!("failed to write {}", shown(&self.path).display()))?;
        self.said(blocks, HOLE)
    }

    /// Returns the bytes of blocks that may be sent now: all of one stretch, of which not all was said.
    fn place(&self, range: Range<u64>) -> Result<Range<u64>> {
        let size = self.meta.size;
        let stretch = range.start / STRETCH;
        let all = blocks_of(stretch, size);
        let is_in = range.start < range.end && range.end <= all.end && range.end <= blocks(size);
        if !is_in || self.underway().done.contains_key(&stretch) {
            return Err(self.unsound("sent blocks that it does not have, or had sent"));
        }
        Ok(bytes_of(range.start, size).start..bytes_of(range.end - 1, size).end)
    }

    fn said(&self, range: Range<u64>, hash: Hash) -> Result<()> {
        let stretch = range.start / STRETCH;
        let mut underway = self.underway();
        let known = self.begun(&mut underway, stretch)?;
        for block in range {
            known.hashes[(block % STRETCH) as usize] = hash;
            known.said += 1;
        }
        Ok(())
    }

    /// Returns what was said of a stretch so far.
    fn begun<'a>(&self, underway: &'a mut Underway, stretch: u64) -> Result<&'a mut Stretch> {
        match underway.stretches.entry(stretch) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(free) => {
                let range = blocks_of(stretch, self.meta.size);
                let length = range.end - range.start;
                let others = self.together.fetch_add(length, Ordering::Relaxed);
                if others + length > TOGETHER_MAX {
                    return Err(self.unsound("began more than it may at a time"));
                }
                Ok(free.insert(Stretch {
                    hashes: vec![LACKING; length as usize],
                    said: 0,
                }))
            }
        }
    }

    /// Ends a stretch: all of it must be there, with this hash. Returns how many of its blocks were there
    /// before.
    pub(super) fn end(&self, stretch: u64, hash: Hash) -> Result<u64> {
        let mut underway = self.underway();
        let Some(known) = underway.stretches.remove(&stretch) else {
            return Err(self.unsound("ended a stretch that it had not begun"));
        };
        let length = known.hashes.len() as u64;
        self.together.fetch_sub(length, Ordering::Relaxed);
        if known.hashes.contains(&LACKING) || hash_all(&known.hashes) != hash {
            return Err(self.unsound("did not send all that differs"));
        }
        underway.done.insert(stretch, hash);
        if underway.done.len() as u64 == stretches(self.meta.size) {
            underway.open = None;
        }
        Ok(length.saturating_sub(known.said))
    }

    /// Closes the file; whoever opens it again sizes it again.
    pub(super) fn close(&self) {
        self.underway().open = None;
    }

    /// Returns the hashes of all stretches, in their order; none when one is lacking.
    pub(super) fn hashes(&self) -> Option<Vec<Hash>> {
        let underway = self.underway();
        let all = underway.done.len() as u64 == stretches(self.meta.size);
        all.then(|| underway.done.values().copied().collect())
    }

    fn unsound(&self, what: &str) -> Error {
        let name = self.meta.name.escape_debug();
        unsound(&format!("{what}, of '{name}'"))
    }
}

fn is_hole(file: &File, place: &Range<u64>) -> bool {
    match rustix::fs::seek(file, SeekFrom::Data(place.start)) {
        Ok(data) => data >= place.end,
        Err(error) => error == rustix::io::Errno::NXIO,
    }
}

/// Makes a range a hole, or zeros where the file system has none.
fn empty(file: &File, place: &Range<u64>) -> std::io::Result<()> {
    if is_hole(file, place) {
        return Ok(());
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    if rustix::fs::fallocate(file, flags, place.start, place.end - place.start).is_ok() {
        return Ok(());
    }
    let zeros = vec![0; 1 << 20];
    let mut at = place.start;
    while at < place.end {
        let part = (place.end - at).min(zeros.len() as u64);
        file.write_all_at(&zeros[..part as usize], at)?;
        at += part;
    }
    Ok(())
}
