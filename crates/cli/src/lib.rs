//! The evenkeel command line: what was typed (`args`), what it means (`settings`), what is done
//! (`commands`, one file per verb) and what is seen (`show`).

pub mod args;
pub mod argv;
pub mod child;
pub mod commands;
pub mod settings;
pub mod show;
pub mod signals;

use clap::{CommandFactory, FromArgMatches};
use std::ffi::OsString;

/// Returns the declaration that the parser, `--help`, the man pages, the completions and the
/// reference in the book are all made from.
#[must_use]
pub fn command() -> clap::Command {
    args::Cli::command()
}

/// Parses a command line that [`argv::take`] returned, the program's name first.
pub fn parse(words: Vec<OsString>) -> Result<args::Cli, clap::Error> {
    args::Cli::from_arg_matches(&command().try_get_matches_from(words)?)
}
