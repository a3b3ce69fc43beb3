//! Moves rows from a queue to a queue or an InnoDB table of another server, each exactly once.
//!
//! | file | what |
//! |---|---|
//! | `batch` | rows as text that any server reads back, and what tells two batches apart |
//! | `ledger` | what the target remembers of the batch that was sent last |
//! | `link` | two sessions, and a batch's way from one to the other |
//!
//! A batch is: rows that are owned at the source; its first row id and length, written into the ledger; the rows, written
//! into the target; the rows, ended at the source. Whatever dies in between, the ledger names the one batch in doubt: its
//! rows are the source's first, are claimed in exactly that number and compared, and sent once more under the source id
//! that they had. A queue passes over a source id that it has, and a transaction of InnoDB has the ledger in it.

mod batch;
mod ledger;
mod link;

use crate::name::QueueName;
use evenkeel_op::{Cancel, ErrorKind, Event, Progress, Result, Unit};
use evenkeel_server::options::ConnectOptions;
use link::{Link, Step};
use serde::Serialize;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// From where to where, and how.
#[derive(Debug, Clone)]
pub struct Forward {
    /// The server that has the rows.
    pub source: ConnectOptions,
    /// The server that gets them.
    pub target: ConnectOptions,
    /// The queue to take from.
    pub from: QueueName,
    /// The queue, or table of InnoDB, to put into.
    pub to: QueueName,
    /// Rows at once, at most; from 1.
    pub batch: u32,
    /// Which of the target's 64 memories of sources, from 0.
    pub slot: u8,
    /// End when the queue is empty.
    pub once: bool,
    /// Forget what was sent before.
    pub reset: bool,
}

/// What was forwarded so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forwarded {
    /// The queue that rows came from.
    pub from: String,
    /// The table that rows went into.
    pub to: String,
    /// Rows that were sent, those of batches in doubt too.
    pub rows: u64,
    /// Batches that were sent.
    pub batches: u64,
    /// Batches whose end was not known, and is now.
    pub settled: u64,
    /// Reconnections.
    pub reconnects: u64,
    /// When the queue was last seen empty: seconds since 1970.
    pub caught_up_unix_s: Option<f64>,
}

/// How long one wait for rows takes at most: so soon a request to stop is seen.
const PATIENCE_S: f64 = 1.0;

/// The longest pause between tries to reach a server.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Forwards until it is asked to stop, or, if so planned, the queue is empty. `tell` hears of each step.
///
/// A server that cannot be reached is waited for, but when `once` is set.
///
/// Errors: those of the sessions; `Refused` where a row may come twice or not at all: somebody else consumes the
/// queue, or a setting lets a server forget what it has acknowledged; `Busy` where another run uses the same slot;
/// `Failed` where the target does not take a row.
pub fn forward(
    plan: &Forward,
    cancel: &Cancel,
    progress: &dyn Progress,
    tell: &mut dyn FnMut(&Forwarded),
) -> Result<Forwarded> {
    let mut done = Forwarded {
        from: plan.from.to_string(),
        to: plan.to.to_string(),
        rows: 0,
        batches: 0,
        settled: 0,
        reconnects: 0,
        caught_up_unix_s: None,
    };
    progress.phase("forwarding", None, Unit::Items);
    let (mut reset, mut pause) = (plan.reset, Duration::from_millis(250));
    loop {
        let before = done.batches;
        match over_one_link(plan, &mut reset, cancel, progress, &mut done, tell) {
            Ok(()) => break,
            Err(error) if error.kind() != ErrorKind::Unreachable || plan.once => return Err(error),
            Err(_) if cancel.is_cancelled() => break,
            Err(error) => progress.warn(format!("{}; trying again", error.chain())),
        }
        if done.batches > before {
            pause = Duration::from_millis(250);
        }
        rest(pause, cancel);
        pause = (pause * 2).min(LONGEST_PAUSE);
        done.reconnects += 1;
    }
    progress.end();
    Ok(done)
}

/// Forwards as long as both servers are there.
fn over_one_link(
    plan: &Forward,
    reset: &mut bool,
    cancel: &Cancel,
    progress: &dyn Progress,
    done: &mut Forwarded,
    tell: &mut dyn FnMut(&Forwarded),
) -> Result<()> {
    let mut link = Link::open(plan, *reset, cancel)?;
    *reset = false;
    let patience = if plan.once { 0.0 } else { PATIENCE_S };
    while !cancel.is_cancelled() {
        match link.step(patience)? {
            Step::Sent { rows, was_in_doubt } => {
                done.rows += rows;
                done.batches += 1;
                done.settled += u64::from(was_in_doubt);
                progress.advance(rows);
            }
            Step::Empty => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH);
                let unix_s = now.unwrap_or_default().as_secs_f64();
                done.caught_up_unix_s = Some(unix_s);
                progress.event(Event::CaughtUp { unix_s });
                if plan.once {
                    return Ok(());
                }
            }
        }
        tell(done);
    }
    Ok(())
}

/// Sleeps, but not through a request to stop.
fn rest(time: Duration, cancel: &Cancel) {
    let begun = Instant::now();
    while begun.elapsed() < time && !cancel.is_cancelled() {
        std::thread::sleep(Duration::from_millis(50));
    }
}
