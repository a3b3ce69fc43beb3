//! An object being read. Each request takes tens of milliseconds however little it asks for, so
//! that little is asked for at once: the beginning comes with the opening, short reads in pieces
//! that are kept, long ones that follow each other ahead of being wanted.

use crate::fault::{Asked, io_error};
use crate::retry::retried;
use crate::shared::{Shared, TOGETHER, head_of};
use crate::window::Version;
use bytes::Bytes;
use evenkeel_repository::store::StoredObject;
use object_store::path::Path;
use object_store::{Error as Fault, ObjectMeta, ObjectStore, ObjectStoreExt};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;

/// What comes with the opening, and the length of a piece.
const PIECE: u64 = 256 << 10;
/// What comes at once when an object is read from front to back.
const RUN: u64 = 4 << 20;

/// A finished object.
pub(crate) struct Reading {
    shared: Arc<Shared>,
    of: Version,
    size: u64,
    beginning: Bytes,
    /// Where the last long read ended.
    reached: AtomicU64,
}

impl Reading {
    pub(crate) fn open(shared: Arc<Shared>, name: &str) -> io::Result<Self> {
        let found = shared.wait(begin(shared.objects.clone(), shared.path(name)));
        Self::of(shared, name, found)
    }

    /// Opens many, so many at a time that none waits for another's round trip.
    pub(crate) fn open_all(shared: &Arc<Shared>, names: &[String]) -> Vec<io::Result<Self>> {
        let turns = Arc::new(Semaphore::new(TOGETHER));
        let ask = |name: &String| {
            let (objects, path, turns) = (shared.objects.clone(), shared.path(name), turns.clone());
            shared.runtime().spawn(async move {
                let _turn = turns.acquire().await;
                begin(objects, path).await
            })
        };
        let asked: Vec<_> = names.iter().map(ask).collect();
        let each = asked.into_iter().zip(names);
        each.map(|(asked, name)| {
            let found = shared.wait(asked).map_err(io::Error::other)?;
            Self::of(shared.clone(), name, found)
        })
        .collect()
    }

    fn of(
        shared: Arc<Shared>,
        name: &str,
        found: Result<(ObjectMeta, Bytes), Fault>,
    ) -> io::Result<Self> {
        let (meta, beginning) = found.map_err(|error| io_error(Asked::Read, error))?;
        shared.saw(name, meta.e_tag.clone(), meta.version);
        Ok(Self {
            size: meta.size,
            of: Version {
                path: meta.location,
                e_tag: meta.e_tag,
            },
            beginning,
            reached: AtomicU64::new(u64::MAX),
            shared,
        })
    }

    /// Fills a buffer from blocks of `length` that are kept a while.
    fn read_blocks(&self, length: u64, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let (mut at, mut rest) = (offset, buffer);
        while !rest.is_empty() {
            let start = at - at % length;
            let end = (start + length).min(self.size);
            let block = self.shared.windows.get(&self.shared, &self.of, start..end);
            let block = block.map_err(|error| io_error(Asked::Read, error))?;
            let from = block.get((at - start) as usize..).unwrap_or_default();
            if from.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let some = from.len().min(rest.len());
            rest[..some].copy_from_slice(&from[..some]);
            rest = &mut rest[some..];
            at += some as u64;
        }
        Ok(())
    }
}

/// Asks what an object is and how it begins.
async fn begin(objects: Arc<dyn ObjectStore>, path: Path) -> Result<(ObjectMeta, Bytes), Fault> {
    retried!(async {
        match objects.get_opts(&path, head_of(PIECE)).await {
            Ok(found) => {
                let mut meta = found.meta.clone();
                meta.location = path.clone();
                Ok((meta, found.bytes().await?))
            }
            // Of nothing, no range can be had.
            Err(error @ Fault::Generic { .. }) => match objects.head(&path).await {
                Ok(meta) if meta.size == 0 => Ok((meta, Bytes::new())),
                _ => Err(error),
            },
            Err(error) => Err(error),
        }
    })
}

impl StoredObject for Reading {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let length = buffer.len() as u64;
        let end = offset.checked_add(length).filter(|&end| end <= self.size);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        if end <= self.beginning.len() as u64 {
            buffer.copy_from_slice(&self.beginning[offset as usize..end as usize]);
            return Ok(());
        }
        if length < PIECE / 2 {
            return self.read_blocks(PIECE, offset, buffer);
        }
        let follows = self.reached.swap(end, Ordering::Relaxed) == offset;
        if follows || offset == 0 {
            let next = (end - end % RUN + RUN).min(self.size);
            if next < self.size {
                let ahead = next..(next + RUN).min(self.size);
                self.shared.windows.want(&self.shared, &self.of, ahead);
            }
            return self.read_blocks(RUN, offset, buffer);
        }
        let read = self.of.read(&*self.shared.objects, offset..end);
        let bytes = self
            .shared
            .wait(read)
            .map_err(|error| io_error(Asked::Read, error))?;
        buffer.copy_from_slice(&bytes);
        Ok(())
    }
}
