//! Answers of `replica`.

mod checksum;
mod diagnose;
mod status;

pub use checksum::ReplicaChecksumAnswer;
pub use diagnose::ReplicaDiagnoseAnswer;
pub use status::ReplicaStatusAnswer;
