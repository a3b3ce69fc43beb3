//! How many reads the storage takes at once: found by trying.
//!
//! A single disk gains nothing from a second reader, an NVMe drive or a network volume gains from a
//! hundred. So the number of reads under way is doubled as long as that brings more bytes a second.

use std::time::{Duration, Instant};

/// Reads under way at the beginning.
const FIRST: usize = 4;
/// Reads under way at most.
pub(super) const DEPTH_MAX: usize = 256;
/// A step has to bring this much more to be worth the next one.
const WORTH: f64 = 1.15;
/// How long a depth is tried at least: below, a single slow read decides.
const WINDOW: Duration = Duration::from_millis(20);
/// And for how many reads of each place in the queue.
const ROUNDS: usize = 3;

/// Tries depths.
#[derive(Debug)]
pub(super) struct Ramp {
    depth: usize,
    /// Depth and bytes a second of the best window.
    best: (usize, f64),
    settled: bool,
    since: Instant,
    reads: usize,
    bytes: u64,
}

impl Ramp {
    /// Begins; a fixed depth is never changed.
    pub(super) fn new(fixed: Option<usize>, now: Instant) -> Self {
        Self {
            depth: fixed.unwrap_or(FIRST).clamp(1, DEPTH_MAX),
            best: (1, 0.0),
            settled: fixed.is_some(),
            since: now,
            reads: 0,
            bytes: 0,
        }
    }

    /// Returns how many reads may be under way now.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Takes a read that has ended.
    pub(super) fn done(&mut self, bytes: u64, now: Instant) {
        self.reads += 1;
        self.bytes += bytes;
        let took = now.saturating_duration_since(self.since);
        if self.settled || took < WINDOW || self.reads < self.depth * ROUNDS {
            return;
        }
        let rate = self.bytes as f64 / took.as_secs_f64();
        if rate > self.best.1 * WORTH {
            self.best = (self.depth, rate);
            self.settled = self.depth == DEPTH_MAX;
            self.depth = (self.depth * 2).min(DEPTH_MAX);
        } else {
            self.depth = self.best.0;
            self.settled = true;
        }
        (self.since, self.reads, self.bytes) = (now, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads 20 000 times 64 KiB from a storage that answers after `latency` and serves `lanes`
    /// reads at once; returns the depth in the end.
    fn depth_for(lanes: usize, latency: Duration, fixed: Option<usize>) -> usize {
        let mut now = Instant::now();
        let mut ramp = Ramp::new(fixed, now);
        let mut left: usize = 20_000;
        while left > 0 {
            // One round: as many as are under way, in as many turns as the lanes need for them.
            let round = ramp.depth().min(left);
            now += latency * u32::try_from(round.div_ceil(lanes)).unwrap();
            for _ in 0..round {
                ramp.done(64 << 10, now);
            }
            left -= round;
        }
        ramp.depth()
    }

    #[test]
    fn it_goes_as_deep_as_the_storage_gains() {
        let ms = Duration::from_millis(1);
        for lanes in [4, 8, 16, 32, 64, 128] {
            let depth = depth_for(lanes, ms, None);
            assert!((lanes..=2 * lanes).contains(&depth), "{lanes}: {depth}");
        }
        assert_eq!(depth_for(4096, ms, None), DEPTH_MAX);
        assert_eq!(depth_for(1, 8 * ms, None), FIRST);
    }

    #[test]
    fn a_given_depth_stays() {
        assert_eq!(depth_for(64, Duration::from_millis(1), Some(3)), 3);
    }
}
