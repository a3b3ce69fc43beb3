//! The generation that a restore to a point begins with.

use crate::archive::LogPosition;
use evenkeel_binlog::number_of;
use evenkeel_repository::logs::Timeline;

/// A generation that may be the base, and the history that continues from it.
pub(super) struct Base {
    pub(super) generation: u32,
    pub(super) at: LogPosition,
    pub(super) timeline: Timeline,
}

pub(super) fn order(place: &LogPosition) -> (Option<u64>, u64) {
    (number_of(&place.file), place.position)
}

impl std::fmt::Debug for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "generation {} at {}", self.generation, self.at)
    }
}
