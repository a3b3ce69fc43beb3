//! The evenkeel binary.

use evenkeel_cli::{argv, commands, show, signals};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words = argv::take();
    let cli = match evenkeel_cli::parse(words.clone()) {
        Ok(cli) => cli,
        Err(error) => return show::usage(&error, &words),
    };
    let cancel = signals::watch();
    let face = show::Face::new(&cli.output, cancel);
    for warning in argv::warnings(&words) {
        face.warn(&warning);
    }
    let outcome = commands::run(&cli.verb, &face);
    face.leave(outcome)
}
