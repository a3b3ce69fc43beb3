//! Views.

use super::super::{Column, Program, SchemaObjectKind, View};
use super::reader::Reader;
use super::tables::Listed;
use super::{ask, programs};
use evenkeel_op::{Context, Error, Result};
use evenkeel_server::connect::{query_error, quote, quote_name};
use std::collections::HashMap;

/// What servers say of a view that refers to what is not there, or whose definer may not read it.
const INVALID: u16 = 1356;

/// Reads the wanted views of a schema.
///
/// Errors: those of the session; `Failed` for an invalid view of which the server gives no text.
pub(super) fn read(
    reader: &mut Reader<'_>,
    database: &str,
    listed: &[Listed],
    columns: &HashMap<String, Vec<Column>>,
) -> Result<Vec<View>> {
    let mut found = Vec::new();
    for one in listed.iter().filter(|one| one.sort == "VIEW") {
        let read = view(reader, database, &one.name);
        let read = read.context(|| format!("failed to read view {database}.{}", one.name))?;
        let Some((program, broken)) = read else {
            reader.is_gone(SchemaObjectKind::View, database, &one.name);
            continue;
        };
        let known = columns.get(&one.name).map_or(&[][..], Vec::as_slice);
        found.push(View {
            program,
            columns: known.iter().map(|column| column.name.clone()).collect(),
            broken,
        });
    }
    Ok(found)
}

fn view(
    reader: &mut Reader<'_>,
    database: &str,
    name: &str,
) -> Result<Option<(Program, Option<String>)>> {
    let sql = format!("SHOW CREATE VIEW {}", ask::qualified(database, name));
    let row = match ask::try_rows(reader.session, &sql) {
        Ok(rows) => rows.into_iter().next(),
        Err(mysql::Error::MySqlError(e)) if e.code == INVALID => {
            let program = from_lists(reader, database, name)?;
            return Ok(program.map(|program| (program, Some(e.message))));
        }
        Err(mysql::Error::MySqlError(e)) if e.code == 1146 => return Ok(None),
        Err(error) => return Err(query_error(&error, &sql)),
    };
    let Some(row) = row else {
        return Ok(None);
    };
    let broken = match reader.session.raw().warnings() {
        0 => None,
        _ => warning(reader)?,
    };
    let create = row.bytes("Create View").filter(|text| !text.is_empty());
    let create = create.ok_or_else(|| no_text(database, name))?.to_vec();
    Ok(Some((
        programs::program(SchemaObjectKind::View, name, create, &row),
        broken,
    )))
}

/// Returns what the server has just warned of, if it is that a view is invalid.
fn warning(reader: &mut Reader<'_>) -> Result<Option<String>> {
    let rows = ask::rows(reader.session, "SHOW WARNINGS")?;
    let invalid = rows
        .iter()
        .find(|row| row.number("Code") == u64::from(INVALID));
    Ok(invalid.map(|row| row.text("Message")))
}

/// Puts the text of an invalid view together from `information_schema`.
fn from_lists(reader: &mut Reader<'_>, database: &str, name: &str) -> Result<Option<Program>> {
    let sql = format!(
        "SELECT * FROM information_schema.VIEWS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
        quote(database),
        quote(name)
    );
    let Some(row) = ask::rows(reader.session, &sql)?.into_iter().next() else {
        return Ok(None);
    };
    let body = row.bytes("VIEW_DEFINITION").filter(|text| !text.is_empty());
    let body = body.ok_or_else(|| no_text(database, name))?;
    let definer = row.text("DEFINER");
    let (user, host) = definer.rsplit_once('@').unwrap_or((&definer, "%"));
    let head = format!(
        "CREATE DEFINER={}@{} SQL SECURITY {} VIEW {} AS ",
        quote_name(user),
        quote_name(host),
        row.text("SECURITY_TYPE"),
        quote_name(name)
    );
    let tail = match row.text("CHECK_OPTION").as_str() {
        "" | "NONE" => String::new(),
        how => format!(" WITH {how} CHECK OPTION"),
    };
    let create = [head.as_bytes(), body, tail.as_bytes()].concat();
    Ok(Some(programs::program(
        SchemaObjectKind::View,
        name,
        create,
        &row,
    )))
}

fn no_text(database: &str, name: &str) -> Error {
    Error::failed(format!(
        "view {database}.{name} refers to something that does not exist, and the server does not show its definition"
    ))
    .hint("drop or fix it, or leave it out with --exclude")
}
