//! A failure, what was decided, and what was done about it.

use super::decide::Decision;
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
