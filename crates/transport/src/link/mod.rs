//! A link between two processes that outlives the connections it runs over.
//!
//! Messages are numbered and kept until the other side has taken them off its link; a new
//! connection continues after the last one that arrived. So a broken connection costs a new one,
//! and nothing is sent twice but what was on its way. Kept messages are bounded in bytes: whoever
//! sends more than the other side takes waits.
//!
//! A side that hears nothing for a while gives the connection up; a link without a connection for
//! longer than its patience is lost, on both sides alike.

mod carry;
mod state;

use crate::frame::PAYLOAD_MAX;
use evenkeel_op::{Error, ErrorKind, Result};
use state::{End, LinkState};
use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Names a link: both sides know it, nobody else.
pub type SessionId = [u8; 16];

/// How long a link tolerates silence.
#[derive(Debug, Clone, Copy)]
pub struct LinkTimeouts {
    /// A connection on which nothing was heard for this long is given up.
    pub stall: Duration,
    /// A link without a connection for this long is lost.
    pub loss: Duration,
}

impl LinkTimeouts {
    /// Returns the same, but no longer than `limit` without a connection.
    #[must_use]
    pub fn min_loss(mut self, limit: Duration) -> Self {
        self.loss = self.loss.min(limit);
        self
    }
}

impl Default for LinkTimeouts {
    fn default() -> Self {
        Self {
            stall: Duration::from_secs(20),
            loss: Duration::from_secs(60),
        }
    }
}

/// What went over a link so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes written to connections.
    pub sent: u64,
    /// Bytes read from connections.
    pub received: u64,
    /// Bytes of messages that were written again on a later connection.
    pub resent: u64,
    /// Connections so far.
    pub connections: u32,
}

/// A connection: two ends, and how to break it.
pub struct Carrier {
    /// What arrives.
    pub reader: Box<dyn Read + Send>,
    /// What leaves.
    pub writer: Box<dyn Write + Send>,
    /// Bytes that went over it before it was one.
    pub pushed: u64,
    /// Ends it at once, so that whoever reads or writes there gets an error.
    pub cut: Box<dyn Fn() + Send + Sync>,
}

/// One side of a link. Clones are the same side.
#[derive(Clone)]
pub struct Link {
    shared: Arc<Shared>,
}

struct Shared {
    session: SessionId,
    state: Mutex<LinkState>,
    changed: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, LinkState>,
        at_most: Duration,
    ) -> MutexGuard<'a, LinkState> {
        let waited = self.changed.wait_timeout(state, at_most);
        waited.unwrap_or_else(|e| e.into_inner()).0
    }
}

/// Messages in flight are bounded by this many bytes.
const WINDOW: usize = 8 << 20;
/// How often clocks are looked at.
const TICK: Duration = Duration::from_millis(200);

impl Link {
    /// Makes a side that has no connection yet; it is lost if it gets none in time.
    #[must_use]
    pub fn new(session: SessionId, timeouts: LinkTimeouts) -> Self {
        let shared = Arc::new(Shared {
            session,
            state: Mutex::new(LinkState::new(timeouts)),
            changed: Condvar::new(),
        });
        let watched = Arc::downgrade(&shared);
        std::thread::spawn(move || {
            while let Some(shared) = watched.upgrade() {
                if shared.look_at_clock() {
                    return;
                }
                drop(shared);
                std::thread::sleep(TICK);
            }
        });
        Self { shared }
    }

    /// Changes how long it tolerates silence.
    pub fn set_timeouts(&self, timeouts: LinkTimeouts) {
        self.shared.state().timeouts = timeouts;
    }

    /// Continues over this connection; the one before, if any, is cut.
    pub fn attach(&self, carrier: Carrier) {
        carry::attach(&self.shared, carrier);
    }

    /// Sends a message; waits while too much is under way. Errors when the link is lost or closed.
    pub fn send(&self, message: Vec<u8>) -> Result<()> {
        debug_assert!(message.len() <= PAYLOAD_MAX);
        let mut state = self.shared.state();
        while state.end.is_none() && state.unacked_bytes > WINDOW {
            state = self.shared.wait(state, TICK);
        }
        if let Some(end) = &state.end {
            return Err(end.error());
        }
        state.push(message);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Takes the next message; waits for it. `None` when the other side said bye.
    pub fn receive(&self) -> Result<Option<Vec<u8>>> {
        let mut state = self.shared.state();
        loop {
            if let Some(message) = state.pop() {
                self.shared.changed.notify_all();
                return Ok(Some(message));
            }
            match &state.end {
                Some(End::Bye) => return Ok(None),
                Some(end) => return Err(end.error()),
                None => state = self.shared.wait(state, TICK),
            }
        }
    }

    /// Waits until the other side has taken everything, and says bye. Gives up with the link.
    pub fn close(&self) {
        let mut state = self.shared.state();
        state.bye = true;
        self.shared.changed.notify_all();
        while state.end.is_none() && !state.bye_said {
            state = self.shared.wait(state, TICK);
        }
        drop(state);
        self.abort("it was closed");
    }

    /// Ends it at once; the other side learns of it by its own patience or by a cut connection.
    pub fn abort(&self, why: &str) {
        let mut state = self.shared.state();
        state.end.get_or_insert_with(|| End::Lost(why.to_owned()));
        state.detach();
        self.shared.changed.notify_all();
    }

    /// Waits until it has no connection and returns whether it still wants one.
    pub fn wait_for_loss(&self) -> bool {
        let mut state = self.shared.state();
        while state.end.is_none() && state.carrier.is_some() {
            state = self.shared.wait(state, TICK);
        }
        state.end.is_none()
    }

    /// Waits until the other side said hello over a connection, or there is none any more.
    pub fn wait_for_hello(&self) -> bool {
        let mut state = self.shared.state();
        while state.end.is_none() && state.carrier.as_ref().is_some_and(|one| !one.greeted) {
            state = self.shared.wait(state, TICK);
        }
        state.end.is_none() && state.carrier.is_some()
    }

    /// Returns whether it is lost or closed.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.shared.state().end.is_some()
    }

    /// Returns what went over it so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.shared.state().traffic
    }
}

impl Shared {
    /// Gives up what took too long. Returns whether the link has come to its end.
    fn look_at_clock(&self) -> bool {
        let mut state = self.state();
        if state.end.is_some() {
            return true;
        }
        let now = Instant::now();
        let silent = state
            .carrier
            .as_ref()
            .is_some_and(|one| now - one.heard > state.timeouts.stall);
        if silent {
            state.detach();
            self.changed.notify_all();
        }
        if let Some(since) = state.alone_since
            && now - since > state.timeouts.loss
        {
            let span = state.timeouts.loss.as_secs();
            state.end = Some(End::Lost(format!("there was no connection for {span} s")));
            self.changed.notify_all();
        }
        state.end.is_some()
    }
}

/// The error of everything that is tried on a link that is lost.
fn lost(why: &str) -> Error {
    Error::new(ErrorKind::Unreachable, format!("the link is lost: {why}"))
}

#[cfg(test)]
mod tests;
