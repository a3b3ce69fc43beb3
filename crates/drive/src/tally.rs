//! What sessions did, by kind of unit.

use crate::{Latency, Outcome, Unit};
use hdrhistogram::Histogram;
use std::sync::Mutex;
use std::time::Duration;

/// The longest latency that is distinguished: an hour, in microseconds.
const LONGEST_US: u64 = 3_600_000_000;
/// Sessions share this many tallies: enough that they seldom wait for each other.
const SHARDS: usize = 16;

/// Units of one kind.
#[derive(Debug, Clone)]
pub struct KindTally {
    /// Units done.
    pub done: u64,
    /// Units that failed.
    pub failed: u64,
    /// How often units were retried.
    pub retries: u64,
    latency_us: Histogram<u64>,
}

impl KindTally {
    fn new() -> Self {
        // It grows with what is recorded; three digits are at most 200 KiB.
        let mut latency_us = Histogram::new(3).expect("three digits are allowed");
        latency_us.auto(true);
        Self {
            done: 0,
            failed: 0,
            retries: 0,
            latency_us,
        }
    }

    /// Returns the latency of the units done.
    #[must_use]
    pub fn latency(&self) -> Latency {
        Latency::of(&self.latency_us)
    }

    /// Returns how many of the units done took at most so long.
    #[must_use]
    pub fn within(&self, limit: Duration) -> u64 {
        let us = u64::try_from(limit.as_micros()).unwrap_or(LONGEST_US);
        self.latency_us.count_between(0, us.min(LONGEST_US))
    }

    /// Returns a latency in microseconds that a share from 0 to 1 of the units done kept below.
    #[must_use]
    pub fn quantile_us(&self, share: f64) -> u64 {
        self.latency_us.value_at_quantile(share)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.done += other.done;
        self.failed += other.failed;
        self.retries += other.retries;
        self.latency_us
            .add(&other.latency_us)
            .expect("histograms that grow take any other");
    }
}

/// What sessions did over some time.
#[derive(Debug, Clone)]
pub struct Tally {
    /// By kind of unit.
    pub kinds: Vec<KindTally>,
    /// How often a session was lost.
    pub lost: u64,
}

impl Tally {
    pub(crate) fn new(kinds: usize) -> Self {
        Self {
            kinds: (0..kinds).map(|_| KindTally::new()).collect(),
            lost: 0,
        }
    }

    fn record(&mut self, unit: Unit, latency: Duration) {
        let kind = &mut self.kinds[unit.kind];
        kind.retries += u64::from(unit.retries);
        match unit.outcome {
            Outcome::Done => {
                let us = u64::try_from(latency.as_micros()).unwrap_or(LONGEST_US);
                kind.done += 1;
                kind.latency_us
                    .record(us.clamp(1, LONGEST_US))
                    .expect("histograms that grow take any value");
            }
            Outcome::Failed => kind.failed += 1,
            Outcome::Lost => self.lost += 1,
        }
    }

    /// Adds what others did.
    pub fn add(&mut self, other: &Self) {
        self.lost += other.lost;
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.add(theirs);
        }
    }

    /// Returns units done, of all kinds.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.done).sum()
    }

    /// Returns units failed, of all kinds.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.failed).sum()
    }
}

/// Where sessions write down what they did.
#[derive(Debug)]
pub(crate) struct Board {
    kinds: usize,
    shards: Vec<Mutex<Tally>>,
}

impl Board {
    pub(crate) fn new(kinds: usize, sessions: usize) -> Self {
        let shards = sessions.clamp(1, SHARDS);
        Self {
            kinds,
            shards: (0..shards).map(|_| Mutex::new(Tally::new(kinds))).collect(),
        }
    }

    pub(crate) fn record(&self, session: usize, unit: Unit, latency: Duration) {
        let shard = &self.shards[session % self.shards.len()];
        let mut tally = shard.lock().unwrap_or_else(|e| e.into_inner());
        tally.record(unit, latency);
    }

    /// Returns what was done since the last time, and starts over.
    pub(crate) fn take(&self) -> Tally {
        let mut all = Tally::new(self.kinds);
        for shard in &self.shards {
            let empty = Tally::new(self.kinds);
            let mut tally = shard.lock().unwrap_or_else(|e| e.into_inner());
            let taken = std::mem::replace(&mut *tally, empty);
            drop(tally);
            all.add(&taken);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_counted_twice_or_lost_between_takes() {
        let board = Board::new(2, 40);
        let ms = Duration::from_millis;
        for session in 0..40 {
            board.record(session, Unit::done(session % 2), ms(session as u64 + 1));
        }
        board.record(3, Unit::ended(1, Outcome::Failed), ms(1));
        board.record(3, Unit::ended(0, Outcome::Lost), ms(1));
        let retried = Unit {
            retries: 2,
            ..Unit::done(0)
        };
        board.record(3, retried, Duration::from_secs(7200));
        let first = board.take();
        assert_eq!((first.done(), first.failed(), first.lost), (41, 1, 1));
        assert_eq!(first.kinds[0].retries, 2);
        assert_eq!(first.kinds[1].latency().count, 20);
        assert_eq!(first.kinds[1].within(ms(2)), 1);
        assert!(first.kinds[1].within(ms(40)) >= 19);
        // Longer than an hour is an hour.
        assert!(first.kinds[0].latency().max_us >= LONGEST_US);
        assert_eq!(board.take().done(), 0);
    }
}
