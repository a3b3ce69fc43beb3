//! Developer tasks: `cargo xtask tidy | reference [--write] | man | completions | sabotage |
//! machine`.

use anyhow::Result;
use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;

/// Developer tasks.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// Check the rules of the house.
    Tidy,
    /// Check that docs/src/reference.md is what the commands say of themselves.
    Reference {
        /// Write the page instead.
        #[arg(long)]
        write: bool,
    },
    /// Write one man page per command.
    Man {
        /// The folder to write to; made if missing.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Break the code on purpose, one place at a time: exit code 4 if a test does not notice.
    Sabotage {
        /// The entries to try, by name; all of them when left out.
        names: Vec<String>,
        /// Only list them.
        #[arg(long)]
        list: bool,
    },
    /// Run the tests that need a kernel of their own in a virtual machine: exit code 4 if one fails.
    Machine {
        /// Parts of the names of the tests to run; all of them when left out.
        filters: Vec<String>,
        /// Only list them.
        #[arg(long)]
        list: bool,
    },
    /// Write shell completions.
    Completions {
        /// The folder to write to; made if missing.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
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

/// What a check answers with when it found something, as `evenkeel verify` does.
const FOUND: u8 = 4;

fn run(task: Task) -> Result<ExitCode> {
    let root = evenkeel_xtask::root();
    match task {
        Task::Tidy => evenkeel_xtask::tidy::check(&root),
        Task::Reference { write: true } => evenkeel_xtask::pages::write_reference(&root),
        Task::Reference { write: false } => evenkeel_xtask::pages::check_reference(&root),
        Task::Man { out } => evenkeel_xtask::pages::write_man(&out),
        Task::Completions { out } => evenkeel_xtask::pages::write_completions(&out),
        Task::Sabotage { list: true, .. } => evenkeel_xtask::sabotage::list(&root),
        Task::Sabotage { names, .. } => match evenkeel_xtask::sabotage::run(&root, &names)? {
            true => Ok(()),
            false => return Ok(FOUND.into()),
        },
        Task::Machine { filters, list } => {
            match evenkeel_xtask::machine::run(&root, &filters, list)? {
                true => Ok(()),
                false => return Ok(FOUND.into()),
            }
        }
    }?;
    Ok(ExitCode::SUCCESS)
}
