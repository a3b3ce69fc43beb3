//! Developer tasks: `cargo xtask tidy | sabotage | machine | times | affected | soak | release`.

use anyhow::Result;
use clap::Parser;
use evenkeel_xtask::{release, sabotage, soak};
use std::path::PathBuf;
use std::process::ExitCode;

/// Developer tasks.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// Check the rules of the house.
    Tidy {
        /// Print instead how many modules of each crate use each other in circles; of one crate, who uses what
        /// of whom.
        #[arg(long, value_name = "CRATE", num_args = 0..=1)]
        circles: Option<Option<String>>,
    },
    /// Break the code on purpose, one place at a time: exit code 4 if a test does not notice.
    Sabotage(sabotage::Options),
    /// Run the long loops in full, going on where a run was cut short: exit code 4 if a test fails.
    Soak(soak::Options),
    /// Check that this commit can be released, and lay out what is to be published: exit code 4 if something is open.
    Release(release::Options),
    /// Print the arguments of nextest for the tests that a change touches: make test
    /// ARGS="$(cargo xtask affected)".
    Affected {
        /// What the work tree is compared with.
        #[arg(long, value_name = "REF", default_value = "HEAD")]
        base: String,
    },
    /// Print where the seconds of the tests went, by crate and by file.
    Times {
        /// The file that nextest left; by default that of the last run of this checkout.
        junit: Option<PathBuf>,
        /// Write the tables into CONTRIBUTING.md instead.
        #[arg(long)]
        write: bool,
    },
    /// Run the tests that need a kernel of their own in a virtual machine: exit code 4 if one fails.
    Machine {
        /// Parts of the names of the tests to run; all of them when left out.
        filters: Vec<String>,
        /// Only list them.
        #[arg(long)]
        list: bool,
    },
}

fn main() -> ExitCode {
    match run(Task::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<ExitCode> {
    let root = evenkeel_xtask::root();
    match task {
        Task::Tidy { circles: None } => evenkeel_xtask::tidy::check(&root),
        Task::Tidy {
            circles: Some(name),
        } => {
            print!("{}", evenkeel_xtask::tidy::circles(&root, name.as_deref())?);
            Ok(())
        }
        Task::Affected { base } => evenkeel_xtask::affected::run(&root, &base),
        Task::Times { junit, write } => evenkeel_xtask::times::run(&root, junit.as_deref(), write),
        Task::Sabotage(options) => return sabotage::run(&root, &options).map(found),
        Task::Soak(options) => return soak::run(&root, &options).map(found),
        Task::Release(options) => return release::run(&root, &options).map(found),
        Task::Machine { filters, list } => {
            return evenkeel_xtask::machine::run(&root, &filters, list).map(found);
        }
    }?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the exit code of a check that found nothing wrong, or something.
fn found(is_good: bool) -> ExitCode {
    match is_good {
        true => ExitCode::SUCCESS,
        false => evenkeel_xtask::FOUND.into(),
    }
}
