//! What the threads of a tap tell each other.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How often it is said that the server cannot be reached.
const AGAIN: Duration = Duration::from_secs(10);
const ORDER: Ordering = Ordering::SeqCst;

/// What was counted of connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Connections that were relayed.
    pub connections: u64,
    /// Connections that were refused, because no more files may be open.
    pub refused: u64,
    /// Connections that ended at once, because the server could not be reached.
    pub unreachable: u64,
    /// Connections that did not become idle in time, and were closed at the end.
    pub cut_off: u64,
    /// Logins that failed while TLS was hidden from the client.
    pub logins_failed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Working,
    /// No more clients are taken, and connections are closed once they are idle.
    Draining,
    /// Those that are left are closed.
    Ending,
}

#[derive(Debug, Default)]
struct Trouble {
    why: Option<String>,
    said: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Control {
    most: usize,
    drain: Duration,
    draining_since: OnceLock<Instant>,
    /// Threads that have not ended.
    working: AtomicUsize,
    open: AtomicUsize,
    connections: AtomicU64,
    refused: AtomicU64,
    unreachable: AtomicU64,
    cut_off: AtomicU64,
    trouble: Mutex<Trouble>,
}

/// A thread works as long as this is.
#[derive(Debug)]
pub(super) struct Working<'a>(&'a Control);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.working.fetch_sub(1, ORDER);
    }
}

impl Control {
    pub(super) fn new(most: usize, drain: Duration, threads: usize) -> Self {
        Self {
            most,
            drain,
            draining_since: OnceLock::new(),
            working: AtomicUsize::new(threads),
            open: AtomicUsize::new(0),
            connections: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            unreachable: AtomicU64::new(0),
            cut_off: AtomicU64::new(0),
            trouble: Mutex::default(),
        }
    }

    pub(super) fn working(&self) -> Working<'_> {
        Working(self)
    }

    /// Returns whether all threads have ended.
    pub(super) fn is_over(&self) -> bool {
        self.working.load(ORDER) == 0
    }

    pub(super) fn drain(&self) {
        self.draining_since.get_or_init(Instant::now);
    }

    pub(super) fn phase(&self) -> Phase {
        match self.draining_since.get() {
            None => Phase::Working,
            Some(since) if since.elapsed() < self.drain => Phase::Draining,
            Some(_) => Phase::Ending,
        }
    }

    pub(super) fn open(&self) -> usize {
        self.open.load(ORDER)
    }

    /// Takes a place for a connection and numbers it, if there is one.
    pub(super) fn begin(&self) -> Option<u64> {
        if self.open.fetch_add(1, ORDER) >= self.most {
            self.open.fetch_sub(1, ORDER);
            self.refused.fetch_add(1, ORDER);
            return None;
        }
        Some(self.connections.fetch_add(1, ORDER) + 1)
    }

    pub(super) fn end(&self) {
        self.open.fetch_sub(1, ORDER);
    }

    pub(super) fn cut_off(&self) {
        self.cut_off.fetch_add(1, ORDER);
    }

    /// Takes note that the server could not be reached.
    pub(super) fn is_unreachable(&self, why: &str) {
        self.unreachable.fetch_add(1, ORDER);
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.why = Some(why.to_owned());
    }

    /// Returns why the server cannot be reached, if that is new or was said a while ago.
    pub(super) fn unreachable(&self) -> Option<String> {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = trouble.said.is_none_or(|said| said.elapsed() > AGAIN);
        if !is_due || trouble.why.is_none() {
            return None;
        }
        trouble.said = Some(Instant::now());
        trouble.why.take()
    }

    pub(super) fn tally(&self) -> Tally {
        Tally {
            connections: self.connections.load(ORDER),
            refused: self.refused.load(ORDER),
            unreachable: self.unreachable.load(ORDER),
            cut_off: self.cut_off.load(ORDER),
            logins_failed: 0,
        }
    }
}
