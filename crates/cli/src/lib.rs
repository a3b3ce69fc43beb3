//! The evenkeel command line: what was typed (`args`), what it means (`settings`), what is done
//! (`commands`, one file per verb) and what is seen (`show`).

pub mod args;
pub mod argv;
pub mod child;
pub mod commands;
mod help;
mod opened;
mod parser;
pub mod settings;
pub mod show;
pub mod signals;
mod wrong_use;

pub use parser::{command, parse};

use rustix::fs::Mode;
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
        Err(error) => {
            let is_wrong = error.use_stderr();
            return commands::refused(show::usage(error, &words), is_wrong, &words);
        }
    };
    if commands::writes_for_itself(&cli.verb) {
        // What a server holds is for nobody else on this host, whatever the shell's umask is.
        rustix::process::umask(Mode::RWXG | Mode::RWXO);
    }
    let ui = show::Ui::new(&cli.output, signals::watch());
    let ui = ui.beside(commands::writes_a_stream(&cli.verb));
    for warning in argv::warnings(&words) {
        ui.warn(&warning);
    }
    let onlookers = commands::Onlookers::of(&cli.verb);
    let outcome = settings::with_files(cli, &words)
        .inspect_err(|error| onlookers.refused(error, &ui))
        .and_then(|(cli, words)| commands::run_here_or_there(&cli.verb, &words, &ui));
    ui.leave(outcome)
}
