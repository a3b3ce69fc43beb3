//! The content of one file, leaf by leaf.

use super::cache::FrameCache;
use crate::catalog::Catalog;
use crate::fault::damaged;
use crate::format::frame::Frame;
use crate::ids::BlockHash;
use crate::list::{FileMeta, FileRecord};
use crate::lru::Lru;
use crate::map::tree::Tree;
use crate::map::{BlockAddress, Entry, FAN_OUT};
use crate::mutex::held;
use evenkeel_op::Result;
use std::sync::{Arc, Mutex};

/// Decoded leaves kept for reads in the middle of files: 16 KiB of memory each, and with blocks of
/// 16 KiB they say where 4 MiB lie.
const LEAVES_KEPT: usize = 512;

/// Generation, file, leaf.
type LeafKey = (u32, u64, u64);

/// Leaves of all files, shared by all that read them.
pub(crate) struct LeafCache {
    leaves: Mutex<Lru<LeafKey, Arc<Vec<Entry>>>>,
}

impl LeafCache {
    pub(crate) fn new() -> Self {
        Self {
            leaves: Mutex::new(Lru::new(LEAVES_KEPT)),
        }
    }
}

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockContent<'a> {
    /// Its bytes. Fewer than the block has: the rest is a hole.
    Data(&'a [u8]),
    /// Allocated, all zero.
    Zero,
    /// Not allocated in the source.
    Hole,
}

/// Reads a file of a generation. Many threads may read its leaves at once.
pub struct FileReader {
    catalog: Arc<Catalog>,
    cache: Arc<FrameCache>,
    leaves: Arc<LeafCache>,
    generation: u32,
    file: u64,
    meta: FileMeta,
    tree: Tree,
}

impl FileReader {
    pub(crate) fn new(
        catalog: Arc<Catalog>,
        cache: Arc<FrameCache>,
        (generation, leaves): (u32, Arc<LeafCache>),
        record: &FileRecord,
    ) -> Result<Self> {
        Ok(Self {
            leaves,
            generation,
            file: record.id,
            tree: Tree::new(catalog.clone(), record)?,
            meta: record.meta.clone(),
            catalog,
            cache,
        })
    }

    /// Returns what was known of the file.
    #[must_use]
    pub fn meta(&self) -> &FileMeta {
        &self.meta
    }

    /// Returns how many leaves of 256 blocks the file has.
    #[must_use]
    pub fn leaf_count(&self) -> u64 {
        self.tree.blocks().div_ceil(FAN_OUT)
    }

    /// Reads a leaf and hands over its blocks in order: number in the file, content. Every
    /// block's bytes were checked against its hash before.
    pub fn read_leaf(
        &self,
        index: u64,
        mut block: impl FnMut(u64, BlockContent<'_>) -> Result<()>,
    ) -> Result<()> {
        let leaf = self.tree.leaf(index)?;
        let first = index * FAN_OUT;
        let mut frames = Frames::new(&self.catalog, &self.cache);
        for (i, entry) in leaf.entries.iter().enumerate() {
            let number = first + i as u64;
            let content = frames.content(entry, self.meta.block_length(number))?;
            block(number, content)?;
        }
        Ok(())
    }

    /// Fills `buffer` with the bytes from `offset`; returns how many there were, fewer only at the
    /// end of the file. Holes are zeros. Every block that was looked at was checked.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let left = self.meta.size.saturating_sub(offset);
        let length = left.min(buffer.len() as u64) as usize;
        let block_size = u64::from(self.meta.block_size);
        let mut frames = Frames::new(&self.catalog, &self.cache);
        let mut leaf: Option<(u64, Arc<Vec<Entry>>)> = None;
        let mut done = 0;
        while done < length {
            let at = offset + done as u64;
            let block = at / block_size;
            let index = block / FAN_OUT;
            let entries = match &leaf {
                Some((kept, entries)) if *kept == index => entries,
                _ => &leaf.insert((index, self.kept_leaf(index)?)).1,
            };
            let entry = entries.get((block % FAN_OUT) as usize);
            let content = frames.content(
                entry.unwrap_or(&Entry::Absent),
                self.meta.block_length(block),
            )?;
            let within = (at % block_size) as usize;
            let part = (self.meta.block_length(block) - within).min(length - done);
            let into = &mut buffer[done..done + part];
            let bytes = match content {
                BlockContent::Data(bytes) => bytes.get(within..).unwrap_or_default(),
                BlockContent::Zero | BlockContent::Hole => &[],
            };
            // What is beyond the bytes is a hole.
            let bytes = &bytes[..bytes.len().min(part)];
            into[..bytes.len()].copy_from_slice(bytes);
            into[bytes.len()..].fill(0);
            done += part;
        }
        Ok(length)
    }

    fn kept_leaf(&self, index: u64) -> Result<Arc<Vec<Entry>>> {
        let key = (self.generation, self.file, index);
        if let Some(leaf) = held(&self.leaves.leaves).get(&key) {
            return Ok(leaf);
        }
        let leaf = Arc::new(self.tree.leaf(index)?.entries);
        held(&self.leaves.leaves).put(key, leaf.clone(), 1);
        Ok(leaf)
    }
}

impl FileReader {
    /// Reads some blocks of the leaf that has these entries, as [`FileReader::read_leaf`] does.
    pub(crate) fn read_some(
        &self,
        entries: &[Entry],
        blocks: &[u64],
        mut block: impl FnMut(u64, BlockContent<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut frames = Frames::new(&self.catalog, &self.cache);
        for &number in blocks {
            let entry = entries.get((number % FAN_OUT) as usize);
            let entry = entry.unwrap_or(&Entry::Absent);
            let content = frames.content(entry, self.meta.block_length(number))?;
            block(number, content)?;
        }
        Ok(())
    }
}

/// Checks entries as restoring them would; `blocks` gives each entry's number in the file.
pub(crate) fn read_entries<'a>(
    catalog: &Catalog,
    cache: &FrameCache,
    meta: &FileMeta,
    entries: impl Iterator<Item = (u64, &'a Entry)>,
    mut outcome: impl FnMut(u64, &Entry, Result<()>),
) {
    let mut frames = Frames::new(catalog, cache);
    for (number, entry) in entries {
        let read = frames.content(entry, meta.block_length(number));
        let read = read.map(|_| ());
        outcome(number, entry, read);
    }
}

/// Turns entries into content; keeps the last frame at hand, for neighbours share it.
struct Frames<'c> {
    catalog: &'c Catalog,
    cache: &'c FrameCache,
    last: Option<((u32, u32, u32), Arc<Frame>)>,
}

impl<'c> Frames<'c> {
    fn new(catalog: &'c Catalog, cache: &'c FrameCache) -> Self {
        Self {
            catalog,
            cache,
            last: None,
        }
    }

    fn content(&mut self, entry: &Entry, length: usize) -> Result<BlockContent<'_>> {
        let (place, hash, tail_hole) = match *entry {
            Entry::Hole => return Ok(BlockContent::Hole),
            Entry::Zero => return Ok(BlockContent::Zero),
            Entry::Absent => return Err(damaged("a map", "it does not give a block size")),
            Entry::Data {
                place,
                hash,
                tail_hole,
            } => (place, hash, tail_hole),
        };
        let key = (place.generation, place.pack, place.frame);
        if self.last.as_ref().is_none_or(|(last, _)| *last != key) {
            self.last = Some((key, self.cache.get(self.catalog, key)?));
        }
        let slot = self
            .last
            .as_ref()
            .and_then(|(_, frame)| frame.slot(place.slot));
        let bytes = slot.filter(|bytes| {
            let fits = if tail_hole {
                bytes.len() < length
            } else {
                bytes.len() == length
            };
            fits && !bytes.is_empty()
        });
        match bytes {
            Some(bytes) if BlockHash::of(bytes) == hash => Ok(BlockContent::Data(bytes)),
            _ => Err(wrong_block(place)),
        }
    }
}

fn wrong_block(place: BlockAddress) -> evenkeel_op::Error {
    let pack = format!("generations/{}/pack-{:04}", place.generation, place.pack);
    damaged(
        &pack,
        format!(
            "slot {} of frame {} is not the block that was stored",
            place.slot, place.frame
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Begin, Create, Repository, RunKind};

    #[test]
    fn a_block_that_its_map_does_not_mean_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let repo = Repository::create(dir.path(), Create::default()).unwrap();
        let writer = repo.begin(Begin::new(RunKind::Full, "t")).unwrap();
        let mut worker = writer.worker().unwrap();
        let meta = FileMeta::file("f", 1024, 512);
        let builder = writer.file_builder(meta.clone(), None).unwrap();
        let mut leaf = builder.leaf(0).unwrap();
        leaf.put(&mut worker, 0, &[1; 512]).unwrap();
        leaf.put(&mut worker, 1, &[2; 512]).unwrap();
        builder.set_leaf(leaf).unwrap();
        builder.finish().unwrap();
        worker.finish().unwrap();
        writer.commit(0.into(), 0.into()).unwrap();
        let head = repo.head().unwrap();
        let catalog = Catalog::new(repo.store().clone(), repo.id(), repo.keys().clone(), head);
        let cache = FrameCache::new(1 << 20);
        let is_right = |slot, byte, tail_hole, number| {
            let entry = Entry::Data {
                place: BlockAddress {
                    generation: 1,
                    pack: 0,
                    frame: 0,
                    slot,
                },
                hash: BlockHash::of(&[byte; 512]),
                tail_hole,
            };
            let mut right = None;
            let entries = std::iter::once((number, &entry));
            read_entries(&catalog, &cache, &meta, entries, |_, _, read| {
                right = Some(read.is_ok())
            });
            right.unwrap()
        };
        assert!(is_right(0, 1, false, 0));
        assert!(is_right(1, 2, false, 1));
        // Another block's place, a slot that is not there, a length that does not fit.
        assert!(!is_right(0, 2, false, 0));
        assert!(!is_right(2, 1, false, 0));
        assert!(!is_right(0, 1, true, 0));
        assert!(!is_right(0, 1, false, 2));
    }
}
