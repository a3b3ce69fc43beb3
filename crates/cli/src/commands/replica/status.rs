//! `replica status`.

use super::asked;
use crate::args::ReplicaStatus;
use crate::show::Ui;
use crate::show::answers::ReplicaStatusAnswer;
use evenkeel_op::{Result, exit};
use evenkeel_replica::survey::{Questions, survey};

/// Runs the command.
pub(super) fn run(args: &ReplicaStatus, ui: &Ui) -> Result<u8> {
    let targets = asked::meant(&args.asked, ui)?;
    let heartbeat = args.heartbeat.as_deref().map(asked::table).transpose()?;
    let questions = Questions { heartbeat };
    let servers = survey(&targets, &questions, args.asked.timeout, ui.cancel())?;
    asked::say_silent(&servers, ui)?;
    let answer = ReplicaStatusAnswer::new(&servers);
    for refused in answer.refused() {
        ui.warn(&refused);
    }
    ui.answer(&answer);
    Ok(match answer.is_whole() {
        true => exit::DONE,
        false => exit::PARTIAL,
    })
}
