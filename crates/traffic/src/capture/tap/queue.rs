//! What was relayed, on its way to the decoder. Whoever relays never waits: what does not fit is counted as missing.

use evenkeel_wire::watch::Side;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Memory of an entry beside its bytes, with those that tell of its connection's end.
const ENTRY: usize = 3 * size_of::<Entry>();
/// The decoder is woken for less only after a moment: a statement each would cost as much as the relay itself.
const PLENTY: usize = 256 << 10;
const MOMENT: Duration = Duration::from_millis(5);
/// Memory that is kept for the next batch.
const KEPT: usize = 1 << 20;

/// Something about a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// It is new.
    Opened {
        host: String,
        /// The server has TLS, of which the client was not told.
        hides_tls: bool,
        /// Bytes are missing before this.
        is_joined: bool,
    },
    /// That many of the batch's bytes.
    Bytes(Side, usize),
    /// That many bytes did not fit.
    Missing(Side, u64),
    Closed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) connection: u64,
    pub(super) at_ns: i64,
    pub(super) what: What,
}

/// Entries, and the bytes that they are about, in order.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) entries: Vec<Entry>,
    pub(super) bytes: Vec<u8>,
}

impl Batch {
    fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
        self.entries.shrink_to(KEPT / ENTRY);
        self.bytes.shrink_to(KEPT);
    }
}

/// A connection, as the decoder was told of it.
#[derive(Debug)]
pub(super) struct Reported {
    number: u64,
    host: String,
    is_known: bool,
    /// Bytes that did not fit, by client and server.
    missing: [u64; 2],
}

impl Reported {
    pub(super) fn new(number: u64, host: String) -> Self {
        Self {
            number,
            host,
            is_known: false,
            missing: [0; 2],
        }
    }
}

#[derive(Debug, Default)]
struct Inner {
    batch: Batch,
    /// Memory that it takes.
    taken: usize,
    /// Missing bytes of connections of which the decoder never knew.
    lost: u64,
}

#[derive(Debug)]
pub(super) struct Queue {
    /// Half of the memory: the other half is with the decoder.
    most: usize,
    inner: Mutex<Inner>,
    has_some: Condvar,
    has_plenty: Condvar,
    is_closed: AtomicBool,
}

impl Queue {
    pub(super) fn new(memory: usize) -> Self {
        Self {
            most: memory / 2,
            inner: Mutex::default(),
            has_some: Condvar::new(),
            has_plenty: Condvar::new(),
            is_closed: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts bytes in, or counts them as missing.
    pub(super) fn put(
        &self,
        reported: &mut Reported,
        side: Side,
        at_ns: i64,
        hides_tls: bool,
        bytes: &[u8],
    ) {
        if self.is_closed.load(Ordering::Relaxed) {
            return;
        }
        let mut inner = self.lock();
        let cost = bytes.len() + ENTRY + reported.host.len();
        if inner.taken + cost > self.most {
            reported.missing[side as usize] += bytes.len() as u64;
            return;
        }
        let was_empty = inner.batch.entries.is_empty();
        let had_plenty = inner.taken >= PLENTY;
        inner.taken += cost;
        let connection = reported.number;
        let mut push = |what| {
            inner.batch.entries.push(Entry {
                connection,
                at_ns,
                what,
            });
        };
        if !reported.is_known {
            reported.is_known = true;
            push(What::Opened {
                host: reported.host.clone(),
                hides_tls,
                is_joined: reported.missing != [0; 2],
            });
        }
        reported.pass_missing(&mut push);
        push(What::Bytes(side, bytes.len()));
        inner.batch.bytes.extend_from_slice(bytes);
        let has_plenty = inner.taken >= PLENTY;
        drop(inner);
        if was_empty {
            self.has_some.notify_one();
        }
        if has_plenty && !had_plenty {
            self.has_plenty.notify_one();
        }
    }

    /// Tells that a connection is over. There is always room for that.
    pub(super) fn end(&self, mut reported: Reported, at_ns: i64) {
        let mut inner = self.lock();
        if !reported.is_known {
            inner.lost += reported.missing.iter().sum::<u64>();
            return;
        }
        let connection = reported.number;
        let mut push = |what| {
            inner.batch.entries.push(Entry {
                connection,
                at_ns,
                what,
            });
        };
        reported.pass_missing(&mut push);
        push(What::Closed);
        drop(inner);
        self.has_some.notify_one();
    }

    /// Exchanges an empty batch for what is there; waits so long for something.
    pub(super) fn take(&self, batch: &mut Batch, most: Duration) {
        batch.clear();
        let mut inner = self.lock();
        if inner.batch.entries.is_empty() && !most.is_zero() {
            let waited = self.has_some.wait_timeout(inner, most);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if inner.taken < PLENTY && !inner.batch.entries.is_empty() && !most.is_zero() {
            let waited = self.has_plenty.wait_timeout(inner, MOMENT);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        std::mem::swap(&mut inner.batch, batch);
        inner.taken = 0;
    }

    /// Takes nothing any more: nobody listens.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    pub(super) fn lost(&self) -> u64 {
        self.lock().lost
    }
}

impl Reported {
    fn pass_missing(&mut self, push: &mut dyn FnMut(What)) {
        for side in [Side::Client, Side::Server] {
            let missing = std::mem::take(&mut self.missing[side as usize]);
            if missing > 0 {
                push(What::Missing(side, missing));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(queue: &Queue) -> (Vec<What>, Vec<u8>) {
        let mut batch = Batch::default();
        queue.take(&mut batch, Duration::ZERO);
        let what = batch.entries.into_iter().map(|entry| entry.what);
        (what.collect(), batch.bytes)
    }

    fn opened(is_joined: bool) -> What {
        What::Opened {
            host: "web1".to_owned(),
            hides_tls: true,
            is_joined,
        }
    }

    #[test]
    fn what_does_not_fit_is_missing_where_it_was() {
        let queue = Queue::new(2 * (3000 + 8 * ENTRY));
        let mut reported = Reported::new(1, "web1".to_owned());
        for (side, count) in [
            (Side::Client, 1000),
            (Side::Server, 9000),
            (Side::Client, 10),
        ] {
            queue.put(&mut reported, side, 5, true, &vec![b'x'; count]);
        }
        queue.end(reported, 6);
        let (what, bytes) = taken(&queue);
        let expected = [
            opened(false),
            What::Bytes(Side::Client, 1000),
            What::Missing(Side::Server, 9000),
            What::Bytes(Side::Client, 10),
            What::Closed,
        ];
        assert_eq!((&what[..], bytes.len()), (&expected[..], 1010));
    }

    #[test]
    fn the_end_is_reported_when_nothing_fits() {
        let queue = Queue::new(2 * (1100 + ENTRY));
        let mut reported = Reported::new(1, "web1".to_owned());
        queue.put(&mut reported, Side::Server, 5, true, &[b'x'; 1000]);
        queue.put(&mut reported, Side::Client, 5, true, &[b'x'; 1000]);
        queue.end(reported, 6);
        let mut never = Reported::new(2, "web1".to_owned());
        queue.put(&mut never, Side::Client, 5, true, &[b'x'; 700]);
        queue.end(never, 6);
        let (what, _) = taken(&queue);
        assert_eq!(what[2..], [What::Missing(Side::Client, 1000), What::Closed]);
        assert_eq!(queue.lost(), 700);
    }
}
