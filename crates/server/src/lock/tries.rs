//! Asking for a lock again and again, so that nobody queues behind the request for long.

use super::Locker;
use super::flush::{self, InTheWay};
use evenkeel_op::{Error, ErrorKind, Result, units};
use std::time::{Duration, Instant};

/// Longest single try, in seconds: the server's own unit. Others queue behind it that long.
pub(super) const TRY_S: u64 = 1;
/// Pause after the first failed try; doubled up to [`PAUSE_MAX`]. In it, everything runs.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(4);
/// How often a pause looks whether the run was cancelled.
const POLL: Duration = Duration::from_millis(20);

/// A statement that takes a lock.
pub(super) struct Wanted<'s> {
    pub(super) statement: &'s str,
    /// Writes are paused from the moment it is requested.
    pub(super) stops_writes: bool,
    /// It has to wait for running queries, so those are waited for first.
    pub(super) waits_for_queries: bool,
    /// Where it is not had in time, others still wait for those who use what it flushed.
    pub(super) flushes: bool,
    /// Undoes what a try that timed out may have left.
    pub(super) clean_up: Option<&'s str>,
}

impl<'s> Wanted<'s> {
    pub(super) fn new(statement: &'s str) -> Self {
        Self {
            statement,
            stops_writes: false,
            waits_for_queries: false,
            flushes: false,
            clean_up: None,
        }
    }
}

impl Locker<'_> {
    /// Tries until it has the lock, or until `until`: then `LockTimeout`.
    pub(super) fn acquire(&mut self, wanted: &Wanted<'_>, until: Instant) -> Result<()> {
        let mut pause = PAUSE;
        loop {
            self.cancel.check()?;
            self.wait_for_queries(wanted, until)?;
            let begun = Instant::now();
            let Err(error) = self.session.run(wanted.statement) else {
                self.has_locked(begun, wanted.stops_writes);
                return Ok(());
            };
            if error.kind() != ErrorKind::LockTimeout {
                return Err(self.could_not(wanted.statement, error));
            }
            if wanted.stops_writes {
                self.stopped_in_vain += begun.elapsed();
            }
            if let Some(statement) = wanted.clean_up {
                self.session.run(statement)?;
            }
            if Instant::now() + pause >= until {
                return Err(self.gave_up(wanted, error));
            }
            self.progress.note(format!(
                "the lock was not free, next try in {}",
                units::duration(pause)
            ));
            self.sleep(pause)?;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    fn has_locked(&mut self, begun: Instant, stops_writes: bool) {
        if stops_writes {
            self.stopped_at.get_or_insert(begun);
        }
        if self.locked_at.is_none() {
            self.locked_at = Some(begun);
            self.watchdog.arm(self.limits.hold);
        }
    }

    fn could_not(&self, statement: &str, error: Error) -> Error {
        if self.watchdog.has_fired() {
            return self.held_too_long();
        }
        Error::new(error.kind(), format!("failed to lock with {statement}")).because(error)
    }

    /// Waits for queries that the statement would wait for, and that others would wait for behind it.
    fn wait_for_queries(&mut self, wanted: &Wanted<'_>, until: Instant) -> Result<()> {
        if !wanted.waits_for_queries {
            return Ok(());
        }
        let policy = &self.limits.long_queries;
        let (session, progress, cancel) = (&mut self.session, self.progress, self.cancel);
        if !wanted.flushes {
            return policy.wait(session, until, progress, cancel);
        }
        let sight = *self
            .sight
            .get_or_insert_with(|| flush::sight(session, progress));
        match flush::wait_until_clear(session, (TRY_S, sight), policy, until, progress, cancel)? {
            None => Ok(()),
            found => Err(flush::gave_up(
                wanted.statement,
                self.limits.deadline,
                found.as_ref(),
            )),
        }
    }

    fn gave_up(&mut self, wanted: &Wanted<'_>, error: Error) -> Error {
        let mut found = None;
        if let Some(sight) = self.sight.filter(|_| wanted.flushes) {
            // What had queued behind the try ends in this time: it was not in the way.
            if let Err(cancelled) = self.sleep(PAUSE) {
                return cancelled;
            }
            // Where this fails, the error says enough.
            let look = InTheWay::look(&mut self.session, TRY_S, sight);
            found = look.ok().flatten();
        }
        flush::gave_up(wanted.statement, self.limits.deadline, found.as_ref()).because(error)
    }

    fn sleep(&self, pause: Duration) -> Result<()> {
        let until = Instant::now() + pause;
        while Instant::now() < until {
            self.cancel.check()?;
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}
