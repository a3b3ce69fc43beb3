//! Breaks the code on purpose, one place at a time, and demands that a test notices.
//!
//! `xtask/sabotage.toml` lists what is broken and which test stands guard. Each entry is tried in a
//! throwaway checkout of `HEAD`, never in the one that somebody works in.

mod entries;
mod tree;
mod trial;

pub use entries::{Entry, FAULTS, LIST, check, read};

use anyhow::{Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tree::Tree;
use trial::Outcome;

/// Prints every entry: its name, the fault it stands for, and the test that guards it.
pub fn list(root: &Path) -> Result<()> {
    for entry in read(root)? {
        println!("{:<36} {:<4} {}", entry.name, entry.fault, entry.guard());
    }
    Ok(())
}

/// Tries the entries of these names, or all of them, and prints what became of each. Returns whether
/// every one was noticed. An error when one does not compile, or names a test that is not there.
pub fn run(root: &Path, names: &[String]) -> Result<bool> {
    let entries = chosen(read(root)?, names)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    // The same for the throwaway checkout, so that dependencies are not built again.
    let target = crate::target_directory(root)?;
    let tree = Tree::make(root, &target.join("sabotage"))?;
    let mut outcomes = Vec::new();
    for entry in &entries {
        let outcome = trial::run(entry, &tree, &target, &stop)?;
        if stop.load(Ordering::SeqCst) {
            bail!("interrupted");
        }
        println!("{:<36} {outcome}", entry.name);
        outcomes.push(outcome);
    }
    println!("\n| fault | broken | test | seen |\n|---|---|---|---|");
    for (entry, outcome) in entries.iter().zip(&outcomes) {
        let guard = entry.guard();
        println!("| {} | {} | {guard} | {outcome} |", entry.fault, entry.why);
    }
    let invalid = outcomes.iter().filter(|one| one.is_invalid()).count();
    if invalid > 0 {
        bail!("{invalid} of the entries prove nothing: mend {LIST}");
    }
    Ok(outcomes
        .iter()
        .all(|one| matches!(one, Outcome::Killed { .. })))
}

fn chosen(entries: Vec<Entry>, names: &[String]) -> Result<Vec<Entry>> {
    for name in names {
        if !entries.iter().any(|entry| entry.name == *name) {
            bail!("{LIST} has no entry {name}");
        }
    }
    let is_wanted = |entry: &Entry| names.is_empty() || names.contains(&entry.name);
    Ok(entries.into_iter().filter(is_wanted).collect())
}
