//! One server asked: what is looked at, and what is wrong with the answers.

mod answers;
mod asked;
mod checks;
mod failure;
mod standing;
mod step;
mod worker;

pub use checks::{Checks, Expected, TableName};
pub use failure::reason_of;
pub(crate) use standing::Standing;
pub(crate) use worker::{Reported, Tell, Worker, bounded};

use crate::reason::Reason;
use evenkeel_op::Error;
use std::time::Duration;

/// What a probe found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// What is wrong; empty if nothing is.
    pub reasons: Vec<Reason>,
    /// Checks that could not be made, and why: each is among the reasons, too.
    pub unknown: Vec<Reason>,
    /// Clients may write.
    pub is_writable: Option<bool>,
    /// It has sources, and all their threads run; `None` if nobody asked.
    pub replicates: Option<bool>,
    /// How far behind, in seconds, of all sources the most; `None` if nobody asked or the server does not know.
    pub lag_s: Option<u64>,
    /// Connections that are in use.
    pub connections: Option<u64>,
    /// Connections that are allowed.
    pub connections_max: Option<u64>,
    /// Threads that run a statement; one is ours.
    pub running: Option<u64>,
    /// Free bytes below the data directory, for users without privileges.
    pub disk_free: Option<u64>,
    /// How long it took.
    pub took: Duration,
}

impl Observed {
    /// Takes what a check ended with. One that could not be made says nothing about the server.
    fn fails(&mut self, reason: Reason, error: &Error) {
        if failure::is_no_answer(&reason, error) {
            self.unknown.push(reason.clone());
        }
        self.reasons.push(reason);
    }

    /// Makes what is found where nothing answers.
    #[must_use]
    pub fn failed(reason: Reason, took: Duration) -> Self {
        Self {
            reasons: vec![reason],
            took,
            ..Self::default()
        }
    }
}
