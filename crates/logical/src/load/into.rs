//! Which schema is loaded under which name.

use super::choose::no_database;
use super::request::Request;
use super::state;
use crate::objects::{ObjectName, Objects, SYSTEM};
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::Session;
use std::collections::{BTreeMap, BTreeSet};

/// How long a name may be, in characters.
const LONGEST: usize = 64;

/// Returns the new names by the old ones.
///
/// Errors: `Usage` for a schema that is not loaded, for a name that cannot be one or is a server's own,
/// and where two schemas would come together.
pub(super) fn names(
    request: &Request,
    objects: &Objects,
    left_out: &[ObjectName],
) -> Result<BTreeMap<String, String>> {
    let mut new = BTreeMap::new();
    for (old, name) in &request.into {
        if !objects.databases.iter().any(|one| one.name == *old) {
            return Err(match left_out.iter().any(|one| one.database == *old) {
                true => Error::usage(format!(
                    "--into {old}={name} names a database that other options leave out"
                ))
                .hint(format!("remove this --into, or load {old} too")),
                false => no_database(old, objects),
            });
        }
        sound(name)?;
        if new.insert(old.clone(), name.clone()).is_some() {
            return Err(Error::usage(format!("--into names {old} twice"))
                .hint("a database is loaded once: run load again for another copy"));
        }
    }
    if request.accounts && !new.is_empty() {
        return Err(Error::usage(
            "--users cannot be used with --into: grants name databases by patterns",
        )
        .hint("load without --users, and grant what the copy needs"));
    }
    let mut taken = BTreeSet::new();
    for database in &objects.databases {
        let name = new.get(&database.name).unwrap_or(&database.name);
        if !taken.insert(name) {
            return Err(Error::usage(format!(
                "two databases of the dump would be loaded as {name}"
            ))
            .hint("give each a name of its own, or choose one with --database"));
        }
    }
    Ok(new)
}

/// Fails for what no schema can be called.
fn sound(name: &str) -> Result<()> {
    let wrong = |why: &str| {
        Err(
            Error::usage(format!("'{name}' cannot be the name of a database: {why}"))
                .hint("write --into OLD=NEW"),
        )
    };
    let own = |one: &&str| one.eq_ignore_ascii_case(name);
    match () {
        () if name.is_empty() => wrong("it is empty"),
        () if name.chars().count() > LONGEST => wrong("it has more than 64 characters"),
        () if name.ends_with(' ') => wrong("it ends with a space"),
        () if name.contains('\0') || name.chars().any(|one| one > '\u{ffff}') => {
            wrong("it has a character that is not allowed in names")
        }
        () if SYSTEM.iter().any(own) || own(&state::SCHEMA) => {
            wrong("the server or load uses that name")
        }
        () => Ok(()),
    }
}

/// Looks whether this server keeps the new names as they are.
///
/// Errors: `Usage` where it writes them in lower case; those of the session.
pub(super) fn kept(session: &mut Session, request: &Request) -> Result<()> {
    let mut new = request.into.iter().map(|(_, name)| name);
    let Some(name) = new.find(|name| name.to_lowercase() != **name) else {
        return Ok(());
    };
    match session.value("SELECT @@lower_case_table_names")?.as_deref() {
        Some("1") => Err(Error::usage(format!(
            "this server stores names in lower case, but --into gives {name}"
        ))
        .hint(format!("write {}", name.to_lowercase()))),
        _ => Ok(()),
    }
}
