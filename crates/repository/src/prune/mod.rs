//! Frees what no generation needs any more: plan first, then perform.

mod leftovers;
mod perform;
mod plan;

pub use plan::{Prune, PrunePlan, PruneStep};
