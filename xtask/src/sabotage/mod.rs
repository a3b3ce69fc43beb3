//! Breaks the code on purpose, one place at a time, and demands that a test notices.
//!
//! `xtask/sabotage.toml` lists what is broken and which test stands guard. Each entry is tried in a
//! throwaway checkout of `HEAD`, never in the one that somebody works in. What became of each stands in
//! a record, so that a run that was cut short can go on.

mod entries;
mod line;
mod tree;
mod trial;

pub use entries::{Entry, FAULTS, LIST, check, read};

use crate::record::{self, Record};
use crate::stop::{Limit, Stop};
use anyhow::{Result, bail};
use line::Line;
use std::path::Path;
use std::time::Instant;
use tree::Tree;
use trial::Outcome;

/// How to try.
#[derive(Debug, Default, clap::Args)]
pub struct Options {
    /// The entries to try, by name; all of them when left out.
    names: Vec<String>,
    /// Only list them.
    #[arg(long)]
    list: bool,
    /// Only show what became of them, and when.
    #[arg(long, conflicts_with = "list")]
    record: bool,
    /// Leave out those that were killed at this commit.
    #[arg(long)]
    resume: bool,
    /// Leave out those that were killed at this commit or a later one, too.
    #[arg(long, value_name = "REF")]
    since: Option<String>,
    /// Begin nothing more after this time.
    #[arg(long, value_name = "N")]
    limit_minutes: Option<u64>,
}

/// Prints every entry: its name, the fault it stands for, and the test that guards it.
fn list(root: &Path) -> Result<()> {
    for entry in read(root)? {
        println!("{:<36} {:<4} {}", entry.name, entry.fault, entry.guard());
    }
    Ok(())
}

/// Tries the entries of these names, or all of them, and prints what became of each. Returns whether
/// every one that was tried was noticed. An error when one does not compile, or names a test that is
/// not there.
pub fn run(root: &Path, options: &Options) -> Result<bool> {
    if options.list {
        return list(root).map(|()| true);
    }
    let mut entries = chosen(read(root)?, &options.names)?;
    let target = crate::target_directory(root)?;
    let room = target.join("sabotage");
    let record = Record::at(root.join(crate::git::RECORDS).join("sabotage.jsonl"));
    if options.record {
        print!("{}", line::page(&entries, &record.read()?));
        return Ok(true);
    }
    let commit = crate::git::head(root)?;
    if options.resume || options.since.is_some() {
        let lines = record.read()?;
        let commits = crate::git::since(root, &commit, options.since.as_deref())?;
        let before = entries.len();
        entries.retain(|entry| !line::was_killed(&lines, &commits, &entry.name));
        let killed = before - entries.len();
        println!("{killed} of {before} were killed already");
    }
    if entries.is_empty() {
        return Ok(true);
    }
    let stop = Stop::on_signals()?;
    let limit = Limit::after(options.limit_minutes);
    // The same for the throwaway checkout, so that dependencies are not built again.
    let tree = Tree::make(root, &room.join("tree"))?;
    let mut tried = Vec::new();
    for entry in &entries {
        if limit.is_over() {
            let left = entries.len() - tried.len();
            println!("the time is over: {left} are left, so this is not whole; --resume goes on");
            break;
        }
        let (started, begin) = (record::now(), Instant::now());
        let outcome = trial::run(entry, &tree, &target, &stop)?;
        if stop.is_reported() {
            bail!("interrupted; `cargo xtask sabotage --resume` goes on");
        }
        println!("{:<36} {outcome}", entry.name);
        record.append(&Line {
            commit: commit.clone(),
            name: entry.name.clone(),
            outcome: outcome.clone(),
            started,
            seconds: begin.elapsed().as_secs(),
        })?;
        tried.push((entry, outcome));
    }
    judge(&tried)
}

/// Prints what became of each. Returns whether all were killed.
fn judge(tried: &[(&Entry, Outcome)]) -> Result<bool> {
    println!("\n| fault | broken | test | seen |\n|---|---|---|---|");
    for (entry, outcome) in tried {
        let guard = entry.guard();
        println!("| {} | {} | {guard} | {outcome} |", entry.fault, entry.why);
    }
    let invalid = tried.iter().filter(|(_, one)| one.is_invalid()).count();
    if invalid > 0 {
        bail!("{invalid} of the entries prove nothing: fix {LIST}");
    }
    Ok(tried.iter().all(|(_, one)| one.is_killed()))
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
