//! Verifies: every byte by restore's own code, and on request a server that starts.

mod boot;
mod check;
mod queues;
mod read;
mod report;
mod scratch;

pub use crate::throwaway::is_enterable;
pub use boot::{BootRequest, boot, ready};
pub use queues::CheckQueues;
pub use read::{Generations, ReadRequest, read, sentence};
pub use report::BootReport;
