//! `drop`: forgets a baseline.

use super::heal::heal;
use super::list::datadir_of;
use super::store::{Baseline, BaselineDirectory, Store};
use super::{Run, Whose};
use evenkeel_op::Result;
use serde::Serialize;
use std::path::PathBuf;

/// What is dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DropPlan {
    /// Whether it was done, or only planned.
    pub executed: bool,
    /// The data directory that it is of.
    pub datadir: PathBuf,
    /// The baseline.
    pub baseline: Baseline,
    /// What was repaired before.
    pub healed: Option<String>,
}

/// Says what would be dropped; touches nothing.
pub fn plan_drop(whose: &Whose, name: &str) -> Result<DropPlan> {
    let datadir = datadir_of(whose)?;
    Ok(DropPlan {
        executed: false,
        baseline: BaselineDirectory::of(&datadir)?.find(name)?,
        datadir,
        healed: None,
    })
}

/// Drops a baseline.
pub fn drop_(whose: &Whose, name: &str, run: Run) -> Result<DropPlan> {
    let datadir = datadir_of(whose)?;
    BaselineDirectory::of(&datadir)?.find(name)?;
    let store = Store::open(&datadir)?;
    let healed = heal(&store, run)?;
    let baseline = store.place.find(name)?;
    store.unname(name)?;
    Ok(DropPlan {
        executed: true,
        datadir,
        baseline,
        healed: healed.map(|healed| healed.reported),
    })
}
