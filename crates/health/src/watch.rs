//! Many servers asked at intervals, each by a thread of its own: one that is slow, frozen or gone delays no other. While
//! all is well and only plain checks are made, the threads sleep: the loop itself sends the statements, and hears when
//! answers come.
//!
//! **At most two sessions.** A server has at most two threads here, each with at most one session. If the first is
//! not answered in time, the second one logs in, ends the first one's session, and asks itself. If that is not
//! answered either, nothing more is asked until one of them is. The one that is answered last is closed.

use crate::ears::Ears;
use crate::probe::{Checks, Observed, Reported, Standing, Tell, Worker, bounded};
use crate::reason::{Cause, Reason};
use evenkeel_server::options::ConnectOptions;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Threads and sessions of one server.
const WORKERS: usize = 2;

/// A loop that is later than this was away: its process was stopped, or its host slept.
const LATE: Duration = Duration::from_millis(250);

/// A server to be asked.
#[derive(Debug, Clone)]
pub struct Target {
    /// What it is called.
    pub name: String,
    /// How to reach it.
    pub options: ConnectOptions,
    /// What is looked at.
    pub checks: Arc<Checks>,
}

/// How often servers are asked, and how long they may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// From one question to the next.
    pub interval: Duration,
    /// After this, the server has failed. Not longer than the interval.
    pub timeout: Duration,
}

/// Servers that are being asked.
pub struct Watch {
    seats: Vec<Seat>,
    timing: Timing,
    reports: Receiver<Reported>,
    tell: Tell,
    /// When the loop meant to be here.
    meant: Instant,
}

/// A server here.
struct Seat {
    index: usize,
    target: Target,
    workers: Vec<Worker>,
    serial: u64,
    /// When it is asked next.
    next: Instant,
    /// Which worker was asked, and when; `None` once that is decided.
    asked: Option<(u64, Instant)>,
}

impl Watch {
    /// Makes it. The first questions are spread over one interval, so that later ones are, too.
    #[must_use]
    pub fn new(targets: Vec<Target>, timing: Timing) -> Self {
        let (tell, reports) = channel();
        let tell = Tell {
            reports: tell,
            ears: Ears::new().ok().map(Arc::new),
        };
        let now = Instant::now();
        let count = u32::try_from(targets.len()).unwrap_or(u32::MAX).max(1);
        let gap = timing.interval / count;
        let seats = targets.into_iter().enumerate().map(|(index, mut target)| {
            target.options = bounded(target.options);
            Seat {
                index,
                target,
                workers: Vec::new(),
                serial: 0,
                next: now + gap * u32::try_from(index).unwrap_or(u32::MAX),
                asked: None,
            }
        });
        Self {
            seats: seats.collect(),
            timing,
            reports,
            tell,
            meant: now,
        }
    }

    /// Asks those whose time has come, waits until something is known or `wait` has passed, and returns it: of which
    /// server, and what.
    pub fn next(&mut self, wait: Duration) -> Vec<(usize, Observed)> {
        let now = Instant::now();
        self.bear(now);
        // What came while nobody looked is no failure.
        let mut known = Vec::new();
        self.listen(Duration::ZERO, &mut known);
        for seat in &mut self.seats {
            known.extend(
                seat.step(now, self.timing, &self.tell)
                    .map(|observed| (seat.index, observed)),
            );
        }
        let soonest = self.seats.iter().map(|seat| seat.due(self.timing)).min();
        let wait = match (known.is_empty(), soonest) {
            (false, _) => Duration::ZERO,
            (true, Some(soonest)) => wait.min(soonest.saturating_duration_since(now)),
            (true, None) => wait,
        };
        self.meant = now + wait;
        if !wait.is_zero() {
            self.listen(wait, &mut known);
        }
        known
    }

    /// Waits until something is heard, and takes all of it.
    fn listen(&mut self, wait: Duration, known: &mut Vec<(usize, Observed)>) {
        let (report, heard) = match &self.tell.ears {
            Some(ears) => (None, ears.listen(wait)),
            None => (self.reports.recv_timeout(wait).ok(), Vec::new()),
        };
        if !wait.is_zero() {
            self.bear(Instant::now());
        }
        if let Some(reported) = report {
            self.take(reported, known);
        }
        while let Ok(reported) = self.reports.try_recv() {
            self.take(reported, known);
        }
        for number in heard {
            let index = server(number);
            let found = self
                .seats
                .get_mut(index)
                .and_then(|seat| seat.heard(number));
            known.extend(found.map(|observed| (index, observed)));
        }
    }

    fn take(&mut self, reported: Reported, known: &mut Vec<(usize, Observed)>) {
        let index = reported.server;
        if let Some(observed) = self.seats[index].take(reported) {
            known.push((index, observed));
        }
    }

    /// Gives those who are asked the time in which nobody could have heard them.
    fn bear(&mut self, now: Instant) {
        let late = now.saturating_duration_since(self.meant);
        self.meant = now;
        if late > LATE {
            for (_, at) in self.seats.iter_mut().filter_map(|seat| seat.asked.as_mut()) {
                *at += late;
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        for worker in self
            .seats
            .iter_mut()
            .flat_map(|seat| seat.workers.drain(..))
        {
            worker.retire();
        }
    }
}

impl Seat {
    /// Returns when it has to be looked at again.
    fn due(&self, timing: Timing) -> Instant {
        match self.asked {
            Some((_, at)) => at + timing.timeout,
            None => self.next,
        }
    }

    /// Asks, if it is time. Returns what is known without an answer.
    fn step(&mut self, now: Instant, timing: Timing, tell: &Tell) -> Option<Observed> {
        if let Some((serial, at)) = self.asked {
            if now < at + timing.timeout {
                return None;
            }
            self.asked = None;
            let took = now.saturating_duration_since(at);
            let mut workers = self.workers.iter();
            let late = workers.find(|worker| worker.serial == serial);
            let reason = late.and_then(|worker| worker.unanswered(now));
            return Some(Observed::failed(reason.unwrap_or_else(no_thread), took));
        }
        if now < self.next {
            return None;
        }
        // A host that slept asks once.
        while self.next <= now {
            self.next += timing.interval;
        }
        self.ask(now, tell)
    }

    fn ask(&mut self, now: Instant, tell: &Tell) -> Option<Observed> {
        let kill = self.workers.first().and_then(Worker::session);
        let idle = self.workers.iter_mut().find(|worker| !worker.is_busy());
        if let Some(worker) = idle {
            worker.order(None, now);
            self.asked = Some((worker.serial, now));
            return None;
        }
        if self.workers.len() < WORKERS {
            self.serial += 1;
            let started = Worker::start(
                (self.index, self.serial),
                self.target.options.clone(),
                self.target.checks.clone(),
                tell.clone(),
            );
            match started {
                Ok(mut worker) => {
                    worker.order(kill, now);
                    self.asked = Some((worker.serial, now));
                    self.workers.push(worker);
                    return None;
                }
                Err(error) => {
                    let reason = Reason::new(Cause::Stalled, error.chain());
                    return Some(Observed::failed(reason, Duration::ZERO));
                }
            }
        }
        let mut last = self.workers.iter().rev();
        let reason = last.find_map(|worker| worker.unanswered(now));
        Some(Observed::failed(
            reason.unwrap_or_else(no_thread),
            Duration::ZERO,
        ))
    }

    /// Takes a report. Returns what it found, if that was asked for and is in time.
    fn take(&mut self, report: Reported) -> Option<Observed> {
        let number = number(self.index, report.serial);
        // What cannot be listened to is closed.
        let standing = report
            .standing
            .filter(|standing| standing.listen(number).is_ok());
        self.ended(report.serial, report.observed, standing)
    }

    /// Hears what came in the session of a worker. Returns what is known of it, as a report.
    fn heard(&mut self, heard: u64) -> Option<Observed> {
        let mut workers = self.workers.iter_mut();
        let worker = workers.find(|worker| number(self.index, worker.serial) == heard)?;
        let serial = worker.serial;
        let observed = worker.heard()?;
        self.ended(serial, observed, None)
    }

    fn ended(
        &mut self,
        serial: u64,
        observed: Observed,
        standing: Option<Standing>,
    ) -> Option<Observed> {
        let at = self.workers.iter().position(|it| it.serial == serial)?;
        self.workers[at].ended(standing);
        if self.asked.is_some_and(|(asked, _)| asked == serial) {
            self.asked = None;
            return Some(observed);
        }
        if self.workers.len() > 1 {
            // Its goodbye to the server is nobody's to wait for.
            self.workers.remove(at).dismiss();
        }
        None
    }
}

/// How many workers of a server have numbers of their own, in bits: far more than there are at a time.
const SERIAL_BITS: u32 = 16;

/// Returns the number under which the session of a worker is heard.
fn number(index: usize, serial: u64) -> u64 {
    (index as u64) << SERIAL_BITS | serial & ((1 << SERIAL_BITS) - 1)
}

/// Returns which server that is.
fn server(number: u64) -> usize {
    usize::try_from(number >> SERIAL_BITS).unwrap_or(usize::MAX)
}

fn no_thread() -> Reason {
    Reason::new(Cause::Stalled, "the thread that asks is gone")
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_testkit::until;
    use std::net::TcpListener;

    const TIMING: Timing = Timing {
        interval: Duration::from_secs(60),
        timeout: Duration::from_secs(2),
    };
    const AWAY: Duration = Duration::from_secs(3);

    fn watch(port: u16) -> Watch {
        let target = Target {
            name: "db1".to_owned(),
            options: ConnectOptions::over_tcp("127.0.0.1", port, "checker"),
            checks: Arc::new(Checks::default()),
        };
        Watch::new(vec![target], TIMING)
    }

    /// As the loop is while its process is stopped, or its host sleeps.
    fn away() {
        std::thread::sleep(AWAY);
    }

    #[test]
    fn what_was_answered_while_the_loop_was_away_counts() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let mut watch = watch(port);
        assert!(watch.next(Duration::ZERO).is_empty());
        away();
        let known = watch.next(Duration::ZERO);
        assert_eq!(known.len(), 1);
        assert_eq!(known[0].1.reasons[0].cause, Cause::Refused, "{known:?}");
    }

    #[test]
    fn a_loop_that_was_away_waits_for_the_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut watch = watch(listener.local_addr().unwrap().port());
        assert!(watch.next(Duration::ZERO).is_empty());
        let (stream, _) = listener.accept().unwrap();
        away();
        let known = watch.next(Duration::ZERO);
        assert!(known.is_empty(), "{known:?}");
        // It was about to answer.
        drop((stream, listener));
        let mut known = Vec::new();
        until("it is known", || {
            known = watch.next(Duration::from_millis(10));
            !known.is_empty()
        });
        assert_eq!(known[0].1.reasons[0].cause, Cause::Refused, "{known:?}");
    }
}
