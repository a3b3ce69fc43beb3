//! What each round works with.

use super::baseline::Baseline;
use super::request::ShowdownRequest;
use super::run_directory::RunDirectory;

/// What each round works with.
pub(super) struct Stage<'a> {
    pub(super) request: &'a ShowdownRequest,
    pub(super) run_directory: &'a RunDirectory,
    pub(super) baseline: &'a Baseline,
}
