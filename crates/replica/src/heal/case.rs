//! The facts of one failure, as rules look at them.

use crate::diagnose::{Class, Failure};
use evenkeel_server::replication::ThreadState;

/// One failure, and all that decides whether it may be repaired.
#[derive(Debug, Clone)]
pub struct HealCase {
    /// What is wrong.
    pub failure: Failure,
    /// Who may repair it, as the diagnosis says.
    pub class: Class,
    /// The thread that fetches; `None` where the failure is not of a channel.
    pub receiver: Option<ThreadState>,
    /// The thread that applies.
    pub applier: Option<ThreadState>,
    /// Its thread that fetches stands without an error: somebody stopped it.
    pub receiver_was_stopped: bool,
    /// Its thread that applies does.
    pub applier_was_stopped: bool,
    /// It is a MariaDB.
    pub is_mariadb: bool,
    /// It continues by GTID.
    pub by_gtid: bool,
    /// It is behind on purpose, by so many seconds.
    pub delay_s: u64,
    /// Replicas of its source, itself among them, where clients can write.
    pub writable: Vec<String>,
    /// What about it or its source could not be checked.
    pub unchecked: Vec<String>,
    /// What else is wrong with it.
    pub others: Vec<(Failure, Class)>,
    /// Its source; `None` if that was not asked.
    pub source: Option<SourceCase>,
    /// Other replicas of its source.
    pub siblings: SiblingCase,
    /// Others replicate from it.
    pub has_replicas: bool,
    /// What was done before.
    pub past: PastCase,
    /// For so long it had been running when the past was read, if it says so.
    pub uptime_s: Option<u64>,
    /// Programs of others that are at work on it or its source.
    pub tools: Vec<String>,
}

/// The source of a replica.
#[derive(Debug, Clone)]
pub struct SourceCase {
    /// What it is called.
    pub name: String,
    /// It answers.
    pub answers: bool,
    /// It has what the replica needs next; `None` if that is not known.
    pub has_next: Option<bool>,
}

/// Other replicas of the source.
#[derive(Debug, Clone, Default)]
pub struct SiblingCase {
    /// How many.
    pub all: usize,
    /// Those with nothing wrong.
    pub healthy: usize,
    /// Those with the same failure.
    pub same: usize,
}

/// What was done to the replica before.
#[derive(Debug, Clone, Default)]
pub struct PastCase {
    /// Repairs that began within the last hour; without the one that was interrupted, if that was the last one: what
    /// comes next is the rest of it.
    pub last_hour: u32,
    /// A repair of this channel that stopped a thread within the last hour and did not come to its end; nothing was
    /// applied since.
    pub interrupted: Option<Interrupted>,
}

/// A repair that did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupted {
    /// Its name.
    pub id: String,
    /// So many seconds ago it was begun.
    pub ago_s: u64,
}
