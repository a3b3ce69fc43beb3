//! The answer of `repository rebuild`.

use super::Answer;
use evenkeel_repository::RebuildPlan;
use serde::Serialize;

/// What a new head names.
#[derive(Debug, Serialize)]
pub struct RebuildAnswer {
    /// Whether the head was replaced, or that is only planned.
    pub executed: bool,
    /// Whether there is anything to do: the present head is lost, damaged or an older copy.
    pub needed: bool,
    /// Generations that can be restored by the new head.
    pub live: Vec<u32>,
    /// Forgotten generations that others still need.
    pub retired: Vec<u32>,
    /// Generations that the present head does not name, or names wrongly.
    pub regained: Vec<u32>,
    /// Generations that the present head names, and the new one does not.
    pub dropped: Vec<u32>,
    /// What was found and could not be read.
    pub notes: Vec<String>,
}

impl RebuildAnswer {
    /// Describes a plan.
    #[must_use]
    pub fn new(plan: &RebuildPlan, executed: bool) -> Self {
        Self {
            executed,
            needed: plan.needed,
            live: plan.live.clone(),
            retired: plan.retired.clone(),
            regained: plan.regained.clone(),
            dropped: plan.dropped.clone(),
            notes: plan.notes.clone(),
        }
    }
}

impl Answer for RebuildAnswer {
    const SCHEMA: &'static str = "evenkeel/repository-rebuild/1";

    fn text(&self) -> String {
        let mut text = String::new();
        for number in &self.live {
            let is_new = self.regained.contains(number);
            let what = if is_new { "regain" } else { "keep" };
            text.push_str(&format!("{what:<8}{number:>6}\n"));
        }
        for number in self.dropped.iter().filter(|_| self.needed) {
            text.push_str(&format!("{:<8}{number:>6}\n", "drop"));
        }
        for note in &self.notes {
            text.push_str(&format!("left out: {note}\n"));
        }
        text.push_str(match (self.needed, self.executed) {
            (false, _) => "the head is intact: nothing to rebuild\n",
            (true, true) => "done; `evenkeel verify --all` checks whether everything is there\n",
            (true, false) => "only a plan: add --execute to do it\n",
        });
        text
    }
}
