//! What a waiting session leaves with each table it waits for. It is won once.

use crate::sync::{AtomicU64, Condvar, Mutex, Ordering};
use std::time::{Duration, Instant};

/// How often a wait asks by itself whether it was killed: a server tells an engine of that, but not one that it is
/// about to take out.
const LOOK: Duration = Duration::from_secs(1);

/// How a wait ended. Tables are meant by their place in the list that is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// This table gave a row, which the session owns now.
    Granted(u32),
    /// This table was dropped.
    Dropped(u32),
    TimedOut,
    Killed,
}

const WAITING: u64 = 0;

impl Outcome {
    fn encode(self) -> u64 {
        match self {
            Self::TimedOut => 1,
            Self::Killed => 2,
            Self::Granted(table) => 4 + 2 * u64::from(table),
            Self::Dropped(table) => 5 + 2 * u64::from(table),
        }
    }

    fn decode(word: u64) -> Option<Self> {
        let table = u32::try_from(word.saturating_sub(4) / 2).unwrap_or(u32::MAX);
        match word {
            WAITING => None,
            1 => Some(Self::TimedOut),
            2 => Some(Self::Killed),
            even if even % 2 == 0 => Some(Self::Granted(table)),
            _ => Some(Self::Dropped(table)),
        }
    }
}

/// A wait that has one outcome. Tables, the clock and whoever kills compete for it.
#[derive(Debug)]
pub(crate) struct Token {
    owner: u64,
    word: AtomicU64,
    lock: Mutex<()>,
    settled: Condvar,
}

impl Token {
    pub(crate) fn new(owner: u64) -> Self {
        Self {
            owner,
            word: AtomicU64::new(WAITING),
            lock: Mutex::new(()),
            settled: Condvar::new(),
        }
    }

    /// Whose it is.
    pub(crate) fn owner(&self) -> u64 {
        self.owner
    }

    /// Tries to end the wait this way. False: it has ended otherwise, and what was to be given has to
    /// go to somebody else.
    pub(crate) fn settle(&self, outcome: Outcome) -> bool {
        let won = self.word.compare_exchange(
            WAITING,
            outcome.encode(),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if won.is_ok() {
            // Under the lock: the owner is either before its look at the word or asleep.
            let _guard = self.lock.lock().expect("no one panics in here");
            self.settled.notify_all();
        }
        won.is_ok()
    }

    /// How it ended, if it has.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        Outcome::decode(self.word.load(Ordering::Acquire))
    }

    /// Sleeps until the wait has ended, or the moment comes, which ends it. So does `is_killed`.
    pub(crate) fn wait(&self, until: Instant, is_killed: &dyn Fn() -> bool) -> Outcome {
        let mut guard = self.lock.lock().expect("no one panics in here");
        loop {
            if let Some(outcome) = self.outcome() {
                return outcome;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(guard);
                self.settle(Outcome::TimedOut);
                return self.outcome().expect("it is settled");
            }
            let woken = self.settled.wait_timeout(guard, left.min(LOOK));
            let (still, woken) = woken.expect("no one panics in here");
            guard = still;
            if woken.timed_out() {
                drop(guard);
                if is_killed() {
                    self.settle(Outcome::Killed);
                }
                guard = self.lock.lock().expect("no one panics in here");
            }
        }
    }
}
