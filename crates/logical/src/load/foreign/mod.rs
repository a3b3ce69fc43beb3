//! Directories that other programs wrote: mydumper's and MySQL Shell's.
//!
//! | file | what |
//! |---|---|
//! | `found` | what was read of one |
//! | `files` | what lies in the directory, and what of it was not understood |
//! | `script` | files of definitions, read as objects |
//! | `settings` | what a file sets before it makes something |
//! | `loads` | files that only name files of rows |
//! | `mydumper` | its file names and its `metadata` |
//! | `shell` | the JSON files of MySQL Shell's dumps |
//!
//! They have no checksums. What tells one dump from another is every definition, `metadata` (it says
//! when and where in the binary log), and the names and sizes of the files of rows.

mod files;
mod found;
mod loads;
mod mydumper;
mod script;
mod settings;
mod shell;

pub(super) use found::Found;
pub(super) use mydumper::METADATA;
pub(super) use shell::OVERVIEW;

use crate::objects::{Objects, SchemaObjectKind};
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::Session;
use std::collections::HashMap;
use std::path::Path;

/// Reads the directory of a mydumper run.
///
/// Errors: `Usage` for one that did not end; `Refused` names what was not understood.
pub(super) fn mydumper(dir: &Path) -> Result<Found> {
    mydumper::open(dir)
}

/// Reads the directory of a MySQL Shell dump.
///
/// Errors: as [`mydumper`].
pub(super) fn shell(dir: &Path) -> Result<Found> {
    shell::open(dir)
}

/// Fills in what the files leave to the server: the collation of a schema that only says its
/// character set, the `sql_mode` of programs and the time zone of events. Returns whether programs
/// were incomplete.
///
/// Errors: those of the session.
pub(super) fn settle(session: &mut Session, objects: &mut Objects) -> Result<bool> {
    let rows = session.rows(
        "SELECT CHARACTER_SET_NAME, DEFAULT_COLLATE_NAME FROM information_schema.CHARACTER_SETS",
    )?;
    let mut defaults: HashMap<String, String> = rows
        .iter()
        .filter_map(|row| Some((row.at(0)?.to_owned(), row.at(1)?.to_owned())))
        .collect();
    // Servers that leave it out mean this one, whatever it is here.
    defaults.insert("utf8mb4".to_owned(), "utf8mb4_general_ci".to_owned());
    let mode = session.value("SELECT @@GLOBAL.sql_mode")?;
    let zone = session.value("SELECT @@GLOBAL.time_zone")?;
    let mut unsaid = false;
    for database in &mut objects.databases {
        if database.collation.is_empty() {
            let other = match database.charset.as_str() {
                "utf8" => "utf8mb3",
                "utf8mb3" => "utf8",
                same => same,
            };
            let found = defaults.get(&database.charset);
            let found = found.or_else(|| defaults.get(other)).ok_or_else(|| {
                Error::refused(format!(
                    "this server does not know the character set {} of the database {}",
                    database.charset, database.name
                ))
            })?;
            database.collation.clone_from(found);
        }
        let programs = database
            .routines
            .iter_mut()
            .chain(&mut database.triggers)
            .chain(&mut database.events);
        for program in programs.filter(|one| one.sql_mode.is_none()) {
            program.sql_mode.clone_from(&mode);
            if program.kind == SchemaObjectKind::Event && program.time_zone.is_none() {
                program.time_zone.clone_from(&zone);
            }
            unsaid = true;
        }
    }
    Ok(unsaid)
}
