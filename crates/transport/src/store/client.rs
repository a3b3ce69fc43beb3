//! The asking side.

use super::Ask;
use super::calls::{Calls, Pending};
use super::kept::Kept;
use super::object::LinkObject;
use evenkeel_repository::store::{
    Existing, Listed, Lock, LockMode, MadeFrame, NewObject, RawFrame, Store, StoredObject,
};
use std::fmt;
use std::io;
use std::sync::Arc;

/// The longest body of a message.
const BODY_MAX: usize = 1 << 20;
/// Questions that are asked together before the first reply is waited for.
const TOGETHER: usize = 64;

/// A store at the other end of the link.
#[derive(Clone)]
pub struct LinkStore {
    calls: Arc<Calls>,
    kept: Arc<Kept>,
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
            kept: Arc::default(),
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

    fn begin_open(&self, name: &str) -> io::Result<(Held, Pending)> {
        // From here on it is given back, whatever comes of it.
        let held = self.held(self.calls.number());
        let (object, name) = (held.object, name.to_owned());
        let pending = self.calls.begin(Ask::Open { object, name }, &[])?;
        Ok((held, pending))
    }

    fn opened(&self, (held, pending): (Held, Pending)) -> io::Result<Box<dyn StoredObject>> {
        let (size, ends) = pending.wait()?;
        let object = LinkObject::new(held, self.kept.clone(), size, ends)?;
        Ok(Box::new(object))
    }

    fn begin_list(&self, folder: &str) -> io::Result<Pending> {
        let folder = folder.to_owned();
        self.calls.begin(Ask::List { folder }, &[])
    }

    /// Asks for all of `names`, many at a time, and returns what came of each.
    fn together<B, T>(
        &self,
        names: &[String],
        begin: impl Fn(&str) -> io::Result<B>,
        end: impl Fn(B) -> io::Result<T>,
    ) -> Vec<io::Result<T>> {
        let mut all = Vec::with_capacity(names.len());
        for some in names.chunks(TOGETHER) {
            self.calls.turn();
            let begun: Vec<io::Result<B>> = some.iter().map(|name| begin(name)).collect();
            all.extend(begun.into_iter().map(|begun| begun.and_then(&end)));
        }
        all
    }

    fn held(&self, object: u64) -> Held {
        Held {
            calls: self.calls.clone(),
            object,
        }
    }
}

fn listed(pending: Pending) -> io::Result<Vec<Listed>> {
    let (_, body) = pending.wait()?;
    let listed: Vec<(String, u64, bool)> = serde_json::from_slice(&body)?;
    let each = listed.into_iter().map(|(name, size, is_folder)| Listed {
        name,
        size,
        is_folder,
    });
    Ok(each.collect())
}

/// An object of the other side's, given back on drop.
pub(super) struct Held {
    pub(super) calls: Arc<Calls>,
    pub(super) object: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        let object = self.object;
        // A link that is lost gives everything back by itself.
        let _ = self.calls.tell(Ask::Drop { object }, &[]);
    }
}

impl Store for LinkStore {
    fn create(&self, name: &str, existing: Existing) -> io::Result<Box<dyn NewObject>> {
        let object = self.calls.number();
        let ask = Ask::Create {
            object,
            name: name.to_owned(),
            replace: existing == Existing::Replace,
        };
        self.calls.tell(ask, &[])?;
        Ok(Box::new(LinkNew {
            held: self.held(object),
            compresses: self.compresses,
        }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StoredObject>> {
        self.calls.turn();
        self.opened(self.begin_open(name)?)
    }

    fn open_all(&self, names: &[String]) -> Vec<io::Result<Box<dyn StoredObject>>> {
        self.together(
            names,
            |name| self.begin_open(name),
            |begun| self.opened(begun),
        )
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Listed>> {
        self.calls.turn();
        listed(self.begin_list(folder)?)
    }

    fn list_all(&self, folders: &[String]) -> Vec<io::Result<Vec<Listed>>> {
        self.together(folders, |folder| self.begin_list(folder), listed)
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
        let calls = self.calls.clone();
        let lock = || Box::new(LinkLock { calls, object }) as Box<dyn Lock>;
        Ok((taken == 1).then(lock))
    }

    fn place(&self) -> String {
        self.place.clone()
    }
}

struct LinkLock {
    calls: Arc<Calls>,
    object: u64,
}

impl Drop for LinkLock {
    fn drop(&mut self) {
        let object = self.object;
        // As above.
        let _ = self.calls.tell(Ask::Unlock { object }, &[]);
    }
}

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
        parts.try_for_each(|part| self.held.calls.tell(Ask::Write { object }, part))
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
