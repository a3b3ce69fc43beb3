//! Answers of `replica`.

mod checksum;
mod diagnose;
mod heal;
mod repair;
mod resync;
mod status;

pub use checksum::ReplicaChecksumAnswer;
pub use diagnose::ReplicaDiagnoseAnswer;
pub use heal::{HealHistoryAnswer, ReplicaHealAnswer};
pub use repair::{RepairExecutedAnswer, RepairPlannedAnswer, RepairUndoneAnswer};
pub use status::ReplicaStatusAnswer;
