//! Procedures, functions and packages.

use super::super::{Program, SchemaObjectKind};
use super::reader::Reader;
use super::{ask, programs};
use evenkeel_op::{Context, Result};
use evenkeel_server::connect::quote;

/// Each kind, its name in `ROUTINE_TYPE`, and the column of its text, in the order of creation.
const KINDS: [(SchemaObjectKind, &str, &str); 4] = [
    (SchemaObjectKind::Package, "PACKAGE", "Create Package"),
    (
        SchemaObjectKind::PackageBody,
        "PACKAGE BODY",
        "Create Package Body",
    ),
    (SchemaObjectKind::Function, "FUNCTION", "Create Function"),
    (SchemaObjectKind::Procedure, "PROCEDURE", "Create Procedure"),
];

/// How to continue without the privilege.
const WAY_OUT: &str = "leave routines out (--no-routines)";

/// Reads the routines of a schema, by kind and name.
///
/// Errors: `Refused` when some may be hidden from the account, and for one whose text is.
pub(super) fn read(reader: &mut Reader<'_>, database: &str) -> Result<Vec<Program>> {
    if !are_visible(reader, database) {
        let what = format!("the routines of {database}");
        return Err(ask::lacking(&what, privilege(reader), WAY_OUT));
    }
    let sql = format!(
        "SELECT ROUTINE_NAME, ROUTINE_TYPE FROM information_schema.ROUTINES \
         WHERE ROUTINE_SCHEMA = {} ORDER BY ROUTINE_NAME",
        quote(database)
    );
    let rows = ask::rows(reader.session, &sql)?;
    let mut found = Vec::new();
    for (kind, sort, column) in KINDS {
        for row in rows.iter().filter(|row| row.is("ROUTINE_TYPE", sort)) {
            let name = row.text("ROUTINE_NAME");
            if !reader.wants(database, &name) {
                continue;
            }
            match routine(reader, database, &name, kind, column)? {
                Some(program) => found.push(program),
                None => reader.is_gone(kind, database, &name),
            }
        }
    }
    Ok(found)
}

fn routine(
    reader: &mut Reader<'_>,
    database: &str,
    name: &str,
    kind: SchemaObjectKind,
    column: &str,
) -> Result<Option<Program>> {
    let what = format!("{} {database}.{name}", kind.sql().to_lowercase());
    let full = ask::qualified(database, name);
    let sql = format!("SHOW CREATE {} {full}", kind.sql());
    let row = ask::object(reader.session, &sql).context(|| format!("failed to read {what}"))?;
    let Some(row) = row else {
        return Ok(None);
    };
    let Some(create) = row.bytes(column) else {
        return Err(ask::lacking(
            &what,
            privilege(reader),
            "leave it out with --exclude",
        ));
    };
    let create = create.to_vec();
    Ok(Some(programs::program(kind, name, create, &row)))
}

/// Returns whether the account sees every routine of a schema: servers list those that it may use
/// or change, and all of them to those who may read where they are kept.
fn are_visible(reader: &Reader<'_>, database: &str) -> bool {
    let grants = &reader.grants;
    let here = ["EXECUTE", "ALTER ROUTINE", "CREATE ROUTINE"];
    let everywhere = ["SELECT", "SHOW_ROUTINE", "SHOW CREATE ROUTINE"];
    here.iter().any(|one| grants.hold(one, database, None))
        || everywhere.iter().any(|one| grants.hold_everywhere(one))
        || grants.hold("SHOW CREATE ROUTINE", database, None)
        || grants.hold("SELECT", "mysql", Some("proc"))
}

/// Returns what it takes to read routines.
fn privilege(reader: &Reader<'_>) -> &'static str {
    match reader.abilities.dictionary_in_innodb {
        true => "SHOW_ROUTINE (before MySQL 8.0.20: SELECT on *.*)",
        false => "SELECT on mysql.proc",
    }
}
