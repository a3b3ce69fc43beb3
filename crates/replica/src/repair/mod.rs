//! Makes the rows of a replica those of its source: first as a plan that people read, then, if nothing has changed
//! since, in one transaction on the replica, which can be undone.
//!
//! | file | what |
//! |---|---|
//! | `make` | compares, and makes a plan of what differs; `objections`: tables that are left alone, and why |
//! | `plan` | the plan, and its hash; `plan_file`: where it is kept |
//! | `rows` | the statements for one row |
//! | `stand` | the replica's SQL thread at the very place that a view of the source sees |
//! | `writer` | the transaction on the replica, of which nothing gets into its binary log |
//! | `execute`, `undo` | a plan carried out, and taken back; `carry_out`: what both do |
//! | `journal` | what was done, written down before it is |
//!
//! Nothing is written on the source. Either all rows of a plan are as the source's in the end, or none was touched.

mod carry_out;
mod event;
mod execute;
mod identity;
mod journal;
mod make;
mod objections;
mod plan;
mod plan_file;
mod rows;
mod stand;
mod undo;
mod writer;

pub(crate) use event::{EventPlan, EventRequest, repair_event};
pub use execute::{ExecuteRequest, Executed, RepairOutcome, execute};
pub(crate) use journal::may_be_committed;
pub use make::{Made, PlanRequest, make_plan};
pub use plan::{NotPlanned, PlannedRow, PlannedTable, RepairPlan};
pub use undo::{UndoRequest, Undone, undo};
