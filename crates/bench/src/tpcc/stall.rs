//! The longest time without a commit.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// When transactions that write were committed, over all sessions.
#[derive(Debug)]
pub(super) struct Stall {
    begun: Instant,
    last_us: AtomicU64,
    longest_us: AtomicU64,
}

impl Default for Stall {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            last_us: AtomicU64::new(0),
            longest_us: AtomicU64::new(0),
        }
    }
}

impl Stall {
    fn now_us(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Notes a commit.
    pub(super) fn committed(&self) {
        let now = self.now_us();
        let last = self.last_us.swap(now, Ordering::Relaxed);
        let gap = now.saturating_sub(last);
        self.longest_us.fetch_max(gap, Ordering::Relaxed);
    }

    /// Forgets what was.
    pub(super) fn restart(&self) {
        self.last_us.store(self.now_us(), Ordering::Relaxed);
        self.longest_us.store(0, Ordering::Relaxed);
    }

    /// Returns the longest time without a commit; the one that is under way counts.
    pub(super) fn longest(&self) -> Duration {
        let last = self.last_us.load(Ordering::Relaxed);
        let open = self.now_us().saturating_sub(last);
        Duration::from_micros(open.max(self.longest_us.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_commits_counts_while_it_lasts_and_afterwards() {
        let stall = Stall::default();
        stall.committed();
        stall.restart();
        let pause = Duration::from_millis(30);
        let until = Instant::now() + pause;
        while Instant::now() < until {
            std::thread::yield_now();
        }
        let under_way = stall.longest();
        assert!(under_way >= pause, "{under_way:?}");
        stall.committed();
        stall.committed();
        assert!(stall.longest() >= under_way);
        stall.restart();
        assert_eq!(stall.longest_us.load(Ordering::Relaxed), 0);
    }
}
