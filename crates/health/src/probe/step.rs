//! Which question of a probe is not answered yet, and what that says.

use super::Checks;
use crate::reason::{Cause, Reason};
use evenkeel_op::units;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is asked first.
pub(super) const SIMPLE: &str =
    "SELECT @@GLOBAL.read_only, @@GLOBAL.max_connections, @@GLOBAL.innodb_read_only";

/// What is being waited for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    #[default]
    None,
    /// A filesystem.
    Disk,
    /// Connection and login.
    Login,
    /// The end of a session that did not answer.
    Kill,
    /// The simplest statement.
    Simple,
    /// What this server can do; asked once in a session.
    Abilities,
    /// Counters.
    Counters,
    /// Its replication.
    Sources,
    /// A row that is written, or its age.
    Write(String),
    /// A table.
    Table(String),
    /// The operator's statement.
    Query,
}

impl Step {
    /// Says what is not answered.
    fn name(&self, checks: &Checks) -> String {
        match self {
            Self::None | Self::Login => "the login".to_owned(),
            Self::Disk => "a question about free space".to_owned(),
            Self::Kill => "KILL".to_owned(),
            Self::Simple => SIMPLE.to_owned(),
            Self::Abilities => "the first statements of a session".to_owned(),
            Self::Counters => "SHOW GLOBAL STATUS".to_owned(),
            Self::Sources => "the statement for the state of replication".to_owned(),
            Self::Write(statement) | Self::Table(statement) => statement.clone(),
            Self::Query => checks.query.clone().unwrap_or_default(),
        }
    }

    /// Returns why a server is not up that does not get past this.
    pub(super) fn unanswered(&self, waited: Duration, checks: &Checks) -> Reason {
        let cause = match self {
            Self::None | Self::Login | Self::Kill | Self::Simple => Cause::Hung,
            Self::Disk => Cause::Disk,
            _ => Cause::Stuck,
        };
        let waited = units::duration(waited);
        let mut text = format!("no answer to {} for {waited}", self.name(checks));
        if cause == Cause::Stuck {
            text.push_str(", while simpler statements are answered");
        }
        Reason::new(cause, text)
    }
}

/// The step that one thread works on, for others to see.
#[derive(Debug, Clone, Default)]
pub(crate) struct Steps(Arc<Mutex<Step>>);

impl Steps {
    pub(super) fn now(&self, step: Step) -> Step {
        self.0
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .clone_from(&step);
        step
    }

    pub(crate) fn get(&self) -> Step {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }
}
