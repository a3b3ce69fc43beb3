//! What each round works with.

use super::baseline::Baseline;
use super::ground::Ground;
use super::request::ShowdownRequest;

/// What each round works with.
pub(super) struct Stage<'a> {
    pub(super) request: &'a ShowdownRequest,
    pub(super) ground: &'a Ground,
    pub(super) baseline: &'a Baseline,
}
