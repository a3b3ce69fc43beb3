//! What an operation is handed besides its request.

use crate::{Cancel, Progress};

/// Whom an operation tells how far it is, and whether it should stop.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Receives progress events.
    pub progress: &'a dyn Progress,
    /// Looked at in every long loop.
    pub cancel: &'a Cancel,
}
