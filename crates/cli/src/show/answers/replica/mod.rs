//! Answers of `replica`.

mod diagnose;
mod status;

pub use diagnose::ReplicaDiagnoseAnswer;
pub use status::ReplicaStatusAnswer;
