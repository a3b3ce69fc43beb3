//! `qps`.

use super::watching::{Watching, now, time};
use crate::args;
use crate::help;
use crate::show::answers::QpsDocument;
use crate::show::{Stream, Ui};
use evenkeel_live::poll::{Extent, Server};
use evenkeel_live::view::Lines;
use evenkeel_op::Result;
use std::io::IsTerminal;

/// Runs the command.
pub(super) fn run(args: &args::Qps, ui: &Ui) -> Result<u8> {
    let mut watching = Watching::start(&args.watched, "qps", Extent::Statements, ui)?;
    let columns = std::io::stdout().is_terminal().then(help::terminal_columns);
    let mut lines = Lines::new(watching.names(), columns);
    let mut show = |servers: &[Server]| {
        if ui.is_quiet() && !ui.is_json() {
            return Ok(true);
        }
        let text = match ui.is_json() {
            true => QpsDocument::new(now().to_string(), servers).line(),
            false => lines.frame(&time(), servers),
        };
        Stream.show(&text)
    };
    watching.run(&mut show, ui)
}
