//! What two samples of a server say about the time between them. Arithmetic, and nothing else.

use crate::details::Details;
use crate::status::{COMMITS, DELETES, INSERTS, QUESTIONS, SELECTS, Status, UPDATES, UPTIME};
use std::time::Instant;

/// How much less than the clock here a server's uptime may grow before it counts as restarted: both are rounded,
/// and an answer takes its time.
const UPTIME_SLACK_S: u64 = 2;

/// What a connection of ours has added to a server's counters since it was opened, but for a constant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Own {
    /// In `Questions`.
    pub statements: u64,
    /// In `Com_select`.
    pub selects: u64,
}

/// A server's answer.
#[derive(Debug, Clone)]
pub struct Sample {
    /// When it arrived.
    pub at: Instant,
    /// The server's id of the connection that asked.
    pub connection: u64,
    /// What it said.
    pub status: Status,
    /// What asking has added to it.
    pub own: Own,
    /// What else it said, where that was asked for.
    pub details: Option<Details>,
}

/// What happened between two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// The server ran all the time; this is what it did for others.
    Counted(Counts),
    /// It was started again, or its counters began again.
    Restarted,
    /// Our connection is another one: what was ours in between is not known, so the next sample counts.
    Reconnected,
}

/// Statements of others in an interval. What the server does not say is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Counts {
    /// How long it was between the two answers.
    pub seconds: f64,
    /// Statements of clients.
    pub queries: Option<u64>,
    /// SELECT, also from the query cache.
    pub selects: Option<u64>,
    /// INSERT, REPLACE, LOAD DATA.
    pub inserts: Option<u64>,
    /// UPDATE.
    pub updates: Option<u64>,
    /// DELETE.
    pub deletes: Option<u64>,
    /// COMMIT.
    pub commits: Option<u64>,
}

impl Counts {
    /// Returns a count for each second of the interval.
    #[must_use]
    pub fn per_s(&self, count: Option<u64>) -> Option<f64> {
        let seconds = Some(self.seconds).filter(|seconds| *seconds > 0.0)?;
        Some(count? as f64 / seconds)
    }
}

/// Compares two samples of a server.
#[must_use]
pub fn between(before: &Sample, after: &Sample) -> Change {
    let elapsed = after.at.saturating_duration_since(before.at);
    let is_other = before.connection != after.connection;
    if has_restarted(before, after, is_other, elapsed.as_secs()) {
        return Change::Restarted;
    }
    if is_other {
        return Change::Reconnected;
    }
    let own = |now: u64, then: u64| now.saturating_sub(then);
    let statements = own(after.own.statements, before.own.statements);
    let own_selects = own(after.own.selects, before.own.selects);
    let in_all = |names| after.status.grown_in_all(&before.status, names);
    let others = |count: Option<u64>, ours| count.map(|count: u64| count.saturating_sub(ours));
    Change::Counted(Counts {
        seconds: elapsed.as_secs_f64(),
        queries: others(after.status.grown(&before.status, QUESTIONS), statements),
        selects: others(in_all(SELECTS), own_selects),
        inserts: in_all(INSERTS),
        updates: in_all(UPDATES),
        deletes: in_all(DELETES),
        commits: in_all(COMMITS),
    })
}

/// A server that was restarted closed our connection. Behind a proxy that hides this, the counters tell.
fn has_restarted(before: &Sample, after: &Sample, is_other: bool, elapsed_s: u64) -> bool {
    let went_down = |name| {
        let pair = before.status.get(name).zip(after.status.get(name));
        pair.is_some_and(|(then, now)| now < then)
    };
    let uptime = before.status.get(UPTIME).zip(after.status.get(UPTIME));
    let is_late = uptime.is_some_and(|(then, now)| {
        now.saturating_add(UPTIME_SLACK_S) < then.saturating_add(elapsed_s)
    });
    went_down(UPTIME) || went_down(QUESTIONS) || is_other && is_late
}

/// Returns the sum of what several servers did each second: of a count of theirs, where it is known.
#[must_use]
pub fn total_per_s<'a>(
    counts: impl IntoIterator<Item = &'a Counts>,
    which: impl Fn(&Counts) -> Option<u64>,
) -> Option<f64> {
    let known = counts.into_iter().filter_map(|one| one.per_s(which(one)));
    known.fold(None, |sum, one| Some(sum.unwrap_or(0.0) + one))
}
