//! Developer tasks: `cargo xtask tidy | reference [--write] | man | completions`.

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
    /// Write shell completions.
    Completions {
        /// The folder to write to; made if missing.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

fn main() -> ExitCode {
    match run(Task::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    let root = evenkeel_xtask::root();
    match task {
        Task::Tidy => evenkeel_xtask::tidy::check(&root),
        Task::Reference { write: true } => evenkeel_xtask::pages::write_reference(&root),
        Task::Reference { write: false } => evenkeel_xtask::pages::check_reference(&root),
        Task::Man { out } => evenkeel_xtask::pages::write_man(&out),
        Task::Completions { out } => evenkeel_xtask::pages::write_completions(&out),
    }
}
