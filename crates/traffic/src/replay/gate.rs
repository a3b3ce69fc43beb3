//! How far each session is, and whoever waits for it.

use super::order::At;
use evenkeel_op::{Cancel, Result};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often whoever waits looks whether there is an end to it.
const LOOK: Duration = Duration::from_millis(100);
/// How long one waits who may have locks. Nobody needs them whom it waits for, if the order is known.
const WITH_LOCKS: Duration = Duration::from_secs(10);
/// The same, where it is a log that says the order: not quite.
const WITH_LOCKS_BY_LOG: Duration = Duration::from_secs(1);
/// How long anybody else waits.
const WITHOUT: Duration = Duration::from_secs(60);

/// One session.
#[derive(Debug, Default)]
struct Gate {
    /// How many of its steps are done; all of them, once it has ended.
    done: AtomicU32,
    waiting: AtomicU32,
    mutex: Mutex<()>,
    moved: Condvar,
}

/// All sessions.
#[derive(Debug)]
pub(super) struct Gates {
    all: Vec<Gate>,
    with_locks: Duration,
}

impl Gates {
    pub(super) fn new(sessions: usize, is_exact: bool) -> Self {
        Self {
            all: (0..sessions).map(|_| Gate::default()).collect(),
            with_locks: if is_exact {
                WITH_LOCKS
            } else {
                WITH_LOCKS_BY_LOG
            },
        }
    }

    /// Says that a session has done so many steps.
    pub(super) fn done(&self, session: u32, steps: u32) {
        let gate = &self.all[session as usize];
        // In this order with those who begin to wait: one of the two sees the other.
        gate.done.store(steps, Ordering::SeqCst);
        if gate.waiting.load(Ordering::SeqCst) > 0 {
            let _held = gate.mutex.lock().unwrap_or_else(PoisonError::into_inner);
            gate.moved.notify_all();
        }
    }

    /// Says that nothing more is to come of a session.
    pub(super) fn ended(&self, session: u32) {
        self.done(session, u32::MAX);
    }

    /// Waits until steps of other sessions are done. False if that took too long.
    ///
    /// Errors: `Interrupted`.
    pub(super) fn wait(&self, after: &[At], may_have_locks: bool, cancel: &Cancel) -> Result<bool> {
        let most = if may_have_locks {
            self.with_locks
        } else {
            WITHOUT
        };
        let mut until = None;
        for (session, step) in after {
            let gate = &self.all[*session as usize];
            let is_done = || gate.done.load(Ordering::SeqCst) > *step;
            if is_done() {
                continue;
            }
            let until = *until.get_or_insert_with(|| Instant::now() + most);
            gate.waiting.fetch_add(1, Ordering::SeqCst);
            let mut held = gate.mutex.lock().unwrap_or_else(PoisonError::into_inner);
            while !is_done() && Instant::now() < until && !cancel.is_cancelled() {
                held = gate
                    .moved
                    .wait_timeout(held, LOOK)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
            }
            drop(held);
            gate.waiting.fetch_sub(1, Ordering::SeqCst);
            if !is_done() {
                cancel.check()?;
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_let_through_when_it_is_done() {
        let gates = Gates::new(2, true);
        let cancel = Cancel::new();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| gates.wait(&[(0, 0), (1, 4)], false, &cancel));
            gates.done(0, 1);
            gates.done(1, 5);
            assert!(waiter.join().unwrap().unwrap());
        });
    }

    #[test]
    fn who_ended_is_waited_for_no_more() {
        let gates = Gates::new(1, true);
        gates.ended(0);
        assert!(gates.wait(&[(0, 1000)], true, &Cancel::new()).unwrap());
    }

    #[test]
    fn nobody_waits_on_who_is_to_stop() {
        let cancel = Cancel::new();
        cancel.cancel(2);
        // A wait that was too long would be no error.
        assert!(Gates::new(1, true).wait(&[(0, 0)], true, &cancel).is_err());
    }
}
