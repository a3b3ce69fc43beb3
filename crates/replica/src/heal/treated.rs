//! A failure, what was decided, and what was done about it.

use super::decide::{Decision, HealRule};
use super::journal::HealOutcome;
use crate::diagnose::{Finding, Step};
use serde::Serialize;

/// A failure, what was decided, and what was done about it.
#[derive(Debug, Clone)]
pub struct Treated {
    /// What is wrong.
    pub finding: Finding,
    /// What the server is called.
    pub server: String,
    /// What may be done.
    pub decision: Decision,
    /// The steps that repair it.
    pub steps: Vec<Step>,
    /// What was done; `None` if nothing.
    pub healed: Option<Healed>,
}

impl Treated {
    /// Whether nothing was done because another healer is at work there.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        let mut each = self.decision.forbidden.iter();
        each.any(|one| one.rule == HealRule::Busy)
    }
}

/// What was done about a failure.
#[derive(Debug, Clone, Serialize)]
pub struct Healed {
    /// The repair's name in the journal.
    pub id: String,
    /// How it ended.
    pub outcome: HealOutcome,
    /// Why it failed, or what was found afterwards.
    pub why: String,
    /// How long it took, in seconds.
    pub seconds: f64,
}
