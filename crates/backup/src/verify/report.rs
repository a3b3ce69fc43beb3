//! What a proof answers.

use serde::Serialize;

/// What the proof came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BootReport {
    /// The generation.
    pub generation: u32,
    /// Whether the server started and every table passed.
    pub proven: bool,
    /// Version of the server that was started.
    pub server: String,
    /// From start to the first greeting, crash recovery included; none when it never greeted.
    pub recovery_seconds: Option<f64>,
    /// Tables that CHECK TABLE looked at.
    pub tables_checked: u64,
    /// Tables that the generation says it has, and that were looked for; null where it does not say.
    pub tables_recorded: Option<u64>,
    /// What CHECK TABLE or the server complained of.
    pub problems: Vec<String>,
}

impl BootReport {
    /// Of a generation that nothing was done with yet.
    pub(super) fn of(generation: u32, server: String) -> Self {
        Self {
            generation,
            proven: false,
            server,
            recovery_seconds: None,
            tables_checked: 0,
            tables_recorded: None,
            problems: Vec::new(),
        }
    }
}
