//! Answers of `forget` and `prune`: a plan, and whether it was performed.

use super::Answer;
use evenkeel_op::units;
use evenkeel_repository::logs::{ForgetLogsPlan, ForgottenLogs, LogPosition};
use evenkeel_repository::{ForgetPlan, PrunePlan, PruneStep};
use serde::Serialize;

/// What `forget` does.
#[derive(Debug, Serialize)]
pub struct ForgetAnswer {
    /// Whether it was done, or only planned.
    pub executed: bool,
    /// Generations that stay, and why.
    pub keep: Vec<Kept>,
    /// Generations that go.
    pub remove: Vec<u32>,
    /// Bytes freed at once.
    pub bytes_freed: u64,
}

/// A generation that stays.
#[derive(Debug, Serialize)]
pub struct Kept {
    /// Its number.
    pub generation: u32,
    /// The rules that keep it.
    pub reasons: Vec<String>,
}

impl ForgetAnswer {
    /// Describes a plan.
    #[must_use]
    pub fn new(plan: &ForgetPlan, executed: bool) -> Self {
        let kept = |(one, reasons): &(evenkeel_repository::Summary, Vec<String>)| Kept {
            generation: one.generation,
            reasons: reasons.clone(),
        };
        Self {
            executed,
            keep: plan.keep.iter().map(kept).collect(),
            remove: plan.remove.iter().map(|one| one.generation).collect(),
            bytes_freed: plan.bytes_freed,
        }
    }
}

impl Answer for ForgetAnswer {
    const SCHEMA: &'static str = "evenkeel/forget/1";

    fn text(&self) -> String {
        let mut text = String::new();
        for kept in &self.keep {
            let why = kept.reasons.join(", ");
            text.push_str(format!("keep    {:>6}  {why}", kept.generation).trim_end());
            text.push('\n');
        }
        for number in &self.remove {
            text.push_str(&format!("forget  {number:>6}\n"));
        }
        text.push_str(match (self.remove.is_empty(), self.executed) {
            (true, _) => "nothing to forget\n",
            (false, true) => "done; `evenkeel prune` frees their space\n",
            (false, false) => "only a plan: add --execute to do it\n",
        });
        text
    }
}

/// What `prune` does.
#[derive(Debug, Serialize)]
pub struct PruneAnswer {
    /// Whether it was done, or only planned.
    pub executed: bool,
    /// Objects that are removed.
    pub remove: Vec<String>,
    /// Packs that are rewritten without what nobody needs.
    pub rewrite: Vec<String>,
    /// Archived binary logs that no generation can use any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub binlogs: Vec<PrunedLogs>,
    /// Bytes freed; estimated while it is a plan.
    pub bytes_freed: u64,
}

/// Archived binary logs of one history that are removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PrunedLogs {
    /// The server.
    pub source: String,
    /// The history of its log.
    pub timeline: String,
    /// What is left begins here; nothing is left of a history without.
    pub before: Option<LogPosition>,
    /// Objects that go.
    pub segments: u64,
    /// Bytes that they take.
    pub bytes: u64,
}

impl From<&ForgottenLogs> for PrunedLogs {
    fn from(step: &ForgottenLogs) -> Self {
        Self {
            source: step.source.clone(),
            timeline: step.timeline.clone(),
            before: step.before.clone(),
            segments: step.segments,
            bytes: step.bytes,
        }
    }
}

impl PruneAnswer {
    /// Describes a plan; `freed` are the bytes really freed, when it was performed.
    #[must_use]
    pub fn new(plan: &PrunePlan, logs: &ForgetLogsPlan, freed: Option<u64>) -> Self {
        let mut answer = Self {
            executed: freed.is_some(),
            remove: Vec::new(),
            rewrite: Vec::new(),
            binlogs: logs.steps.iter().map(PrunedLogs::from).collect(),
            bytes_freed: freed.unwrap_or(plan.bytes_freed + logs.bytes_freed),
        };
        for step in &plan.steps {
            match step {
                PruneStep::Drop { object, .. } => answer.remove.push(object.clone()),
                PruneStep::Compact { object, .. } => answer.rewrite.push(object.clone()),
            }
        }
        answer
    }
}

impl Answer for PruneAnswer {
    const SCHEMA: &'static str = "evenkeel/prune/1";

    fn text(&self) -> String {
        let mut text = String::new();
        for object in &self.remove {
            text.push_str(&format!("remove   {object}\n"));
        }
        for object in &self.rewrite {
            text.push_str(&format!("rewrite  {object}\n"));
        }
        for logs in &self.binlogs {
            let what = match &logs.before {
                Some(place) => format!("binary logs before {}", place.file),
                None => "all binary logs".to_owned(),
            };
            text.push_str(&format!(
                "remove   {}/{}: {what}, {}, {}\n",
                logs.source,
                logs.timeline,
                units::count(logs.segments, "segment"),
                units::bytes(logs.bytes)
            ));
        }
        let bytes = units::bytes(self.bytes_freed);
        text.push_str(&match (
            self.remove.is_empty() && self.rewrite.is_empty() && self.binlogs.is_empty(),
            self.executed,
        ) {
            (true, _) => "nothing to prune\n".to_owned(),
            (false, true) => format!("{bytes} freed\n"),
            (false, false) => format!("about {bytes} would be freed; add --execute to do it\n"),
        });
        text
    }
}
