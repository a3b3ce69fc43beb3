//! What every measurement needs.

use crate::show::Ui;
use evenkeel_bench::repeated::{Repeatable, Repeated};
use evenkeel_op::{Context, Error, Result, Run};
use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::BuildHasher;
use std::path::Path;

/// Whom a measurement tells, and what stops it.
pub(super) fn whom(ui: &Ui) -> Run<'_> {
    Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    }
}

pub(super) fn create(path: &Path) -> Result<File> {
    File::create(path).context(|| format!("failed to create {}", path.display()))
}

/// Returns a number that nobody knows beforehand, short enough to be typed.
pub(super) fn any_number() -> u64 {
    RandomState::new().hash_one(0) % 1_000_000
}

/// Returns the run that pictures are of.
pub(super) fn middle<R: Repeatable>(runs: &Repeated<R>) -> Result<&R> {
    let none = || Error::failed("nothing was measured");
    runs.middle().ok_or_else(none)
}
