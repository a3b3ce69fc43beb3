//! The side that has the repository.

use super::guard::{Access, Guard};
use super::head::CheckedHead;
use super::{Ask, Asked, Fault, Replied};
use crate::link::Link;
use crate::message::{self, Lane};
use crossbeam_channel::{Receiver, Sender, bounded};
use evenkeel_op::{Context, Result};
use evenkeel_repository::WRITER_LOCK;
use evenkeel_repository::store::{
    Existing, FrameEncoder, Lock, LockMode, NewObject, RawFrame, Store, StoredObject,
};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// Threads that do what is asked, so that one waiting for the disk does not hold up the rest.
const THREADS: usize = 4;
/// Asks that wait for a thread; beyond, the other side waits.
const QUEUE: usize = 4;

/// An ask, its body, and the object that was begun for it.
type Line = (Asked, Vec<u8>, Option<Object>);

/// Does to a store what the other side asks.
pub(crate) struct StoreServer {
    store: Arc<dyn Store>,
    guard: Arc<Guard>,
    lines: Vec<Sender<Line>>,
    threads: Vec<JoinHandle<()>>,
    questions: AtomicU64,
}

impl StoreServer {
    pub(crate) fn start(store: Arc<dyn Store>, access: Access, link: &Link) -> Result<Self> {
        let guard = Guard::new(access, &*store).context(|| "failed to look at the repository")?;
        let guard = Arc::new(guard);
        let mut lines = Vec::new();
        let mut threads = Vec::new();
        for _ in 0..THREADS {
            let (line, asks) = bounded(QUEUE);
            let worker = Serving {
                store: store.clone(),
                guard: guard.clone(),
                link: link.clone(),
                objects: HashMap::new(),
                encoder: None,
            };
            lines.push(line);
            threads.push(std::thread::spawn(move || worker.serve(&asks)));
        }
        Ok(Self {
            store,
            guard,
            lines,
            threads,
            questions: AtomicU64::new(0),
        })
    }

    /// Takes an ask.
    pub(crate) fn ask(&self, head: &[u8], body: &[u8]) -> Result<()> {
        let asked: Asked = message::head(head)?;
        if asked.ask.wants_reply() {
            self.questions.fetch_add(1, Ordering::Relaxed);
        }
        // Begun at once: nobody waits for it, and who lists its folder next has to find it there.
        let begun = match &asked.ask {
            Ask::Create { name, replace, .. } => Some(self.create(name, *replace)),
            _ => None,
        };
        let line = asked.ask.object().unwrap_or(asked.call) as usize % THREADS;
        // A thread that is gone has seen the link's end.
        let _ = self.lines[line].send((asked, body.to_vec(), begun));
        Ok(())
    }

    fn create(&self, name: &str, replace: bool) -> Object {
        let existing = match replace {
            true => Existing::Replace,
            false => Existing::Refuse,
        };
        let allowed = self.guard.create(name, replace);
        let created = allowed.and_then(|()| match self.guard.succession(name) {
            None => self.store.create(name, existing),
            Some(may) => Ok(Box::new(CheckedHead {
                store: self.store.clone(),
                guard: self.guard.clone(),
                name: name.to_owned(),
                may,
                bytes: Vec::new(),
            }) as Box<dyn NewObject>),
        });
        match created {
            Ok(new) => Object::New(new),
            Err(error) => Object::Failed(Fault::of(&error)),
        }
    }

    /// Returns how many asks so far wanted a reply.
    pub(crate) fn questions(&self) -> u64 {
        self.questions.load(Ordering::Relaxed)
    }

    /// Gives back everything that the other side held.
    pub(crate) fn end(self) {
        drop(self.lines);
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// Something that the other side holds.
enum Object {
    New(Box<dyn NewObject>),
    /// One that could not be written: why.
    Failed(Fault),
    Stored(Box<dyn StoredObject>),
    Lock(#[allow(dead_code, reason = "held until dropped")] Held),
}

/// A lock that the other side holds.
struct Held {
    lock: Option<Box<dyn Lock>>,
    /// Of the lock under which the repository is changed.
    writing: Option<Arc<Guard>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(guard) = &self.writing {
            guard.end_writing();
        }
        self.lock = None;
    }
}

struct Serving {
    store: Arc<dyn Store>,
    guard: Arc<Guard>,
    link: Link,
    objects: HashMap<u64, Object>,
    /// For frames that are compressed here.
    encoder: Option<FrameEncoder>,
}

impl Serving {
    fn serve(mut self, asks: &Receiver<Line>) {
        for (Asked { call, ask }, body, begun) in asks {
            let wanted = ask.wants_reply();
            let done = self.perform(ask, &body, begun);
            if !wanted {
                continue;
            }
            let (result, body) = match done {
                Ok((number, body)) => (Ok(number), body),
                Err(error) => (Err(Fault::of(&error)), Vec::new()),
            };
            let reply = message::encode(Lane::Reply, &Replied { call, result }, &body);
            if reply.and_then(|reply| self.link.send(reply)).is_err() {
                return;
            }
        }
    }

    fn perform(
        &mut self,
        ask: Ask,
        body: &[u8],
        begun: Option<Object>,
    ) -> io::Result<(u64, Vec<u8>)> {
        let nothing = |()| (0, Vec::new());
        match ask {
            Ask::Create { object, .. } => {
                self.objects.extend(begun.map(|begun| (object, begun)));
                Ok(nothing(()))
            }
            Ask::Write { object } => {
                self.write(object, body);
                Ok(nothing(()))
            }
            Ask::Frame {
                object,
                level,
                seed,
                number,
                lengths,
            } => {
                let frame = RawFrame {
                    level,
                    seed,
                    number,
                    lengths: &lengths,
                    raw: body,
                };
                self.frame(object, &frame).map(|made| (made, Vec::new()))
            }
            Ask::Finish { object } => match self.objects.remove(&object) {
                Some(Object::New(new)) => new.finish().map(nothing),
                Some(Object::Failed(fault)) => Err(fault.error()),
                _ => Err(unknown()),
            },
            Ask::Drop { object } | Ask::Unlock { object } => {
                self.objects.remove(&object);
                Ok(nothing(()))
            }
            Ask::Open { object, name } => self.open(object, &name),
            Ask::Read {
                object,
                offset,
                length,
            } => self.read(object, offset, length),
            Ask::Lock {
                object,
                name,
                exclusive,
            } => self.lock(object, &name, exclusive),
            folder => self.folders(folder),
        }
    }

    fn open(&mut self, object: u64, name: &str) -> io::Result<(u64, Vec<u8>)> {
        self.guard.open(name)?;
        let stored = self.store.open(name)?;
        let size = stored.size();
        let mut ends = Vec::new();
        for range in super::ends(size) {
            let at = ends.len();
            ends.resize(at + (range.end - range.start) as usize, 0);
            stored.read_exact_at(range.start, &mut ends[at..])?;
        }
        self.objects.insert(object, Object::Stored(stored));
        Ok((size, ends))
    }

    fn write(&mut self, object: u64, body: &[u8]) {
        if let Some(Object::New(new)) = self.objects.get_mut(&object)
            && let Err(error) = new.write(body)
        {
            // Dropped, it leaves nothing behind.
            self.objects
                .insert(object, Object::Failed(Fault::of(&error)));
        }
    }

    fn frame(&mut self, object: u64, frame: &RawFrame<'_>) -> io::Result<u64> {
        let encoder = match &mut self.encoder {
            Some(encoder) if encoder.level() == frame.level => encoder,
            other => other.insert(FrameEncoder::new(frame.level).map_err(io::Error::other)?),
        };
        let new = match self.objects.get_mut(&object) {
            Some(Object::New(new)) => new,
            Some(Object::Failed(fault)) => return Err(fault.clone().error()),
            _ => return Err(unknown()),
        };
        let (bytes, made) = encoder.encode(frame)?;
        new.write(bytes)?;
        Ok(u64::from(made.length) | u64::from(made.crc) << 32)
    }

    fn read(&self, object: u64, offset: u64, length: u32) -> io::Result<(u64, Vec<u8>)> {
        let Some(Object::Stored(stored)) = self.objects.get(&object) else {
            return Err(unknown());
        };
        if length as usize > crate::frame::PAYLOAD_MAX / 2 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut buffer = vec![0; length as usize];
        stored.read_exact_at(offset, &mut buffer)?;
        Ok((0, buffer))
    }

    fn lock(&mut self, object: u64, name: &str, exclusive: bool) -> io::Result<(u64, Vec<u8>)> {
        self.guard.lock(name)?;
        let mode = match exclusive {
            true => LockMode::Exclusive,
            false => LockMode::Shared,
        };
        let lock = self.store.try_lock(name, mode)?;
        let taken = u64::from(lock.is_some());
        if let Some(lock) = lock {
            let is_writers = name == WRITER_LOCK && exclusive;
            if is_writers {
                self.guard.begin_writing(&*self.store)?;
            }
            let held = Held {
                lock: Some(lock),
                writing: is_writers.then(|| self.guard.clone()),
            };
            self.objects.insert(object, Object::Lock(held));
        }
        Ok((taken, Vec::new()))
    }

    fn folders(&self, ask: Ask) -> io::Result<(u64, Vec<u8>)> {
        match ask {
            Ask::List { folder } => {
                self.guard.name(&folder)?;
                self.guard.is_of_a_repository(&folder)?;
                let listed = self.store.list(&folder)?;
                let each = listed
                    .into_iter()
                    .map(|one| (one.name, one.size, one.is_folder));
                let each: Vec<(String, u64, bool)> = each.collect();
                return Ok((0, serde_json::to_vec(&each)?));
            }
            Ask::Remove { name } => {
                self.guard.remove(&name)?;
                self.store.remove(&name)?;
            }
            Ask::MakeFolder { name } => {
                self.guard.make_folder(&name)?;
                self.store.make_folder(&name)?;
            }
            Ask::RemoveFolder { name } => {
                self.guard.remove(&name)?;
                self.store.remove_folder(&name)?;
            }
            Ask::SyncFolder { name } => {
                self.guard.name(&name)?;
                self.guard.is_of_a_repository(&name)?;
                self.store.sync_folder(&name)?;
            }
            _ => return Err(unknown()),
        }
        Ok((0, Vec::new()))
    }
}

fn unknown() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "the other host asked for something that it did not open",
    )
}
