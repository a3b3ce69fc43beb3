//! The declaration of the command line, and its parser.

use crate::{args, help};
use clap::{CommandFactory, FromArgMatches};
use std::ffi::OsString;

/// Returns the declaration that the parser, `--help`, the man pages, the completions and the
/// reference in the book are all made from.
#[must_use]
pub fn command() -> clap::Command {
    command_for(help::COLUMNS_MAX)
}

/// The same, with help for a terminal of so many columns.
pub(crate) fn command_for(columns: usize) -> clap::Command {
    // An option given twice means what it said last, as for the MySQL clients.
    help::arrange(args::Cli::command().mut_subcommands(last_wins), columns)
}

fn last_wins(verb: clap::Command) -> clap::Command {
    verb.args_override_self(true).mut_subcommands(last_wins)
}

/// Parses a command line that [`crate::argv::take`] returned, the program's name first.
pub fn parse(words: Vec<OsString>) -> Result<args::Cli, clap::Error> {
    args::Cli::from_arg_matches(&command_for(help::columns()).try_get_matches_from(words)?)
}
