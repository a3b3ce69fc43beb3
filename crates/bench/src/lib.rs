//! Workloads and measurements that repeat.

pub mod machine;
pub mod recovery;
pub mod tpcc;

use evenkeel_op::{Cancel, Progress};

/// What a measurement is handed besides its request: whom to tell, and whether to stop.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Receives progress events.
    pub progress: &'a dyn Progress,
    /// Looked at all the time.
    pub cancel: &'a Cancel,
}
