//! Keeps N sessions busy and times what they do.
//!
//! A [`Drive`] runs one thread per [`Work`]; each calls [`Work::once`] again and again (a closed
//! loop) until it is stopped. Counters and a latency histogram can be read at any moment, so that
//! whoever watches sees throughput before, during and after an event.

mod sample;

pub use sample::{Interval, Latency};

use evenkeel_op::{Cancel, Error, Result};
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What one session does over and over.
pub trait Work: Send + 'static {
    /// Does one unit of work, for example one transaction.
    ///
    /// An error is counted; after [`Outcome::Lost`] the session is not used any more.
    fn once(&mut self) -> Outcome;
}

/// How one unit of work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// It failed, and trying again may work (a deadlock, a lock wait).
    Retry,
    /// The session is gone.
    Lost,
}

#[derive(Debug)]
struct Shared {
    done: AtomicU64,
    retries: AtomicU64,
    lost: AtomicU64,
    // Highest latency is an hour, three digits: about 200 KiB, shared because sessions are few.
    latency_us: Mutex<Histogram<u64>>,
}

/// Sessions at work.
#[derive(Debug)]
pub struct Drive {
    shared: Arc<Shared>,
    stop: Cancel,
    threads: Vec<JoinHandle<()>>,
    started: Instant,
}

impl Drive {
    /// Starts one thread per work.
    pub fn start<W: Work>(works: Vec<W>) -> Result<Self> {
        let latency_us = Histogram::new_with_bounds(1, 3_600_000_000, 3)
            .map_err(|e| Error::failed("failed to make a latency histogram").because(e))?;
        let shared = Arc::new(Shared {
            done: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            latency_us: Mutex::new(latency_us),
        });
        let mut drive = Self {
            shared,
            stop: Cancel::new(),
            threads: Vec::new(),
            started: Instant::now(),
        };
        for (number, work) in works.into_iter().enumerate() {
            let (shared, stop) = (Arc::clone(&drive.shared), drive.stop.clone());
            let thread = std::thread::Builder::new()
                .name(format!("drive-{number}"))
                .spawn(move || run(work, &shared, &stop))
                .map_err(|e| Error::failed("failed to start a session thread").because(e))?;
            drive.threads.push(thread);
        }
        Ok(drive)
    }

    /// Returns what was done so far.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark {
            at: Instant::now(),
            done: self.shared.done.load(Ordering::Relaxed),
        }
    }

    /// Returns throughput since an earlier mark.
    #[must_use]
    pub fn since(&self, mark: &Mark) -> Interval {
        Interval::between(mark, &self.mark())
    }

    /// Returns how many units are done, had to be retried, and how many sessions were lost.
    #[must_use]
    pub fn counts(&self) -> (u64, u64, u64) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (
            load(&self.shared.done),
            load(&self.shared.retries),
            load(&self.shared.lost),
        )
    }

    /// Waits until `units` more are done since the start, or the deadline passes; returns whether
    /// they were.
    #[must_use]
    pub fn wait_for(&self, units: u64, deadline: Duration) -> bool {
        let until = Instant::now() + deadline;
        while self.shared.done.load(Ordering::Relaxed) < units {
            if Instant::now() >= until || self.threads.iter().all(JoinHandle::is_finished) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }

    /// Stops every session after the unit it is at, and returns the totals.
    pub fn stop(mut self) -> Totals {
        self.join();
        let (done, retries, lost) = self.counts();
        let seconds = self.started.elapsed().as_secs_f64();
        let latency = self
            .shared
            .latency_us
            .lock()
            .unwrap_or_else(|e| e.into_inner());
        Totals {
            done,
            retries,
            lost,
            seconds,
            latency: Latency::of(&latency),
        }
    }

    fn join(&mut self) {
        self.stop.cancel(2);
        for thread in self.threads.drain(..) {
            // A panicking session was counted as lost by nobody; the join error carries nothing more.
            if thread.join().is_err() {
                self.shared.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        self.join();
    }
}

fn run<W: Work>(mut work: W, shared: &Shared, stop: &Cancel) {
    while !stop.is_cancelled() {
        let begun = Instant::now();
        match work.once() {
            Outcome::Done => {
                let us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
                shared.done.fetch_add(1, Ordering::Relaxed);
                let mut latency = shared.latency_us.lock().unwrap_or_else(|e| e.into_inner());
                latency.saturating_record(us.max(1));
            }
            Outcome::Retry => {
                shared.retries.fetch_add(1, Ordering::Relaxed);
            }
            Outcome::Lost => {
                shared.lost.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
    }
}

/// A moment in a run: when, and how much was done by then.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    at: Instant,
    done: u64,
}

/// What a run came to.
#[derive(Debug, Clone)]
pub struct Totals {
    /// Units done.
    pub done: u64,
    /// Units that had to be tried again.
    pub retries: u64,
    /// Sessions lost.
    pub lost: u64,
    /// Length of the run.
    pub seconds: f64,
    /// Latency of the units done.
    pub latency: Latency,
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counter {
        left: u32,
    }

    impl Work for Counter {
        fn once(&mut self) -> Outcome {
            if self.left == 0 {
                return Outcome::Lost;
            }
            self.left -= 1;
            if self.left.is_multiple_of(2) {
                Outcome::Done
            } else {
                Outcome::Retry
            }
        }
    }

    #[test]
    fn counts_every_unit_of_every_session() {
        let drive = Drive::start(vec![Counter { left: 10 }, Counter { left: 20 }]).unwrap();
        assert!(drive.wait_for(15, Duration::from_secs(30)));
        while drive.counts().2 < 2 {
            std::thread::yield_now();
        }
        let totals = drive.stop();
        assert_eq!((totals.done, totals.retries, totals.lost), (15, 15, 2));
        assert_eq!(totals.latency.count, 15);
    }

    #[test]
    fn waiting_ends_when_every_session_is_lost() {
        let drive = Drive::start(vec![Counter { left: 1 }]).unwrap();
        assert!(!drive.wait_for(100, Duration::from_secs(30)));
    }
}
