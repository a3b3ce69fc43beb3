//! The evenkeel command line: what was typed (`args`), what it means (`settings`), what is done
//! (`commands`, one file per verb) and what is seen (`show`).

pub mod args;
pub mod argv;
pub mod child;
pub mod commands;
mod help;
pub mod settings;
pub mod show;
pub mod signals;
mod wrong_use;

use clap::{CommandFactory, FromArgMatches};
use rustix::fs::Mode;
use std::ffi::OsString;
use std::process::ExitCode;

/// Does what this process's command line says, and returns its exit code.
#[must_use]
pub fn run() -> ExitCode {
    let words = argv::take();
    if let Some(code) = commands::watch_applier::asked_for(&words) {
        return code;
    }
    let cli = match parse(words.clone()) {
        Ok(cli) => cli,
        Err(error) => return show::usage(error, &words),
    };
    if commands::writes_for_itself(&cli.verb) {
        // What a server holds is for nobody else on this host, whatever the shell's umask is.
        rustix::process::umask(Mode::RWXG | Mode::RWXO);
    }
    let face = show::Face::new(&cli.output, signals::watch());
    let face = face.beside(commands::writes_a_stream(&cli.verb));
    for warning in argv::warnings(&words) {
        face.warn(&warning);
    }
    let onlookers = commands::Onlookers::of(&cli.verb);
    let outcome = settings::with_files(cli, &words)
        .inspect_err(|error| onlookers.refused(error, &face))
        .and_then(|(cli, words)| commands::run_here_or_there(&cli.verb, &words, &face));
    face.leave(outcome)
}

/// Returns the declaration that the parser, `--help`, the man pages, the completions and the
/// reference in the book are all made from.
#[must_use]
pub fn command() -> clap::Command {
    command_for(help::COLUMNS_MAX)
}

/// The same, with help for a terminal of so many columns.
fn command_for(columns: usize) -> clap::Command {
    // An option given twice means what it said last, as for the MySQL clients.
    help::arrange(args::Cli::command().mut_subcommands(last_wins), columns)
}

fn last_wins(verb: clap::Command) -> clap::Command {
    verb.args_override_self(true).mut_subcommands(last_wins)
}

/// Parses a command line that [`argv::take`] returned, the program's name first.
pub fn parse(words: Vec<OsString>) -> Result<args::Cli, clap::Error> {
    args::Cli::from_arg_matches(&command_for(help::columns()).try_get_matches_from(words)?)
}
