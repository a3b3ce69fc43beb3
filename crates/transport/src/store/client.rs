//! The asking side.

use super::{Ask, Asked, Fault, Replied};
use crate::link::Link;
use crate::message::{self, Lane};
use crossbeam_channel::{Sender, bounded};
use evenkeel_repository::store::{
    Existing, Listed, Lock, LockMode, MadeFrame, NewObject, RawFrame, Store, StoredObject,
};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The longest body of a message.
const BODY_MAX: usize = 1 << 20;
/// Short reads are made in pieces of this size, kept for the next ones: maps are read leaf by leaf.
const PIECE: u64 = 64 << 10;
/// How many pieces of an object are kept.
const PIECES: usize = 64;

type Answer = io::Result<(u64, Vec<u8>)>;

/// Calls that wait for a reply.
pub(crate) struct Calls {
    link: Link,
    next: AtomicU64,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    calls: HashMap<u64, Sender<Answer>>,
    lost: bool,
}

impl Calls {
    pub(crate) fn new(link: Link) -> Self {
        Self {
            link,
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn ask(&self, ask: Ask) -> Answer {
        self.ask_with(ask, &[])
    }

    fn send(&self, call: u64, ask: Ask, body: &[u8]) -> io::Result<()> {
        let message = message::encode(Lane::Ask, &Asked { call, ask }, body);
        let sent = message.and_then(|message| self.link.send(message));
        sent.map_err(io::Error::other)
    }

    fn ask_with(&self, ask: Ask, body: &[u8]) -> Answer {
        let call = self.number();
        let (sender, receiver) = bounded(1);
        {
            let mut waiting = self.waiting();
            if waiting.lost {
                return Err(lost());
            }
            waiting.calls.insert(call, sender);
        }
        if let Err(error) = self.send(call, ask, body) {
            self.waiting().calls.remove(&call);
            return Err(error);
        }
        receiver.recv().unwrap_or_else(|_| Err(lost()))
    }

    /// Hands a reply to whoever waits for it.
    pub(crate) fn reply(&self, head: &[u8], body: &[u8]) -> evenkeel_op::Result<()> {
        let Replied { call, result } = message::head(head)?;
        let waiting = self.waiting().calls.remove(&call);
        if let Some(sender) = waiting {
            // Whoever asked may have been dropped meanwhile.
            let _ = sender.send(
                result
                    .map(|number| (number, body.to_vec()))
                    .map_err(Fault::error),
            );
        }
        Ok(())
    }

    /// There will be no reply any more.
    pub(crate) fn end(&self) {
        let mut waiting = self.waiting();
        waiting.lost = true;
        waiting.calls.clear();
    }
}

fn lost() -> io::Error {
    io::Error::new(
        io::ErrorKind::NotConnected,
        "the link to the repository is lost",
    )
}

/// A store at the other end of the link.
#[derive(Clone)]
pub struct LinkStore {
    calls: Arc<Calls>,
    place: String,
    compresses: bool,
}

impl fmt::Debug for LinkStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LinkStore({})", self.place)
    }
}

impl LinkStore {
    pub(crate) fn new(calls: Arc<Calls>, place: String) -> Self {
        Self {
            calls,
            place,
            compresses: false,
        }
    }

    /// Leaves the compressing to the side with the repository: blocks cross the link as they are.
    #[must_use]
    pub fn compressing_there(mut self, there: bool) -> Self {
        self.compresses = there;
        self
    }

    fn done(&self, ask: Ask) -> io::Result<()> {
        self.calls.ask(ask).map(|_| ())
    }

    fn held(&self, object: u64) -> Held {
        Held {
            calls: self.calls.clone(),
            object,
        }
    }
}

/// Something of the other side's, given back on drop.
struct Held {
    calls: Arc<Calls>,
    object: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        let object = self.object;
        // A link that is lost gives everything back by itself.
        let _ = self.calls.send(0, Ask::Drop { object }, &[]);
    }
}

impl Store for LinkStore {
    fn create(&self, name: &str, existing: Existing) -> io::Result<Box<dyn NewObject>> {
        let object = self.calls.number();
        self.done(Ask::Create {
            object,
            name: name.to_owned(),
            replace: existing == Existing::Replace,
        })?;
        Ok(Box::new(LinkNew {
            held: self.held(object),
            compresses: self.compresses,
        }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StoredObject>> {
        let object = self.calls.number();
        let name = name.to_owned();
        let (size, _) = self.calls.ask(Ask::Open { object, name })?;
        Ok(Box::new(LinkObject {
            held: self.held(object),
            size,
            pieces: Mutex::default(),
        }))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Listed>> {
        let folder = folder.to_owned();
        let (_, body) = self.calls.ask(Ask::List { folder })?;
        let listed: Vec<(String, u64, bool)> = serde_json::from_slice(&body)?;
        let each = listed.into_iter().map(|(name, size, is_folder)| Listed {
            name,
            size,
            is_folder,
        });
        Ok(each.collect())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let name = name.to_owned();
        self.done(Ask::Remove { name })
    }

    fn make_folder(&self, name: &str) -> io::Result<()> {
        let name = name.to_owned();
        self.done(Ask::MakeFolder { name })
    }

    fn remove_folder(&self, name: &str) -> io::Result<()> {
        let name = name.to_owned();
        self.done(Ask::RemoveFolder { name })
    }

    fn sync_folder(&self, name: &str) -> io::Result<()> {
        let name = name.to_owned();
        self.done(Ask::SyncFolder { name })
    }

    fn try_lock(&self, name: &str, mode: LockMode) -> io::Result<Option<Box<dyn Lock>>> {
        let object = self.calls.number();
        let (taken, _) = self.calls.ask(Ask::Lock {
            object,
            name: name.to_owned(),
            exclusive: mode == LockMode::Exclusive,
        })?;
        let lock = || Box::new(LinkLock(self.held(object))) as Box<dyn Lock>;
        Ok((taken == 1).then(lock))
    }

    fn place(&self) -> String {
        self.place.clone()
    }
}

struct LinkLock(#[allow(dead_code, reason = "given back on drop")] Held);

impl fmt::Debug for LinkLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkLock")
    }
}

impl Lock for LinkLock {}

struct LinkNew {
    held: Held,
    /// The other side compresses.
    compresses: bool,
}

impl NewObject for LinkNew {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let object = self.held.object;
        let mut parts = bytes.chunks(BODY_MAX);
        parts.try_for_each(|part| self.held.calls.send(0, Ask::Write { object }, part))
    }

    fn write_frame(&mut self, frame: &RawFrame<'_>) -> io::Result<Option<MadeFrame>> {
        if !self.compresses {
            return Ok(None);
        }
        let ask = Ask::Frame {
            object: self.held.object,
            level: frame.level,
            seed: frame.seed,
            number: frame.number,
            lengths: frame.lengths.to_vec(),
        };
        let (made, _) = self.held.calls.ask_with(ask, frame.raw)?;
        Ok(Some(MadeFrame {
            length: made as u32,
            crc: (made >> 32) as u32,
        }))
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        let object = self.held.object;
        self.held.calls.ask(Ask::Finish { object }).map(|_| ())
    }
}

struct LinkObject {
    held: Held,
    size: u64,
    /// By number; the lowest number goes first when there are too many.
    pieces: Mutex<BTreeMap<u64, Arc<Vec<u8>>>>,
}

impl LinkObject {
    fn ask(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let (_, body) = self.held.calls.ask(Ask::Read {
            object: self.held.object,
            offset,
            length: length as u32,
        })?;
        if body.len() == length {
            Ok(body)
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    fn piece(&self, number: u64) -> io::Result<Arc<Vec<u8>>> {
        let pieces = || self.pieces.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(piece) = pieces().get(&number) {
            return Ok(piece.clone());
        }
        let start = number * PIECE;
        let length = PIECE.min(self.size.saturating_sub(start)) as usize;
        let piece = Arc::new(self.ask(start, length)?);
        let mut pieces = pieces();
        if pieces.len() >= PIECES {
            pieces.pop_first();
        }
        pieces.insert(number, piece.clone());
        Ok(piece)
    }
}

impl StoredObject for LinkObject {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.size) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if buffer.len() as u64 >= PIECE {
            let mut at = offset;
            for part in buffer.chunks_mut(BODY_MAX) {
                part.copy_from_slice(&self.ask(at, part.len())?);
                at += part.len() as u64;
            }
            return Ok(());
        }
        let mut at = offset;
        let mut rest = buffer;
        while !rest.is_empty() {
            let piece = self.piece(at / PIECE)?;
            let from = &piece[(at % PIECE) as usize..];
            let length = from.len().min(rest.len());
            rest[..length].copy_from_slice(&from[..length]);
            rest = &mut rest[length..];
            at += length as u64;
        }
        Ok(())
    }
}
