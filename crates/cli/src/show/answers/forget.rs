//! Answers of `forget` and `prune`: a plan, and whether it was performed.

use super::Answer;
use evenkeel_op::units;
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
    /// Bytes freed; estimated while it is a plan.
    pub bytes_freed: u64,
}

impl PruneAnswer {
    /// Describes a plan; `freed` are the bytes really freed, when it was performed.
    #[must_use]
    pub fn new(plan: &PrunePlan, freed: Option<u64>) -> Self {
        let mut answer = Self {
            executed: freed.is_some(),
            remove: Vec::new(),
            rewrite: Vec::new(),
            bytes_freed: freed.unwrap_or(plan.bytes_freed),
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
        let bytes = units::bytes(self.bytes_freed);
        text.push_str(&match (
            self.remove.is_empty() && self.rewrite.is_empty(),
            self.executed,
        ) {
            (true, _) => "nothing to prune\n".to_owned(),
            (false, true) => format!("{bytes} freed\n"),
            (false, false) => format!("about {bytes} would be freed; add --execute to do it\n"),
        });
        text
    }
}
