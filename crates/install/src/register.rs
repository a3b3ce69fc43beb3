//! Functions made and dropped.

use crate::plan::Plan;
use crate::refusal::told;
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::{ServerNumber, Session, quote, quote_name};

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
        create(session, name, library).map_err(|error| match ServerNumber::of(&error) {
            Some(1126) if plan.here.is_none() => to_copy(&error, plan),
            _ => told(error),
        })?;
    }
    Ok(())
}

fn create(session: &mut Session, name: &str, library: &str) -> Result<()> {
    session.run(&format!(
        "CREATE FUNCTION {} RETURNS STRING SONAME {}",
        quote_name(name),
        quote(library)
    ))
}

/// Gives the server back the functions that it had, and returns why, with what became of that.
pub(crate) fn put_back(session: &mut Session, plan: &Plan, why: Error) -> Error {
    let mut back = || -> Result<()> {
        drop_all(session, &plan.create)?;
        let had = &plan.found.functions;
        for one in had.iter().filter(|one| plan.drop.contains(&one.name)) {
            create(session, &one.name, &one.library)?;
        }
        Ok(())
    };
    match back() {
        Ok(()) => why.hint("the server has the same functions as before"),
        Err(error) => why.hint(format!(
            "the server may lack functions now ({error}): see 'evenkeel plugin status url'"
        )),
    }
}

/// Drops functions. Those that are gone already are fine.
pub(crate) fn drop_all(session: &mut Session, names: &[String]) -> Result<()> {
    for name in names {
        let dropped = session.run(&format!("DROP FUNCTION {}", quote_name(name)));
        match dropped {
            // Somebody else was quicker. With no database chosen, MySQL asks for one.
            Err(error) if matches!(ServerNumber::of(&error), Some(1305 | 1046)) => {}
            other => other.map_err(told)?,
        }
    }
    Ok(())
}

/// A replica without the library would stop at the statement: each server gets its own.
pub(crate) fn leave_out_of_the_binary_log(session: &mut Session) -> Result<()> {
    let is_written = session.variable("log_bin")?.as_deref() == Some("ON");
    match is_written {
        true => session.run("SET SESSION sql_log_bin = 0").map_err(told),
        false => Ok(()),
    }
}

/// The server is on another host: says what has to be there.
fn to_copy(error: &Error, plan: &Plan) -> Error {
    let directory = plan.found.plugin_dir.trim_end_matches('/');
    let library = plan.library.as_deref().unwrap_or_default();
    let table = plan.table.as_deref().unwrap_or_default();
    Error::refused("the server is not on this host, and does not have the library yet")
        .because(Error::failed(error.to_string()))
        .hint(format!(
            "copy the library to {directory}/{library} on the server's host, readable by the server's user"
        ))
        .hint(format!(
            "unless it is the built-in table, copy the table to {directory}/{table} there"
        ))
        .hint("then run this again; or run it on the server's host, which does all of it")
        .hint("if the server's files are on this host, add --plugin-dir")
}
