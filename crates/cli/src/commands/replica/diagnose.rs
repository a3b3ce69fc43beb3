//! `replica diagnose`.

use super::asked;
use crate::args::ReplicaDiagnose;
use crate::show::Ui;
use crate::show::answers::ReplicaDiagnoseAnswer;
use evenkeel_op::{Result, exit};
use evenkeel_replica::diagnose::{Request, diagnose};

/// Runs the command.
pub(super) fn run(args: &ReplicaDiagnose, ui: &Ui) -> Result<u8> {
    let targets = asked::meant(&args.asked, ui)?;
    let tables = args.check_table.iter().map(|name| asked::table(name));
    let request = Request {
        timeout: args.asked.timeout,
        check_tables: tables.collect::<Result<_>>()?,
    };
    let diagnosis = diagnose(&targets, &request, ui.cancel())?;
    asked::say_silent(&diagnosis.servers, ui)?;
    for unchecked in &diagnosis.unchecked {
        ui.warn(unchecked);
    }
    let answer = ReplicaDiagnoseAnswer::new(&diagnosis);
    ui.answer(&answer);
    Ok(
        match (
            diagnosis.findings.is_empty(),
            diagnosis.unchecked.is_empty(),
        ) {
            (false, _) => exit::DIFFERS,
            (true, false) => exit::PARTIAL,
            (true, true) => exit::DONE,
        },
    )
}
