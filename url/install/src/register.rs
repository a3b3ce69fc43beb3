//! Functions made and dropped.

use crate::names::FUNCTIONS;
use crate::plan::Plan;
use evenkeel_op::{Error, Result};
use evenkeel_plugins::functions::{create, drop_all, give_back, leave_out_of_the_binary_log};
use evenkeel_plugins::refusal::{self, explain};
use evenkeel_server::connect::{ServerNumber, Session};

/// Drops what is to go, then makes what is to come.
pub(crate) fn perform(session: &mut Session, plan: &Plan) -> Result<()> {
    if plan.drop.is_empty() && plan.create.is_empty() {
        return Ok(());
    }
    leave_out_of_the_binary_log(session)?;
    drop_all(session, &plan.drop)?;
    let Some(library) = &plan.library else {
        return Ok(());
    };
    for name in &plan.create {
        create(session, &FUNCTIONS, name, library).map_err(|error| {
            match ServerNumber::of(&error) {
                Some(1126) if plan.here.is_none() => to_copy(&error, plan),
                _ => explain(error),
            }
        })?;
    }
    Ok(())
}

/// Gives the server back the functions that it had, and returns why, with what became of that.
pub(crate) fn put_back(session: &mut Session, plan: &Plan, why: Error) -> Error {
    let mut back = || -> Result<()> {
        drop_all(session, &plan.create)?;
        give_back(session, &FUNCTIONS, &plan.found.functions, &plan.drop)
    };
    match back() {
        Ok(()) => why.hint("the server has the same functions as before"),
        Err(error) => why.hint(format!(
            "the server may lack functions now ({error}): see 'evenkeel plugin status url'"
        )),
    }
}

/// The server is on another host: says what has to be there.
fn to_copy(error: &Error, plan: &Plan) -> Error {
    let directory = plan.found.plugin_dir.trim_end_matches('/');
    let library = plan.library.as_deref().unwrap_or_default();
    let table = plan.table.as_deref().unwrap_or_default();
    let also =
        format!("unless it is the built-in table, copy the table to {directory}/{table} there");
    refusal::to_copy(error, directory, library, Some(also))
}
