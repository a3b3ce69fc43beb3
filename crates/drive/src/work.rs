//! What a session does, and how one unit of it ended.

use std::time::Duration;

/// What one session does over and over.
pub trait Work: Send + 'static {
    /// Does one unit of work, for example one transaction with all its retries.
    ///
    /// After [`Outcome::Lost`] the session is [revived](Self::revive), or not used any more.
    fn once(&mut self) -> Unit;

    /// How long to wait before the next unit, as a person at a keyboard would. Asked once before each
    /// unit; it does not count as the unit's latency.
    fn pause(&mut self) -> Duration {
        Duration::ZERO
    }

    /// Tries to get a lost session back.
    fn revive(&mut self) -> Revival {
        Revival::Never
    }
}

/// How one unit of work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Which of the kinds of units it was.
    pub kind: usize,
    /// How it ended.
    pub outcome: Outcome,
    /// How often it was retried before it ended so.
    pub retries: u32,
}

impl Unit {
    /// A unit that was done at the first try.
    #[must_use]
    pub fn done(kind: usize) -> Self {
        Self::ended(kind, Outcome::Done)
    }

    /// A unit that ended so at the first try.
    #[must_use]
    pub fn ended(kind: usize, outcome: Outcome) -> Self {
        Self {
            kind,
            outcome,
            retries: 0,
        }
    }
}

/// How a unit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// It failed; the session continues with the next one.
    Failed,
    /// The session is gone.
    Lost,
}

/// Whether a lost session came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revival {
    /// It is lost for good.
    Never,
    /// Not this time.
    NotYet,
    /// It works again.
    Back,
}
