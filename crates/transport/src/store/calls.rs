//! Asks on their way, and who waits for which reply.

use super::{Ask, Asked, Fault, Replied};
use crate::link::Link;
use crate::message::{self, Lane};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// A reply: its number and its body.
pub(super) type Answer = io::Result<(u64, Vec<u8>)>;

/// Calls that wait for a reply.
pub(crate) struct Calls {
    link: Link,
    next: AtomicU64,
    /// How often somebody asked and waited: round trips, one after another at worst.
    turns: AtomicU64,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    calls: HashMap<u64, Sender<Answer>>,
    lost: bool,
}

/// A reply that is on its way. Dropped, nobody waits for it any more.
pub(super) struct Pending(Receiver<Answer>);

impl Pending {
    pub(super) fn wait(self) -> Answer {
        self.0.recv().unwrap_or_else(|_| Err(lost()))
    }
}

impl Calls {
    pub(crate) fn new(link: Link) -> Self {
        Self {
            link,
            next: AtomicU64::new(1),
            turns: AtomicU64::new(0),
            waiting: Mutex::default(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Returns a number that no other call or object has.
    pub(super) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    /// Whoever calls this is about to wait for what was asked since.
    pub(super) fn turn(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// Asks and waits.
    pub(super) fn ask(&self, ask: Ask) -> Answer {
        self.ask_with(ask, &[])
    }

    /// Asks and waits.
    pub(super) fn ask_with(&self, ask: Ask, body: &[u8]) -> Answer {
        self.turn();
        self.begin(ask, body)?.wait()
    }

    /// Says what nobody replies to.
    pub(super) fn tell(&self, ask: Ask, body: &[u8]) -> io::Result<()> {
        self.send(0, ask, body)
    }

    /// Asks, and leaves the waiting for later.
    pub(super) fn begin(&self, ask: Ask, body: &[u8]) -> io::Result<Pending> {
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
        Ok(Pending(receiver))
    }

    fn send(&self, call: u64, ask: Ask, body: &[u8]) -> io::Result<()> {
        let message = message::encode(Lane::Ask, &Asked { call, ask }, body);
        let sent = message.and_then(|message| self.link.send(message));
        sent.map_err(io::Error::other)
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
