//! Repairs replicas by itself, as far as an operator allows it and rules permit.
//!
//! ```text
//! look (diagnose twice) ─► case (facts) ─► decide (rules) ─► lease ─► drain ─► steps ─► look again ─► compare
//!                                             │                └── each is in the journal before it is done ──┘
//!                                             └─► what forbids it, and who is handed it
//! ```
//!
//! | file | what |
//! |---|---|
//! | `case` | the facts of a failure; `known`: where they come from; `beside`: what is asked besides the diagnosis |
//! | `class`, `decide` | classes of repairs, and the rules: pure functions |
//! | `pass` | one look at all servers, and one repair after the other; `release`: replicas put back into use |
//! | `repair` | the repair of one failure; `rows`: of rows that differ; `events`: of rows that an event needs otherwise;
//! | | `prove`: what is looked at afterwards |
//! | `lease` | one repair at a time among the replicas of a source |
//! | `journal` | what was seen and done; `past`: what of it rules look at |
//!
//! Nothing is written on a source, nothing is promoted, and nothing is done while a source does not answer.

mod beside;
mod case;
mod class;
mod decide;
mod events;
mod journal;
mod known;
mod lease;
mod pass;
mod past;
mod prove;
mod release;
mod repair;
mod rows;
mod treated;

pub use case::{HealCase, Interrupted, PastCase, SiblingCase, SourceCase};
pub use class::{HandOver, HealClass};
pub use decide::{Decision, Forbidden, HealPolicy, HealRule, decide};
pub use journal::{
    BegunRepair, HealEvent, HealJournal, HealOutcome, HealRecord, SeenFailure, read_history,
};
pub use pass::{HealPass, heal, plan_heal};
pub use treated::{Healed, Treated};

use evenkeel_op::Result;
use evenkeel_server::replication::Program;
use std::path::PathBuf;
use std::time::Duration;

/// What should be healed, and how.
#[derive(Debug, Clone)]
pub struct HealRequest {
    /// How long a server may take for its answers.
    pub timeout: Duration,
    /// What is allowed.
    pub policy: HealPolicy,
    /// Where the journal is; a plan may have none.
    pub journal: Option<PathBuf>,
    /// How the watchdog of stopped threads is started.
    pub watchdog: Program,
    /// A repaired replica is compared with its source.
    pub compares: bool,
    /// Every replica with nothing wrong is compared with its source.
    pub finds_drift: bool,
    /// For so long a repaired replica may take to be well.
    pub settle: Duration,
    /// For so long it is waited once a replica is taken out of use.
    pub drain_wait: Duration,
    /// More rows are not repaired one by one.
    pub rows_max: usize,
}

/// Whoever takes servers out of use, and puts them back.
pub trait Fence {
    /// Says whether a server is out of use for the repair `id`; without one, for anything.
    ///
    /// Errors: those of asking.
    fn is_out(&mut self, server: &str, id: Option<&str>) -> Result<bool>;

    /// Gives a server no new clients, for a repair.
    ///
    /// Errors: `Refused` if a person has taken it out of use already; those of asking.
    fn drain(&mut self, server: &str, id: &str) -> Result<()>;

    /// Puts it back, if it is still out of use for that repair and nothing else. Returns whether it was.
    ///
    /// Errors: those of asking.
    fn release(&mut self, server: &str, id: &str) -> Result<bool>;
}
