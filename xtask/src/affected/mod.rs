//! Which tests a change touches: a developer's loop is to take minutes, not the hours of everything.
//!
//! A package's tests are told from what depends on it. The end-to-end cases depend on everything, so
//! a table says which of them exercise what. It is a choice for the loop, no proof: what is
//! passed on has passed everything.

mod closure;
mod plan;
mod table;

use crate::workspace::Workspace;
use anyhow::Result;
use std::path::Path;
use table::AffectedRules;

/// The package of the end-to-end cases.
const CASES: &str = "evenkeel-cases";
/// The package whose tests check texts of every kind.
const XTASK: &str = "evenkeel-xtask";

/// Prints nextest's arguments for the tests that the changes since `base` touch, quoted for a shell.
pub fn run(root: &Path, base: &str) -> Result<()> {
    let changed = crate::git::changed(root, base)?;
    if changed.is_empty() {
        eprintln!("xtask: nothing differs from {base}");
    }
    let workspace = Workspace::read(root)?;
    let plan = plan::plan(&workspace, &AffectedRules::read(root)?, &changed);
    println!("{}", plan.arguments());
    Ok(())
}
