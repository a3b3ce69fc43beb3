//! Takes turns with the server: reading stops again and again, for as long as keeps the server's
//! loss under a limit.
//!
//! Only ordering is stopped. What was ordered is read and stored to its end, so that a rest begins with the
//! device's queue empty and the workers idle. Another thread asks the server how
//! many statements it answered, at the beginning and the end of each rest, and decides (`pace`).

use super::ahead::Ahead;
use super::pace::{LONGEST_REST, Pace, Span};
use crate::backup::request::{BackupRequest, Source};
use evenkeel_op::{Cancel, Error, Result, Run};
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// From this limit on the server is not watched.
const NO_LIMIT: u8 = 100;
/// After work the server needs a moment until it is as fast as it can be.
const RECOVERY: Duration = Duration::from_millis(20);
/// How often a wait looks whether the run has failed.
const LOOK: Duration = Duration::from_millis(20);
/// A rest that is this long has been forgotten: the server does not answer.
const FORGOTTEN: Duration = LONGEST_REST.saturating_mul(2);

/// What the reading and the watching thread tell each other.
#[derive(Debug, Default)]
struct TurnState {
    /// Nothing needs to be ordered.
    resting: bool,
    /// Nothing is ordered any more.
    at_rest: bool,
    /// Nobody reads, or nobody watches.
    ended: bool,
    rested: Duration,
    warning: Option<String>,
}

#[derive(Debug, Default)]
struct Gate {
    state: Mutex<TurnState>,
    changed: Condvar,
}

/// Reading's side.
#[derive(Debug)]
pub(in crate::backup) struct Turns {
    gate: Arc<Gate>,
}

impl Turns {
    /// Begins to watch the server, if it runs and the request has a limit.
    pub(in crate::backup) fn begin(request: &BackupRequest, run: Run<'_>) -> Self {
        let gate = Arc::new(Gate::default());
        let limit = request.max_impact_percent;
        if let Source::Live(options) = &request.source
            && limit < NO_LIMIT
            && let Err(error) = start(options, limit, &gate)
        {
            run.progress.warn(continues(&error));
        }
        Self { gate }
    }

    /// Waits while the server's turn lasts.
    pub(in crate::backup) fn wait(
        &self,
        ahead: &Ahead,
        failed: &Cancel,
        run: Run<'_>,
    ) -> Result<()> {
        if !self.gate.is_resting() {
            return Ok(());
        }
        ahead.wait_until_stored(failed, run.cancel)?;
        let begun = Instant::now();
        let mut state = self.gate.lock();
        while state.resting {
            state.at_rest = true;
            self.gate.changed.notify_all();
            failed.check()?;
            run.cancel.check()?;
            if begun.elapsed() > FORGOTTEN {
                let error = Error::failed("the server no longer answers");
                state.give_up(Some(continues(&error)));
                break;
            }
            state = self.gate.wait(state, LOOK);
        }
        state.rested += begun.elapsed();
        Ok(())
    }

    /// Stops watching, and returns how long reading has rested.
    pub(in crate::backup) fn end(self, run: Run<'_>) -> Duration {
        let mut state = self.gate.lock();
        if let Some(warning) = state.warning.take() {
            run.progress.warn(warning);
        }
        state.rested
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        // The thread is not waited for: it ends by itself, at the latest when the server answers.
        self.gate.lock().give_up(None);
        self.gate.changed.notify_all();
    }
}

fn continues(error: &Error) -> String {
    format!(
        "the server's load cannot be measured, so reading continues without rests: {}",
        error.chain()
    )
}

impl TurnState {
    fn give_up(&mut self, warning: Option<String>) {
        if !self.ended {
            self.warning = warning;
        }
        self.ended = true;
        self.resting = false;
    }
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, TurnState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, TurnState>,
        most: Duration,
    ) -> MutexGuard<'a, TurnState> {
        let waited = self.changed.wait_timeout(state, most);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn is_resting(&self) -> bool {
        self.lock().resting
    }

    /// Returns whether there is still something to watch for after `time`.
    fn sleep(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut state = self.lock();
        while !state.ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.wait(state, left);
        }
        !state.ended
    }

    /// Begins the server's turn, and returns once nothing is being read; false when it is all over.
    fn stop(&self) -> bool {
        let mut state = self.lock();
        state.resting = !state.ended;
        state.at_rest = false;
        while !state.at_rest && !state.ended {
            state = self.wait(state, LOOK);
        }
        !state.ended
    }

    fn resume(&self) {
        self.lock().resting = false;
        self.changed.notify_all();
    }
}

/// Starts the watching thread on a session of its own.
fn start(options: &ConnectOptions, limit: u8, gate: &Arc<Gate>) -> Result<()> {
    let mut session = Session::open(options)?;
    let mut asked = 0;
    let count = move || {
        asked += 1;
        statements(&mut session).map(|count| count.saturating_sub(asked))
    };
    let gate = Arc::clone(gate);
    let thread = std::thread::Builder::new().name("watch".to_owned());
    let started = thread.spawn(move || run(&gate, Pace::new(limit), count));
    started.map_err(|error| Error::failed("failed to start a thread").because(error))?;
    Ok(())
}

/// Watches until reading ends; if watching fails, lets reading continue.
fn run(gate: &Gate, pace: Pace, count: impl FnMut() -> Result<u64>) {
    let result = watch(gate, pace, count);
    gate.lock()
        .give_up(result.err().map(|error| continues(&error)));
    gate.changed.notify_all();
}

/// Returns how many statements clients have sent, this one included. In all servers sessions
/// that still exist are in it, and what stored routines and replication run is not.
fn statements(session: &mut Session) -> Result<u64> {
    let row = session.one("SHOW GLOBAL STATUS LIKE 'Questions'")?;
    row.and_then(|row| row.at(1)?.parse().ok())
        .ok_or_else(|| Error::failed("the server does not report how many statements it answered"))
}

/// Statements by a time.
#[derive(Clone, Copy)]
struct Sample {
    at: Instant,
    statements: u64,
}

impl Sample {
    fn take(count: &mut impl FnMut() -> Result<u64>) -> Result<Self> {
        let statements = count()?;
        Ok(Self {
            at: Instant::now(),
            statements,
        })
    }

    fn since(self, earlier: Self) -> Span {
        Span {
            statements: self.statements.saturating_sub(earlier.statements) as f64,
            seconds: self.at.duration_since(earlier.at).as_secs_f64(),
        }
    }
}

/// Lets reading work and rest until it ends.
fn watch(gate: &Gate, mut pace: Pace, mut count: impl FnMut() -> Result<u64>) -> Result<()> {
    let mut begun = Sample::take(&mut count)?;
    while gate.sleep(pace.work()) {
        if !pace.is_busy() {
            let now = Sample::take(&mut count)?;
            pace.worked_on(now.since(begun));
            if !pace.is_busy() {
                begun = now;
                continue;
            }
        }
        if !gate.stop() {
            break;
        }
        let stopped = Sample::take(&mut count)?;
        let work = stopped.since(begun);
        let rest = pace.rest(work.seconds);
        if !gate.sleep(RECOVERY) {
            break;
        }
        let recovered = Sample::take(&mut count)?;
        if !gate.sleep(rest.saturating_sub(RECOVERY)) {
            break;
        }
        let rested = Sample::take(&mut count)?;
        pace.learn(work, recovered.since(stopped), rested.since(recovered));
        begun = rested;
        gate.resume();
    }
    Ok(())
}

#[cfg(test)]
mod tests;
