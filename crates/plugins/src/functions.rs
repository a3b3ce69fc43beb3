//! Functions that a server knows: found, made and dropped.

use crate::refusal::explain;
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::{Row, ServerNumber, Session, quote, quote_name};
use serde::Serialize;

/// A function of SQL: its name, and what it returns.
pub type Function = (&'static str, &'static str);

/// One function that the server knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Registered {
    /// Its name.
    pub name: String,
    /// The file in the plugin directory that it comes from.
    pub library: String,
}

/// Returns the server's plugin directory, as it calls it.
///
/// Errors: those of the session; `Refused` where there is none.
pub fn plugin_dir(session: &mut Session) -> Result<String> {
    let directory = session.variable("plugin_dir")?;
    directory.filter(|dir| !dir.is_empty()).ok_or_else(|| {
        Error::refused("the server has no plugin directory").hint("start it with --plugin-dir=DIR")
    })
}

/// Returns which of the functions the server knows, and the names of those that it does not know.
///
/// Errors: those of the session; `Refused` where the account may not read `mysql.func`.
pub fn find(
    session: &mut Session,
    functions: &[Function],
) -> Result<(Vec<Registered>, Vec<String>)> {
    let names: Vec<String> = functions.iter().map(|(name, _)| quote(name)).collect();
    let sql = format!(
        "SELECT name, dl FROM mysql.func WHERE name IN ({}) ORDER BY name",
        names.join(", ")
    );
    let row = |row: &Row| {
        Some(Registered {
            name: row.at(0)?.to_owned(),
            library: row.at(1)?.to_owned(),
        })
    };
    let rows = session.rows(&sql).map_err(explain)?;
    let found: Vec<Registered> = rows.iter().filter_map(row).collect();
    let is_known = |name: &str| found.iter().any(|one| one.name == name);
    let missing = functions.iter().map(|(name, _)| *name);
    let missing = missing.filter(|name| !is_known(name)).map(str::to_owned);
    let missing = missing.collect();
    Ok((found, missing))
}

/// Makes one of the functions.
///
/// Errors: those of the session, not explained: see [`explain`].
pub fn create(
    session: &mut Session,
    functions: &[Function],
    name: &str,
    library: &str,
) -> Result<()> {
    let known = functions.iter().find(|(known, _)| *known == name);
    let returns = known.map_or("STRING", |(_, returns)| *returns);
    session.run(&format!(
        "CREATE FUNCTION {} RETURNS {returns} SONAME {}",
        quote_name(name),
        quote(library)
    ))
}

/// Makes those again that were dropped, of the libraries that they had.
///
/// Errors: those of the session.
pub fn give_back(
    session: &mut Session,
    functions: &[Function],
    had: &[Registered],
    dropped: &[String],
) -> Result<()> {
    for one in had.iter().filter(|one| dropped.contains(&one.name)) {
        create(session, functions, &one.name, &one.library)?;
    }
    Ok(())
}

/// Drops functions. Those that are gone already are fine.
///
/// Errors: those of the session; `Refused` where the account may not drop them.
pub fn drop_all(session: &mut Session, names: &[String]) -> Result<()> {
    for name in names {
        let dropped = session.run(&format!("DROP FUNCTION {}", quote_name(name)));
        match dropped {
            // Somebody else was quicker. With no database chosen, MySQL asks for one.
            Err(error) if matches!(ServerNumber::of(&error), Some(1305 | 1046)) => {}
            other => other.map_err(explain)?,
        }
    }
    Ok(())
}

/// A replica without the library would stop at the statement: each server gets its own.
///
/// Errors: those of the session; `Refused` where the account may not turn the log off.
pub fn leave_out_of_the_binary_log(session: &mut Session) -> Result<()> {
    let is_written = session.variable("log_bin")?.as_deref() == Some("ON");
    match is_written {
        true => session.run("SET SESSION sql_log_bin = 0").map_err(explain),
        false => Ok(()),
    }
}
