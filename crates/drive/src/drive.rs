//! Sessions at work.

use crate::pace::{Schedule, sleep_until};
use crate::tally::Board;
use crate::{Interval, Latency, Outcome, Pace, Revival, Tally, Work};
use evenkeel_op::{Cancel, Error, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long to wait before a lost session is tried again.
const REVIVE: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct Shared {
    done: AtomicU64,
    lost: AtomicU64,
    board: Board,
    schedule: Schedule,
    stop: Cancel,
}

/// Sessions at work.
#[derive(Debug)]
pub struct Drive {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    started: Instant,
}

impl Drive {
    /// Starts one thread per work, whose units are of so many kinds.
    pub fn start<W: Work>(works: Vec<W>, kinds: usize, pace: Pace) -> Result<Self> {
        let shared = Arc::new(Shared {
            done: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            board: Board::new(kinds, works.len()),
            schedule: Schedule::new(pace),
            stop: Cancel::new(),
        });
        let mut drive = Self {
            shared,
            threads: Vec::new(),
            started: Instant::now(),
        };
        for (number, work) in works.into_iter().enumerate() {
            let shared = Arc::clone(&drive.shared);
            let thread = std::thread::Builder::new()
                .name(format!("drive-{number}"))
                .spawn(move || work_on(work, number, &shared))
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
            done: self.done(),
        }
    }

    /// Returns throughput since an earlier mark.
    #[must_use]
    pub fn since(&self, mark: &Mark) -> Interval {
        Interval::between(mark, &self.mark())
    }

    /// Returns how many units are done.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.shared.done.load(Ordering::Relaxed)
    }

    /// Returns how often a session was lost.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// Returns what was done since this was last asked, by kind.
    #[must_use]
    pub fn take(&self) -> Tally {
        self.shared.board.take()
    }

    /// Returns whether no session is left.
    #[must_use]
    pub fn all_lost(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Waits until `units` are done since the start, or the deadline passes; returns whether they
    /// were.
    #[must_use]
    pub fn wait_for(&self, units: u64, deadline: Duration) -> bool {
        let until = Instant::now() + deadline;
        while self.done() < units {
            if Instant::now() >= until || self.all_lost() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }

    /// Stops every session after the unit it is at, and returns the totals of what was not taken.
    pub fn stop(mut self) -> Totals {
        self.join();
        let tally = self.take();
        let mut all = tally.kinds[0].clone();
        for kind in &tally.kinds[1..] {
            all.add(kind);
        }
        Totals {
            done: self.done(),
            lost: self.lost(),
            seconds: self.started.elapsed().as_secs_f64(),
            latency: all.latency(),
        }
    }

    fn join(&mut self) {
        self.shared.stop.cancel(2);
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

fn work_on<W: Work>(mut work: W, number: usize, shared: &Shared) {
    let stop = &shared.stop;
    loop {
        let pause = work.pause();
        if !pause.is_zero() && !sleep_until(Instant::now() + pause, stop) {
            return;
        }
        let Some(due) = shared.schedule.next(stop) else {
            return;
        };
        let unit = work.once();
        shared.board.record(number, unit, due.elapsed());
        match unit.outcome {
            Outcome::Done => {
                shared.done.fetch_add(1, Ordering::Relaxed);
            }
            Outcome::Failed => (),
            Outcome::Lost => {
                shared.lost.fetch_add(1, Ordering::Relaxed);
                if !revived(&mut work, stop) {
                    return;
                }
            }
        }
    }
}

/// Waits until a session is back; returns false when it never will be, or all is stopped.
fn revived<W: Work>(work: &mut W, stop: &Cancel) -> bool {
    loop {
        match work.revive() {
            Revival::Back => return true,
            Revival::Never => return false,
            Revival::NotYet => {
                if !sleep_until(Instant::now() + REVIVE, stop) {
                    return false;
                }
            }
        }
    }
}

/// A moment in a run: when, and how much was done by then.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    pub(crate) at: Instant,
    pub(crate) done: u64,
}

/// What sessions came to.
#[derive(Debug, Clone)]
pub struct Totals {
    /// Units done.
    pub done: u64,
    /// How often a session was lost.
    pub lost: u64,
    /// Length of the run.
    pub seconds: f64,
    /// Latency of the units done.
    pub latency: Latency,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unit;

    struct Counter {
        left: u32,
    }

    impl Work for Counter {
        fn once(&mut self) -> Unit {
            if self.left == 0 {
                return Unit::ended(0, Outcome::Lost);
            }
            self.left -= 1;
            let done = self.left.is_multiple_of(2);
            Unit::ended(0, if done { Outcome::Done } else { Outcome::Failed })
        }
    }

    #[test]
    fn counts_every_unit_of_every_session() {
        let works = vec![Counter { left: 10 }, Counter { left: 20 }];
        let drive = Drive::start(works, 1, Pace::Closed).unwrap();
        assert!(drive.wait_for(15, Duration::from_secs(30)));
        while drive.lost() < 2 {
            std::thread::yield_now();
        }
        let totals = drive.stop();
        assert_eq!((totals.done, totals.lost), (15, 2));
        assert_eq!(totals.latency.count, 15);
    }

    #[test]
    fn waiting_ends_when_every_session_is_lost() {
        let drive = Drive::start(vec![Counter { left: 1 }], 1, Pace::Closed).unwrap();
        assert!(!drive.wait_for(100, Duration::from_secs(30)));
    }

    #[test]
    fn pauses_are_no_latency() {
        struct Typist;
        impl Work for Typist {
            fn once(&mut self) -> Unit {
                Unit::done(0)
            }
            fn pause(&mut self) -> Duration {
                Duration::from_millis(30)
            }
        }
        let drive = Drive::start(vec![Typist], 1, Pace::Closed).unwrap();
        assert!(drive.wait_for(3, Duration::from_secs(30)));
        let totals = drive.stop();
        assert!(totals.seconds >= 0.09, "{totals:?}");
        assert!(totals.latency.p50_us < 30_000, "{totals:?}");
    }
}
