//! `cargo pages reference [--write] | man | completions`. Apart from `cargo xtask`, which needs nothing of
//! the product and is built in seconds.

use clap::Parser;
use std::path::PathBuf;

/// Pages made from the command line's own declaration.
#[derive(Parser)]
#[command(bin_name = "cargo pages")]
enum Task {
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

fn main() -> anyhow::Result<()> {
    let root = evenkeel_pages::root();
    match Task::parse() {
        Task::Reference { write: true } => evenkeel_pages::write_reference(&root),
        Task::Reference { write: false } => evenkeel_pages::check_reference(&root),
        Task::Man { out } => evenkeel_pages::write_man(&out),
        Task::Completions { out } => evenkeel_pages::write_completions(&out),
    }
}
