//! Pacing: never more than so many bytes a second, shared by all readers of a run.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often a wait looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// A limit in bytes per second that many threads share.
#[derive(Debug)]
pub struct RateLimit {
    bytes_per_s: u64,
    next_free: Mutex<Instant>,
}

impl RateLimit {
    /// Makes a limit; `bytes_per_s` of 0 means no limit.
    #[must_use]
    pub fn new(bytes_per_s: u64) -> Self {
        Self {
            bytes_per_s,
            next_free: Mutex::new(Instant::now()),
        }
    }

    /// Sleeps until `bytes` more may be moved, or somebody wants to stop: a low rate makes for long
    /// waits.
    pub fn pace(&self, bytes: u64, is_stopped: impl Fn() -> bool) {
        let now = Instant::now();
        let Some(end) = self.reserve(bytes, now).map(|wait| now + wait) else {
            return;
        };
        while let Some(left) = end.checked_duration_since(Instant::now())
            && !left.is_zero()
            && !is_stopped()
        {
            std::thread::sleep(left.min(LOOK));
        }
    }

    /// Books `bytes` at `now` and returns how long the caller has to wait for its turn.
    fn reserve(&self, bytes: u64, now: Instant) -> Option<Duration> {
        if self.bytes_per_s == 0 {
            return None;
        }
        let cost = Duration::from_secs_f64(bytes as f64 / self.bytes_per_s as f64);
        let mut next_free = self.next_free.lock().unwrap_or_else(|e| e.into_inner());
        let start = (*next_free).max(now);
        *next_free = start + cost;
        start
            .checked_duration_since(now)
            .filter(|wait| !wait.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_callers_wait_for_earlier_ones() {
        let limit = RateLimit::new(1000);
        let now = Instant::now() + Duration::from_secs(1);
        assert_eq!(limit.reserve(500, now), None);
        assert_eq!(limit.reserve(500, now), Some(Duration::from_millis(500)));
        assert_eq!(limit.reserve(1, now + Duration::from_secs(5)), None);
    }

    #[test]
    fn a_wait_of_days_ends_when_it_is_not_wanted_any_more() {
        let limit = RateLimit::new(1);
        let asked = std::cell::Cell::new(0);
        for _ in 0..2 {
            limit.pace(1 << 20, || asked.replace(asked.get() + 1) == 2);
        }
        assert_eq!(asked.get(), 3);
    }

    #[test]
    fn zero_is_no_limit() {
        assert_eq!(RateLimit::new(0).reserve(u64::MAX, Instant::now()), None);
    }
}
