//! `health`.

mod block;
mod check;
mod run;
mod told;

pub(crate) use check::refused;

use crate::args::{Health, HealthVerb};
use crate::show::Ui;
use crate::show::answers::HealthStatusAnswer;
use evenkeel_health::control::{HealthRequest, ask};
use evenkeel_health::machine::HealthOrder;
use evenkeel_op::{Error, Result, exit};
use evenkeel_server::launch::Binary;
use std::path::Path;

/// Runs the command.
pub(super) fn run(args: &Health, ui: &Ui) -> Result<u8> {
    match &args.verb {
        HealthVerb::Check(args) => check::run(args, ui),
        HealthVerb::Run(args) => run::run(args, ui),
        HealthVerb::Drain(args) => {
            let why = args.reason.clone();
            let order = match args.maintenance {
                true => HealthOrder::Maintenance(why),
                false => HealthOrder::Drain(why),
            };
            let server = args.server.clone().unwrap_or_default();
            say(&args.control, &HealthRequest::Order { server, order }, ui)?;
            Ok(exit::DONE)
        }
        HealthVerb::Undrain(args) => {
            let server = args.server.clone().unwrap_or_default();
            say(&args.control, &HealthRequest::Release { server }, ui)?;
            Ok(exit::DONE)
        }
        HealthVerb::Status(args) => {
            let answer = say(&args.control, &HealthRequest::Status, ui)?;
            Ok(match answer.is_up() {
                true => exit::DONE,
                false => exit::DIFFERS,
            })
        }
    }
}

fn say(control: &Path, request: &HealthRequest, ui: &Ui) -> Result<HealthStatusAnswer> {
    let answer = HealthStatusAnswer::new(ask(control, request)?);
    ui.answer(&answer);
    Ok(answer)
}

/// Refuses to run, as root, a program that another user can change.
pub(super) fn refuse_program_of_others(program: &Path, hint: &str) -> Result<()> {
    if Binary::is_roots_alone(program) {
        return Ok(());
    }
    let shown = program.display();
    Err(Error::refused(format!(
        "{shown} is run as root or with root's group, and another user can change it or a directory above it"
    ))
    .hint(hint))
}
